"""What is held while a question is answered, sorted, on disk where it is much: memory does not grow with the history.

It holds what is published anyway, in a file without a name that ends with the process (SQLITE_TMPDIR or TMPDIR says on
which disk).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from sfm_stream.errors import StorageError

_PAGES_KIB = 4096
"""Held in memory; what is more goes to disk."""


class Scratch:
    """Tables of one question. Raises StorageError where they cannot be written: the disk is full, or takes no file."""

    def __init__(self, tables: str) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", f"cache_size = -{_PAGES_KIB}"):
            self.run(f"PRAGMA {setting}")
        self.run(tables)
        self.run("BEGIN")

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> int:
        """Perform a statement. Returns how many rows it changed."""
        try:
            return self._db.execute(statement, values).rowcount
        except sqlite3.Error as error:
            raise _fault(error) from error

    def run_each(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Perform a statement once for each of these rows of values."""
        try:
            self._db.executemany(statement, rows)
        except sqlite3.Error as error:
            raise _fault(error) from error

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        """The rows of a query, one after the other."""
        try:
            yield from self._db.execute(query, values)
        except sqlite3.Error as error:
            raise _fault(error) from error

    def row(self, query: str, values: tuple[Any, ...] = ()) -> Any:
        """The first row of a query; None where there is none."""
        return next(self.rows(query, values), None)


def _fault(error: sqlite3.Error) -> StorageError:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StorageError(
        f"a temporary file cannot hold what is answered: {error} ({name}). Make room where temporary files lie, or "
        "name a folder with room in SQLITE_TMPDIR, and ask again"
    )
