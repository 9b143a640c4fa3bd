"""The rows of an answer in order, however many they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import itemgetter
from typing import TypeAlias

import msgspec

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.scratch import Scratch
from sfm_stream.estimation.estimate import Estimate
from sfm_stream.types import Window
from sfm_stream.wire.keys import decode_key, encode_key

_TABLES = """
CREATE TABLE answer_rows (
    start_ms INTEGER, end_ms INTEGER, key BLOB, epoch INTEGER, partition INTEGER, row BLOB,
    PRIMARY KEY (start_ms, end_ms, key, epoch, partition)
) WITHOUT ROWID;
"""
_INSERT = "INSERT INTO answer_rows VALUES (?, ?, ?, ?, ?, ?)"
_HELD_BYTES, _ROW_BYTES, _PART_BYTES = 4 << 20, 2000, 200
"""Of the rows that are held in memory; about what each takes there, and each window or key in it. Where there are more,
all of them are in a table."""
_Place: TypeAlias = tuple[int, int, bytes, int, int]


class _Figures(msgspec.Struct, array_like=True, frozen=True):
    """The fields of an AnswerRow that its place in the order does not say. joined: canonical bytes of its keys."""

    grain: str
    estimate: Estimate
    epsilon: float
    origin: str
    releases: dict[str, int]
    windows: int
    complete: bool
    missing_ms: int
    missing: tuple[Window, ...] | None
    joined: tuple[bytes, ...]


_FIELDS = tuple(name for name in _Figures.__struct_fields__ if name != "joined")
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(_Figures)


class AnswerRows(Collection[AnswerRow]):
    """Rows in order of window, key, epoch and partition. They can be gone through again.

    keys: canonical bytes of the keys that have a row, or a part in one.
    """

    def __init__(self) -> None:
        self._few: list[tuple[_Place, AnswerRow]] = []
        self._room = _HELD_BYTES
        self._held: Scratch | None = None
        self.keys: set[bytes] = set()

    def add(self, row: AnswerRow, partition: int = 0) -> None:
        """Add a row. partition: of its source, where each has a row of its own."""
        key = encode_key(row.key)
        joined = tuple(map(encode_key, row.keys))
        self.keys.update(joined or [key])
        place = row.window.start_ms, row.window.end_ms, key, row.epoch, partition
        if self._held is None:
            parts = len(row.missing or ()) + len(joined)
            self._room -= _ROW_BYTES + _PART_BYTES * parts + len(key) + sum(map(len, joined))
            if self._room >= 0:
                self._few.append((place, row))
                return
            self._held = Scratch(_TABLES)
            self._held.run_each(_INSERT, ((*each, _encoded(of_it)) for each, of_it in self._few))
            self._few.clear()
        self._held.run(_INSERT, (*place, _encoded(row)))

    def __iter__(self) -> Iterator[AnswerRow]:
        return (row for row, _ in self.with_partitions())

    def with_partitions(self) -> Iterator[tuple[AnswerRow, int]]:
        """Each row, with its partition."""
        if self._held is None:
            yield from ((row, place[-1]) for place, row in sorted(self._few, key=itemgetter(0)))
            return
        query = "SELECT * FROM answer_rows ORDER BY start_ms, end_ms, key, epoch, partition"
        for start_ms, end_ms, key, epoch, partition, encoded in self._held.rows(query):
            figures = _DECODER.decode(encoded)
            values = {name: getattr(figures, name) for name in _FIELDS}
            values["keys"] = tuple(map(decode_key, figures.joined))
            yield AnswerRow(key=decode_key(key), window=Window(start_ms, end_ms), epoch=epoch, **values), partition

    def __len__(self) -> int:
        return len(self._few) if self._held is None else int(self._held.row("SELECT count(*) FROM answer_rows")[0])

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # rows are added


def _encoded(row: AnswerRow) -> bytes:
    values = {name: getattr(row, name) for name in _FIELDS}
    return _ENCODER.encode(_Figures(**values, joined=tuple(map(encode_key, row.keys))))
