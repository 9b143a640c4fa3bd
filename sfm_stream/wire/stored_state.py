"""The committed state of a pipeline as bytes: a JSON array, whose first element is the version.

It is JSON because the metadata of a Kafka offset commit must be text. A state of another version, with a field too many
or too few, or with a value of another type is refused: a pipeline that guessed might release a window twice.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from sfm_stream.errors import StateError
from sfm_stream.types import Commit


class StoredFields(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Base class of stored states. The fields of a subclass are written in their order, behind the version."""

    version: int


class _Positioned(Protocol):
    @property
    def version(self) -> int: ...
    @property
    def offset(self) -> int: ...


_Fields = TypeVar("_Fields", bound=_Positioned)


class StateCodec(Generic[_Fields]):
    """Encodes and decodes one kind of stored state.

    fields: a subclass of StoredFields that has an offset. version: the only one that it writes and reads. name: what
    error messages call the state. reads: the versions that they say can be read, where another codec reads others.
    """

    def __init__(self, fields: type[_Fields], version: int, name: str = "the committed state", reads: str = "") -> None:
        self.version, self._reads = version, reads or str(version)
        self._decoder = msgspec.json.Decoder(fields, strict=True)
        self._name = name

    def encode(self, *values: object) -> bytes:
        """The bytes of a state. values: its fields behind the version; the last ones may be left out if they have
        defaults.
        """
        return msgspec.json.encode((self.version, *values))

    def decode(self, payload: bytes, where: str) -> _Fields:
        """The state in these bytes. where: the first words of every error message.

        Raises StateError for any bytes that encode() of this version does not write.
        """
        try:
            stored = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StateError(f"{where}: {self._name} cannot be read: {error}") from error
        if stored.version != self.version:
            raise StateError(f"{where}: {self._name} has version {stored.version}, this release reads {self._reads}")
        return stored

    def decode_commit(self, commit: Commit, where: str) -> _Fields:
        """The state in the metadata of a position. Raises StateError as decode(), or if its offset is another one."""
        stored = self.decode(commit.metadata, where)
        if stored.offset != commit.offset:
            raise StateError(
                f"{where}: {self._name} is of another position: committed offset {commit.offset} differs from its "
                f"state's {stored.offset}"
            )
        return stored


def stored_version(payload: bytes) -> int | None:
    """The version of a stored state, to choose the codec that reads it; None where the bytes are none."""
    try:
        stored = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return stored[0] if isinstance(stored, list) and stored and type(stored[0]) is int else None
