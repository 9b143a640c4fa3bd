"""The spans of a trend, one after the other: each with its row, or with what it means that it has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.errors import QuestionError
from sfm_stream.estimation.estimate import Status
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, SelectedKeys
from sfm_stream.types import Window
from sfm_stream.windows.grid import Grid

MOST_SLOTS = 3000
"""Spans of one chart: the hours of four months."""


@dataclass(frozen=True, slots=True)
class State:
    """How a span is shown. name: of its mark and of its class in a style sheet. words: for its row of a table.

    meaning: a sentence for those who do not know the words.
    """

    name: str
    words: str
    meaning: str


STATES = {
    Status.OK: State("ok", "", "An estimate with its 95 % interval."),
    Status.EMPTY: State("empty", "may be none", "The data fit no item at all; the interval says how many at most."),
    Status.LOWER_BOUND: State(
        "lower", "lower bound", "Something of this span was withheld or is missing: the number may be larger."
    ),
    Status.SATURATED: State("saturated", "sketch full", "The sketch is full: every larger number fits as well."),
    Status.UNINFORMATIVE: State(
        "unknown", "nothing known", "The noise is larger than every number that could be told from it."
    ),
}
OPEN = State("open", "still open", "Not everything of this span is decided: more can come.")
WITHHELD = State(
    "withheld", "withheld or none", "This key was not selected here, as happens to keys of few items, or it had none."
)
NONE = State("none", "no item", "This key had no item here: its presence is public.")
UNRELEASED = State("unreleased", "not released", "This key has no release here: it was not on the list yet.")
UNDECIDED = State("undecided", "not decided yet", "This span is not closed: nothing of it is published yet.")
BEFORE = State("before", "before counting", "Nothing was counted yet.")


@dataclass(frozen=True, slots=True)
class Slot:
    """One span of a trend. row: None where the key has no release in it. state: of the row, or of its absence."""

    window: Window
    row: AnswerRow | None
    state: State

    @property
    def is_open(self) -> bool:
        """Whether more can come."""
        return self.row is not None and not self.row.complete


def absence(keys: KeyRule) -> State:
    """What it means that a key has no release in a span that is decided."""
    if isinstance(keys, SelectedKeys):
        return WITHHELD
    return UNRELEASED if isinstance(keys, DeclaredKeys) else NONE


def require_few(span: Window, grid: Grid) -> None:
    """Raise QuestionError where more than MOST_SLOTS spans of a grid begin inside a span."""
    if grid.count(grid.floor(span.start_ms), grid.ceil(span.end_ms)) > MOST_SLOTS:
        raise QuestionError(f"more than {MOST_SLOTS:,} spans: ask for a shorter time, or for a coarser grain")


def slots(rows: Iterable[AnswerRow], span: Window, grid: Grid, counted: Window, absent: State) -> tuple[Slot, ...]:
    """Every span of a grid that begins inside `span`, in order, each with its row.

    rows: of one key, at most one for each span. counted: from the first time that is counted to the time through which
    all is decided.
    """
    by_start = {row.window.start_ms: row for row in rows}
    made: list[Slot] = []
    for window in _windows(span, grid):
        row = by_start.get(window.start_ms)
        if row is not None:
            state = STATES[row.estimate.status]
        elif window.end_ms <= counted.start_ms:
            state = BEFORE
        else:
            state = UNDECIDED if window.end_ms > counted.end_ms else absent
        made.append(Slot(window, row, state))
    return tuple(made)


def _windows(span: Window, grid: Grid) -> Iterator[Window]:
    start_ms = grid.floor(span.start_ms)
    while start_ms < span.end_ms:
        end_ms = grid.end(start_ms)
        yield Window(start_ms, end_ms)
        start_ms = end_ms
