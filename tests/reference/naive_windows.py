"""Open windows and the fate of every record, with plain sets, one record at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfm_stream.types import Reason


class Row(NamedTuple):
    """One record as extraction sees it. reason: what extraction says of it, OK unless it cannot be used."""

    offset: int
    arrival: int
    event: int
    key: Any
    cell: int
    reason: int = 0


@dataclass(frozen=True)
class Rules:
    """Windows of `size` from `start` to `end`, both borders; times in milliseconds."""

    size: int
    grace: int
    skew: int
    start: int
    end: int


def naive_cells(rows: Iterable[tuple[int, int, int]]) -> dict[int, dict[int, set[int]]]:
    """(window start, key, cell) of every row -> window start -> key -> cells."""
    windows: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for start, key, cell in rows:
        windows[start][key].add(cell)
    return {start: dict(keys) for start, keys in windows.items()}


def naive_judge(rules: Rules, clock: int, row: Row) -> Reason:
    """The fate of a record at the clock of its partition, its own arrival included."""
    start = row.event // rules.size * rules.size
    if row.reason:
        return Reason(row.reason)
    if row.arrival == -1:
        return Reason.TIME_MISSING
    if row.event > row.arrival + rules.skew:
        return Reason.FUTURE
    if start < rules.start:
        return Reason.BEFORE_START
    if start >= rules.end:
        return Reason.AFTER_EPOCH
    return Reason.LATE if start + rules.size + rules.grace < clock else Reason.OK


def naive_count(rules: Rules, rows: Sequence[Row]) -> tuple[list[Reason], dict[int, dict[object, set[int]]], int]:
    """(reason of each row, window start -> key -> cells, the clock after the last row)."""
    clock, reasons = -1, []
    windows: dict[int, dict[object, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        clock = max(clock, row.arrival)
        reasons.append(naive_judge(rules, clock, row))
        if reasons[-1] == Reason.OK:
            windows[row.event // rules.size * rules.size][row.key].add(row.cell)
    return reasons, {start: dict(keys) for start, keys in windows.items()}, clock
