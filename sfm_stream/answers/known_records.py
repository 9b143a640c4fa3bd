"""Which releases or roll-ups were met already, and where: no sketches, and no memory that grows."""

from __future__ import annotations

from typing import TypeAlias

from sfm_stream.answers.scratch import Scratch
from sfm_stream.types import StoredRecord, Window

Identity: TypeAlias = tuple[int, int, Window, bytes]
"""Epoch, partition, window and key of a release; of a roll-up too, as the length of a window tells its grain."""
_TABLES = """
CREATE TABLE known (
    start_ms INTEGER, end_ms INTEGER, key BLOB, epoch INTEGER, partition INTEGER,
    at_partition INTEGER, at_offset INTEGER, revision INTEGER,
    PRIMARY KEY (start_ms, end_ms, key, epoch, partition)
) WITHOUT ROWID;
"""
_FOUND = """
SELECT at_partition, at_offset, revision FROM known
WHERE start_ms = ? AND end_ms = ? AND key = ? AND epoch = ? AND partition = ?
"""
_REPLACED = "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?, 0, 0, ?)"
_TAKEN = """
DELETE FROM known WHERE start_ms = ? AND end_ms = ? AND key = ? AND epoch = ? AND partition = ? AND revision = ?
"""


class KnownRecords:
    """The records of a topic that were met, by what they are of."""

    def __init__(self) -> None:
        self._held = Scratch(_TABLES)

    def first(self, identity: Identity, stored: StoredRecord) -> tuple[int, int] | None:
        """None where no record of this identity was met; else partition and offset of the first one."""
        values = *_place(identity), stored.partition, stored.offset
        if self._held.run("INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?, ?, ?, ?, 0)", values):
            return None
        partition, offset, _ = self._held.row(_FOUND, values[:5])
        return partition, offset

    def newest(self, identity: Identity, revision: int) -> int | None:
        """The newest revision that was met before; None where there was none. This one is met now."""
        found = self._held.row(_FOUND, _place(identity))
        if found is None or revision > found[2]:
            self._held.run(_REPLACED, (*_place(identity), revision))
        return None if found is None else int(found[2])

    def take(self, identity: Identity, revision: int) -> bool:
        """Whether this is the newest revision, which is then met no more."""
        return bool(self._held.run(_TAKEN, (*_place(identity), revision)))


def _place(identity: Identity) -> tuple[int, int, bytes, int, int]:
    epoch, partition, window, key = identity
    return window.start_ms, window.end_ms, key, epoch, partition
