"""Rows of a table as a page shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.readable import duration, instant, local
from sfm_stream.serve.pages.grain_choices import GrainChoice
from sfm_stream.serve.pages.number_text import Written, written
from sfm_stream.serve.pages.slots import OPEN, STATES, Slot, State
from sfm_stream.serve.pages.time_text import span_words

_TIMES = "\u00d7"


@dataclass(frozen=True, slots=True)
class RowLine:
    """One span of a key. made_of: its releases in words. states: what is to be said of it, none where nothing is.

    start, end: as a question takes them back. machine: start, end, value, low, high for a script: seconds and numbers,
    "" where there is none.
    """

    span: str
    start: str
    end: str
    start_utc: str
    numbers: Written | None
    made_of: str
    epsilon: str
    states: tuple[State, ...]
    machine: tuple[str, str, str, str, str]


def row_states(row: AnswerRow) -> tuple[State, ...]:
    """What is to be said of a row beside its number."""
    state = STATES[row.estimate.status]
    return ((state,) if state.words else ()) + (() if row.complete else (OPEN,))


def row_line(slot: Slot, grain: str, zone: str) -> RowLine:
    """The line of a span, with or without a row."""
    window, row = slot.window, slot.row
    seconds = f"{window.start_ms / 1000:.17g}", f"{window.end_ms / 1000:.17g}"
    return RowLine(
        span=span_words(window, grain, zone),
        start=local(window.start_ms, zone),
        end=local(window.end_ms, zone),
        start_utc=instant(window.start_ms),
        numbers=None if row is None else written(row.estimate),
        made_of="" if row is None else made_of(row),
        epsilon="" if row is None else f"{row.epsilon:.4g}",
        states=(slot.state,) if row is None else row_states(row),
        machine=(*seconds, *_machine_numbers(row)),
    )


def made_of(row: AnswerRow) -> str:
    """The releases of a row in words: how many of which span, of how many, and how long it is missing."""
    if row.origin == "raw":
        return "one release"
    parts = " + ".join(f"{count} {_TIMES} {name}" for name, count in row.releases.items())
    of = f" of {row.windows}" if row.released != row.windows else ""
    return f"{parts}{of}" + (f", missing {duration(row.missing_ms)}" if row.missing_ms else "")


def summary(slots: Sequence[Slot], grain: GrainChoice, zone: str) -> str:
    """A trend in words: how many spans, the largest and the smallest number, what is missing."""
    known = [slot for slot in slots if slot.state.name == "ok"]
    parts = [f"{len(slots):,} {grain.words if len(slots) == 1 else grain.plural}"]
    rows = [(slot.row.estimate, slot.window) for slot in known if slot.row is not None]
    if rows:
        for name, (estimate, window) in (
            ("largest", max(rows, key=lambda each: each[0].value)),
            ("smallest", min(rows, key=lambda each: each[0].value)),
        ):
            numbers = written(estimate)
            parts.append(f"{name} {numbers.value} ({numbers.interval}), {span_words(window, grain.name, zone)}")
    for words, number in _counts(slots):
        parts.append(f"{number:,} {words}")
    return "; ".join(parts) + "."


def _counts(slots: Sequence[Slot]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for slot in slots:
        for words in filter(None, (slot.state.words, OPEN.words if slot.is_open else "")):
            counts[words] = counts.get(words, 0) + 1
    return list(counts.items())


def _machine_numbers(row: AnswerRow | None) -> tuple[str, str, str]:
    if row is None or math.isinf(row.estimate.standard_error):
        return "", "", ""
    estimate = row.estimate
    high = f"{estimate.high:g}" if math.isfinite(estimate.high) else ""
    return f"{estimate.value:g}" if high else "", f"{estimate.low:g}", high
