"""Up to when windows were ever released into an output: noted in a file beside it, as the output itself may be lost.

An output that was deleted, or replaced by an older copy of itself, holds less than was handed on to readers. Counting
on from there would draw the same windows a second time. This file shows that something is missing.

A window of many keys takes several steps, so the number of records is noted too: a copy that was made between two of
them has the same border, and fewer records.

A border is noted after the commit that it belongs to. It is written to a new file, which replaces the old one once it
is on disk, so no border is ever lowered. After a kill between commit and note the border is lower than the output's;
that is corrected when the output is opened again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from sfm_stream.errors import StateError, StorageError
from sfm_stream.transport.files.storage_faults import NEW_EPOCH
from sfm_stream.units import SKETCHES

VERSION = 1


class _Content(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """digest: of the borders, so that damage is not taken for a border."""

    version: int
    borders: dict[str, int]
    digest: str


class ReleasedBorders:
    """Worker and span to the latest end of a window that it ever released, from `<path>.released`, mode 0600.

    For the one process that holds the lock of the output. Raises StateError where the file is there and is not what
    was written: which windows were released is then unknown.
    """

    def __init__(self, path: str) -> None:
        self.path = path + ".released"
        self._output = path
        self._borders = self._read()

    @property
    def borders(self) -> Mapping[str, int]:
        """released_by() to border, in milliseconds since 1970 UTC."""
        return MappingProxyType(self._borders)

    def note(self, worker: str, end_ms: int) -> None:
        """Windows up to end_ms are released; it is on disk on return. An earlier end than the noted one does nothing.

        worker: of released_by(), or of records_of() for a number of records in place of an end.

        Raises StorageError. The border is then noted or not, and a border noted before still holds.
        """
        self.note_all({worker: end_ms})

    def note_all(self, ends: Mapping[str, int]) -> None:
        """As note(), of several at once."""
        later = {worker: end for worker, end in ends.items() if end > self._borders.get(worker, end - 1)}
        if not later:
            return
        borders = self._borders | later
        try:
            self._write(msgspec.json.encode(_Content(VERSION, borders, _digest(borders))))
        except OSError as error:
            raise StorageError(
                f"{self.path}: cannot write: {error.strerror}. Make room or mend the disk, and start again: what was "
                "committed is whole, and is noted then"
            ) from error
        self._borders = borders

    def _read(self) -> dict[str, int]:
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return {}
        try:
            noted = msgspec.json.decode(content, type=_Content, strict=True)
            version, problem = noted.version, "its digest is another one"
            if version == VERSION and noted.digest == _digest(noted.borders):
                return noted.borders
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            version, problem = VERSION, str(error)
        if version != VERSION:
            problem = f"it has version {version}, this release reads {VERSION}"
        raise StateError(
            f"{self.path}: it cannot be read: {problem}. It holds up to when windows were ever released into "
            f"{self._output}, so that none is released twice. Where that file is for certain the one that was written "
            "last, and no older copy, delete this one: it is made anew from it. Where that is not certain, delete it "
            f"too, but first {NEW_EPOCH}"
        )

    def _write(self, content: bytes) -> None:
        part = self.path + ".part"
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as sink:
                sink.write(content)
                sink.flush()
                os.fsync(sink.fileno())
            os.replace(part, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        sync_directory(self.path)


def released_by(worker: str, span: str) -> str:
    """The name under which a border of a span is noted. span: as in Step."""
    return f"{worker}/{span}" if span else worker


def records_of(worker: str) -> str:
    """The name under which the number of sketch records is noted that the output held behind a step of a worker."""
    return f"{worker}/{SKETCHES}"


def sync_directory(path: str) -> None:
    """Have the directory entry of a new file on disk. Raises OSError."""
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _digest(borders: Mapping[str, int]) -> str:
    return hashlib.sha256(repr(sorted(borders.items())).encode()).hexdigest()[:32]
