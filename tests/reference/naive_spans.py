"""What a pipeline of several released spans has to publish, with plain sets, one record at a time: no rule is shared.

Each span is judged by itself, as if it were alone: no store of one span feeds another here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reference.naive_windows import Row

from sfm_stream.types import Reason


@dataclass(frozen=True)
class NaiveSpan:
    """borders: ascending, from before the first time to behind the last. Only windows in [first, last] are released."""

    name: str
    borders: Sequence[int]
    first: int
    last: int

    def window(self, time: int) -> tuple[int, int]:
        """The window that holds a time."""
        place = bisect_right(self.borders, time)
        return self.borders[place - 1], self.borders[place]

    def released(self, low: int, high: int) -> list[tuple[int, int]]:
        """The windows that are released between two times."""
        every = pairwise(self.borders)
        return [(a, b) for a, b in every if max(low, self.first) <= a and b <= min(high, self.last)]


def fixed(name: str, size: int, low: int, high: int, until: int) -> NaiveSpan:
    """Windows of one length that lie wholly between two times."""
    borders = list(range(-size, until, size))
    inside = [border for border in borders if low <= border <= high]
    return NaiveSpan(name, borders, inside[0] if inside else until, inside[-1] if inside else until)


def naive_spans(
    spans: Sequence[NaiveSpan],
    rows: Sequence[Row],
    grace: int,
    skew: int,
    stamped: bool = False,
    since: Mapping[Any, int] | None = None,
) -> tuple[list[Reason], dict[tuple[str, int, Any], set[int]], int]:
    """(fate of each row, (span, window start, key) -> cells, the clock behind the last row).

    stamped: the log gives arrival times, so that each row is judged by its own. since: first window start of each
    declared key.
    """
    clock, fates = -1, []
    cells: dict[tuple[str, int, Any], set[int]] = defaultdict(set)
    for row in rows:
        clock = max(clock, row.arrival)
        judged = [_fate(span, row, row.arrival if stamped else clock, grace, skew, since) for span in spans]
        for span, reason in zip(spans, judged, strict=True):
            if reason == Reason.OK:
                cells[span.name, span.window(row.event)[0], row.key].add(row.cell)
        fates.append(Reason.OK if Reason.OK in judged else judged[0])
    return fates, dict(cells), clock


def _fate(span: NaiveSpan, row: Row, now: int, grace: int, skew: int, since: Mapping[Any, int] | None) -> Reason:
    if row.reason:
        return Reason(row.reason)
    if row.arrival == -1:
        return Reason.TIME_MISSING
    if row.event > row.arrival + skew:
        return Reason.FUTURE
    start, end = span.window(row.event)
    if start < span.first:
        return Reason.BEFORE_START
    if start >= span.last:
        return Reason.AFTER_EPOCH
    if end + grace < now:
        return Reason.LATE
    return Reason.KEY_NOT_DECLARED if since is not None and start < since[row.key] else Reason.OK
