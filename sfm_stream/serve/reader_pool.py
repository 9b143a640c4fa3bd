"""Open readers of one file, lent to one question each: SQLite's pages stay in memory from one question to the next."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from sfm_stream.errors import ConfigError, StateError, StorageError
from sfm_stream.serve.refusals import NotNow
from sfm_stream.serve.turns import Turns
from sfm_stream.transport.files.log_reader import LogReader, NothingWritten

_log = logging.getLogger(__name__)
_KEPT = 8


class ReaderPool:
    """Readers of the file at a path, which may be replaced by another one at any time.

    opened: opens one. pipeline: its id, for messages. What is wrong with the file is told without its path, which is in
    the log: whoever asks need not know of the folders of this host.
    """

    def __init__(self, pipeline: str, path: str, opened: Callable[[str], LogReader], turns: Turns) -> None:
        self._pipeline, self.path, self._opened, self._turns = pipeline, path, opened, turns
        self._idle: list[LogReader] = []
        self._lock = Lock()
        self._file: object = None
        # Lent to nobody: while it is open no other file gets the number that this one is known by.
        self._held: LogReader | None = None
        self._files, self._told = 0, ""

    @property
    def files(self) -> int:
        """How many files there have been at the path, as far as it was looked. It grows when another one is there."""
        return self._files

    @contextmanager
    def reader(self) -> Iterator[LogReader]:
        """A reader for one question, which ends with TooMuchAsked where it takes too long. Raises NotNow."""
        with self._turns.turn() as look, self.lent() as reader:
            reader.before_query = look
            try:
                yield reader
            finally:
                reader.before_query = _nothing

    @contextmanager
    def lent(self) -> Iterator[LogReader]:
        """A reader without limits. Raises NotNow where the file is not there."""
        with self._without_path():
            which = file_at(self.path)
            reader = self._taken(which)
            yield from self._lent(reader, which)

    def _lent(self, reader: LogReader, which: object) -> Iterator[LogReader]:
        try:
            yield reader
        except BaseException:
            # What it found may be the matter of the connection.
            reader.close()
            raise
        with self._lock:
            self._told = ""
            if which == self._file and len(self._idle) < _KEPT:
                self._idle.append(reader)
                return
        reader.close()

    def close(self) -> None:
        """Close the readers that are not lent. Others can be lent again."""
        with self._lock:
            gone = self._parted(None)
        for reader in gone:
            reader.close()

    def _taken(self, which: object) -> LogReader:
        with self._lock:
            stale = self._parted(which) if which != self._file else []
            found = self._idle.pop() if self._idle else None
        for reader in stale:
            reader.close()
        if found is not None:
            return found
        if which is None:
            raise NotNow(f"pipeline {self._pipeline} has published nothing yet: its output file is not there")
        self._hold(which)
        return self._open()

    def _parted(self, which: object) -> list[LogReader]:
        """Note that this file is at the path now. What is given is to be closed: the readers of the one before."""
        gone = [*self._idle, *([self._held] if self._held else [])]
        self._idle, self._held, self._file = [], None, which
        self._files += 1
        return gone

    def _hold(self, which: object) -> None:
        """Keep a file open by one reader that is not lent."""
        if self._held is not None:
            return
        reader: LogReader | None = self._open()
        with self._lock:
            if self._held is None and self._file == which == file_at(self.path):
                self._held, reader = reader, None
        if reader is not None:
            reader.close()

    def _open(self) -> LogReader:
        try:
            return self._opened(self.path)
        except NothingWritten:
            raise NotNow(f"pipeline {self._pipeline} has published nothing yet: its output file is empty") from None
        except ConfigError as error:
            raise StateError(str(error)) from None

    @contextmanager
    def _without_path(self) -> Iterator[None]:
        """Errors that name the file name the pipeline in its place; the log has them as they are, once."""
        try:
            yield
        except (StateError, StorageError) as error:
            text = str(error)
            shown = without_path(text, self.path, self._pipeline)
            if shown != text:
                with self._lock:
                    is_new, self._told = text != self._told, text
                if is_new:
                    _log.warning("%s", text)
                error.args = (shown,)
            raise


def _nothing() -> None:
    """Before queries that nobody waits for."""


def without_path(text: str, path: str, pipeline: str) -> str:
    """A message without the path of a pipeline's file, as whoever asks may read it."""
    for each in (os.path.realpath(path), path):
        text = text.replace(each, f"the file of {pipeline}")
    return text


def file_at(path: str) -> tuple[int, int] | None:
    """Which file is at a path; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
