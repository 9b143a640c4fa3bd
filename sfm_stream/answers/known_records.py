"""Which releases or roll-ups were met already, and where: no sketches, and no memory that grows beyond a limit."""

from __future__ import annotations

from typing import TypeAlias

from sfm_stream.answers.scratch import Scratch
from sfm_stream.types import StoredRecord, Window

Identity: TypeAlias = tuple[int, int, Window, bytes]
"""Epoch, partition, window and key of a release; of a roll-up too, as the length of a window tells its grain."""
_Place: TypeAlias = tuple[int, int, bytes, int, int]
_FEW = 4096
"""Held in memory, of some hundred bytes each; where there are more, all are in tables."""
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
_FIRST = "INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_REPLACED = "INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_TAKEN = """
DELETE FROM known WHERE start_ms = ? AND end_ms = ? AND key = ? AND epoch = ? AND partition = ? AND revision = ?
"""


class KnownRecords:
    """The records of a topic that were met, by what they are of. The first few are held in memory."""

    def __init__(self) -> None:
        self._few: dict[_Place, tuple[int, int, int]] = {}
        self._held: Scratch | None = None

    def first(self, identity: Identity, stored: StoredRecord) -> tuple[int, int] | None:
        """None where no record of this identity was met; else partition and offset of the first one."""
        place, met = _place(identity), (stored.partition, stored.offset, 0)
        if self._held is None:
            known = self._few.get(place)
            if known is None:
                self._note(place, met)
            return None if known is None else known[:2]
        if self._held.run(_FIRST, (*place, *met)):
            return None
        partition, offset, _ = self._held.row(_FOUND, place)
        return partition, offset

    def newest(self, identity: Identity, revision: int) -> int | None:
        """The newest revision that was met before; None where there was none. This one is met now."""
        place = _place(identity)
        found = self._few.get(place) if self._held is None else self._held.row(_FOUND, place)
        if found is None or revision > found[2]:
            self._note(place, (0, 0, revision))
        return None if found is None else int(found[2])

    def take(self, identity: Identity, revision: int) -> bool:
        """Whether this is the newest revision, which is then met no more."""
        place = _place(identity)
        if self._held is not None:
            return bool(self._held.run(_TAKEN, (*place, revision)))
        known = self._few.get(place)
        if known is None or known[2] != revision:
            return False
        del self._few[place]
        return True

    def _note(self, place: _Place, met: tuple[int, int, int]) -> None:
        if self._held is not None:
            self._held.run(_REPLACED, (*place, *met))
            return
        self._few[place] = met
        if len(self._few) > _FEW:
            self._held = Scratch(_TABLES)
            self._held.run_each(_REPLACED, ((*each, *of_it) for each, of_it in self._few.items()))
            self._few.clear()


def _place(identity: Identity) -> _Place:
    epoch, partition, window, key = identity
    return window.start_ms, window.end_ms, key, epoch, partition
