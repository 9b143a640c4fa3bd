"""Of which releases each row of an answer is made: decided from their windows, before a sketch of them is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.question import Question
from sfm_stream.answers.span_name import span_name
from sfm_stream.types import Window
from sfm_stream.windows.grid import grid_of
from sfm_stream.wire.codec import Release


@dataclass(frozen=True, slots=True)
class UnionPlan:
    """The rows to be, of one grain.

    row_of: window of a release -> the span of the row that it belongs to; None where it is inside none. unions: (span
    of a row, key in canonical bytes) -> its union, while a release of it is still to come.
    """

    grain: str
    row_of: Callable[[Window], Window | None]
    unions: dict[tuple[Window | None, bytes], KeyUnion]

    def whole_with(self, release: Release) -> KeyUnion | None:
        """Add a release to its union, which is handed out with the last release of its cover; else None."""
        place = self.row_of(release.window), release.key
        union = self.unions.get(place)
        if union is None:
            return None
        union.include(release)
        return None if union.waiting else self.unions.pop(place)


def union_plan(question: Question, pipeline: str, releases: Iterable[Release]) -> UnionPlan:
    """The plan for the releases of a pipeline that a question asks for, each once.

    Raises IncompatibleError where epochs differ in shape or hash.
    """
    row_of = _row_spans(question)
    candidates: dict[tuple[Window, bytes], list[Candidate]] = {}
    alike: dict[Candidate, Candidate] = {}  # keys share their candidates: each takes a pointer a release
    for release in releases:
        if row := row_of(release.window):
            name, sketch = span_name(release), release.sketch
            found = Candidate(release.window, release.epoch, release.partition, name, sketch.shape, sketch.hash)
            candidates.setdefault((row, release.key), []).append(alike.setdefault(found, found))
    unions: dict[tuple[Window | None, bytes], KeyUnion] = {}
    while candidates:
        (row, key), of_key = candidates.popitem()
        unions[row, key] = KeyUnion.of(pipeline, row, of_key)
    return UnionPlan(str(question.grain), row_of, unions)


def _row_spans(question: Question) -> Callable[[Window], Window | None]:
    """As row_of in UnionPlan: one row for the whole span of the question, or one for each week or month in it."""
    if question.grain == "range":
        return lambda window: question.span
    grid = grid_of(str(question.grain), question.zone)

    def row_of(window: Window) -> Window | None:
        start_ms = grid.floor(window.start_ms)
        end_ms = grid.end(start_ms)
        return Window(start_ms, end_ms) if window.end_ms <= end_ms else None

    return row_of
