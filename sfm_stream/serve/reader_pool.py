"""Open readers of one file, lent to one question each: SQLite's pages stay in memory from one question to the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.serve.refusals import NotNow
from sfm_stream.serve.turns import Turns
from sfm_stream.transport.files.log_reader import LogReader

_KEPT = 8


class ReaderPool:
    """Readers of the file at a path, which may be replaced by another one at any time.

    opened: opens one. pipeline: its id, for messages.
    """

    def __init__(self, pipeline: str, path: str, opened: Callable[[str], LogReader], turns: Turns) -> None:
        self._pipeline, self.path, self._opened, self._turns = pipeline, path, opened, turns
        self._idle: list[tuple[object, LogReader]] = []
        self._lock = Lock()

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
        which = file_at(self.path)
        reader = self._taken(which)
        try:
            yield reader
        except BaseException:
            # What it found may be the matter of the connection.
            reader.close()
            raise
        with self._lock:
            if len(self._idle) < _KEPT:
                self._idle.append((which, reader))
                return
        reader.close()

    def close(self) -> None:
        """Close the readers that are not lent. Others can be lent again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, reader in idle:
            reader.close()

    def _taken(self, which: object) -> LogReader:
        with self._lock:
            stale = [reader for of_file, reader in self._idle if of_file != which]
            self._idle = [each for each in self._idle if each[0] == which]
            found = self._idle.pop()[1] if self._idle else None
        for reader in stale:
            reader.close()
        if found is not None:
            return found
        if which is None:
            raise NotNow(f"pipeline {self._pipeline} has published nothing yet: its output file is not there")
        try:
            return self._opened(self.path)
        except ConfigError as error:
            raise StateError(str(error)) from None


def _nothing() -> None:
    """Before queries that nobody waits for."""


def file_at(path: str) -> tuple[int, int] | None:
    """Which file is at a path; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
