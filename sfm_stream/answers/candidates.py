"""The releases that may be in an answer, without their sketches: by row, key and time, on disk if they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from sfm_stream.answers.asked_releases import require_copy
from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.question import Question
from sfm_stream.answers.scratch import Scratch
from sfm_stream.answers.span_name import span_name
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord, Window
from sfm_stream.units import QUARTER_MS, SKETCHES
from sfm_stream.windows.grid import FixedGrid, grid_of
from sfm_stream.wire.heads import ReleaseHead, head_at

Kind: TypeAlias = tuple[SketchShape, str, str]
"""What releases of one kind have in common: shape and hash of their sketches, and the name of their released span."""
RowKey: TypeAlias = tuple[Window, bytes]
"""Which row of an answer: its span and its key."""
_NO_ROW = Window(-1, -1)
_TABLES = """
CREATE TABLE candidates (
    row_start INTEGER, row_end INTEGER, key BLOB, start_ms INTEGER, end_ms INTEGER, epoch INTEGER, partition INTEGER,
    at_partition INTEGER, at_offset INTEGER, kind INTEGER
);
"""
_SORTED = """
CREATE INDEX sorted ON candidates (
    row_start, row_end, key, start_ms, end_ms, epoch, partition, at_partition, at_offset, kind
)
"""
_COPIES = """
SELECT key, start_ms, end_ms, epoch, partition FROM candidates INDEXED BY sorted
GROUP BY row_start, row_end, key, start_ms, end_ms, epoch, partition HAVING count(*) > 1
"""
_PLACES = """
SELECT at_partition, at_offset FROM candidates
WHERE key = ? AND start_ms = ? AND end_ms = ? AND epoch = ? AND partition = ? ORDER BY at_partition, at_offset
"""


class Candidates:
    """Candidates of a question, each with the row that it may be in."""

    def __init__(self, question: Question, heads: Iterable[tuple[StoredRecord, ReleaseHead]]) -> None:
        self._held = Scratch(_TABLES)
        self._kinds: dict[Kind, int] = {}
        row_of = _row_spans(question)
        rows = (self._row(stored, head, row_of(head.window) or _NO_ROW) for stored, head in heads)
        self._held.run_each("INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._held.run(_SORTED)

    def rows(self) -> Iterator[RowKey]:
        """The rows that have candidates, in order of span and key."""
        query = "SELECT DISTINCT row_start, row_end, key FROM candidates INDEXED BY sorted WHERE row_start >= 0"
        for start_ms, end_ms, key in self._held.rows(query):
            yield Window(start_ms, end_ms), key

    def of(self, row: RowKey) -> Iterator[Candidate]:
        """The candidates of a row, each once, in order of window, epoch and partition."""
        kinds, before = list(self._kinds), None
        query = (
            "SELECT start_ms, end_ms, epoch, partition, at_partition, at_offset, kind FROM candidates "
            "INDEXED BY sorted WHERE row_start = ? AND row_end = ? AND key = ? "
            "ORDER BY start_ms, end_ms, epoch, partition, at_partition, at_offset"
        )
        for *identity, at_partition, at_offset, kind in self._held.rows(query, (*_borders(row[0]), row[1])):
            if identity != before:
                shape, item_hash, span = kinds[kind]
                start_ms, end_ms, epoch, partition = before = identity
                place = at_partition, at_offset
                yield Candidate(Window(start_ms, end_ms), epoch, partition, span, shape, item_hash, place)

    def require_no_conflict(self, reader: TopicReader, pipeline: str) -> None:
        """Raise ConflictError where two records of one release have different bytes."""
        for key, *identity in self._held.rows(_COPIES):
            first, *others = self._held.rows(_PLACES, (key, *identity))
            for partition, offset in others:
                for stored in reader.at(SKETCHES, partition, [offset]):
                    head = head_at("", stored.value)
                    if isinstance(head, ReleaseHead):
                        require_copy(reader, pipeline, stored, head, first)

    def _row(self, stored: StoredRecord, head: ReleaseHead, row: Window) -> tuple[object, ...]:
        kind = self._kinds.setdefault((head.shape, head.hash, span_name(head)), len(self._kinds))
        place = stored.partition, stored.offset
        return *_borders(row), stored.key, *_borders(head.window), head.epoch, head.partition, *place, kind


def _borders(window: Window) -> tuple[int, int]:
    return window.start_ms, window.end_ms


def _row_spans(question: Question) -> Callable[[Window], Window | None]:
    """The span of the row that a window belongs to; None where it is inside none.

    One row for the whole span of the question, for each window, or for each hour, day, week or month in it.
    """
    if question.grain == "range":
        return lambda window: question.span
    if question.grain == "window":
        return lambda window: window
    grid = FixedGrid(QUARTER_MS) if question.grain == "quarter" else grid_of(str(question.grain), question.zone)

    def row_of(window: Window) -> Window | None:
        start_ms = grid.floor(window.start_ms)
        end_ms = grid.end(start_ms)
        return Window(start_ms, end_ms) if window.end_ms <= end_ms else None

    return row_of
