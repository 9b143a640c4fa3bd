"""Tumbling windows and the clock of a partition.

A record has two times. Its event time says which window it belongs to; its arrival time says whether it still counts.
The clock is the largest arrival time seen; it decides when a window is published. Arrival times are of two kinds:

- The log gives them (LogAppendTime); margin_ms is set. A record is counted if and only if arrival <= window.end + grace
  and event <= arrival + max_future_skew. That depends on the record alone. A window closes margin_ms later than its end
  and grace, so arrival times may step back by margin_ms, as they do between the clocks of two brokers, without effect.
- They are part of the record (files, CreateTime); margin_ms is None. Then earlier records matter too: a window that the
  clock has passed takes no more records.

In both cases the content of an item has no influence on whether other records count. In the first case no other record
has any influence at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import NO_TIME, EventColumns, Reason
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import Grid


@dataclass(frozen=True, slots=True)
class Tumbling:
    """The windows of one span: those of a grid, from start_ms (a border) up to end_ms (a border, or FOREVER_MS).

    margin_ms: how far arrival times may step back where the log gives them; None where they are part of the record.
    """

    grid: Grid
    grace_ms: int
    max_future_skew_ms: int
    start_ms: int
    end_ms: int = FOREVER_MS
    margin_ms: int | None = None

    def due_through(self, time_ms: int) -> int:
        """The end of the last window that no record arriving at this time or later can count in; at most end_ms."""
        return min(self.grid.floor(time_ms - self.grace_ms - 1), self.end_ms)

    def closed_by(self, clock_ms: int) -> int:
        """The end of the last window that a clock closes: a record behind it may have arrived margin_ms earlier."""
        return self.due_through(clock_ms - (self.margin_ms or 0))

    def border_behind(self, clock_ms: int) -> int:
        """The end of the last window that a record up to this clock may belong to; at most end_ms."""
        return min(self.grid.end(self.grid.floor(clock_ms + self.max_future_skew_ms)), self.end_ms)

    def around(self, grid: Grid) -> Tumbling:
        """The windows of a coarser span: those of its grid that these fill from the first to the last."""
        return replace(self, grid=grid, start_ms=grid.ceil(self.start_ms), end_ms=last_border(grid, self.end_ms))

    def clocks(self, columns: EventColumns, clock_ms: int) -> NDArray[np.int64]:
        """Shape (n,): the clock of the partition at each row, that row's own arrival included."""
        if not len(columns.arrival_ms):
            return columns.arrival_ms
        clocks = np.maximum.accumulate(columns.arrival_ms)
        return clocks if clocks[0] >= clock_ms else np.maximum(clocks, clock_ms)

    def judge(
        self, columns: EventColumns, clocks: NDArray[np.int64], closed_through_ms: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(reasons, window starts), shape (n,) each: the extractor's reasons, completed by what time decides."""
        event = columns.event_ms
        latest_ms = (int(clocks[-1]) if len(clocks) else 0) + self.max_future_skew_ms
        starts = self.grid.floors(event, self.start_ms, latest_ms)
        arrived = clocks if self.margin_ms is None else columns.arrival_ms
        if self._none_to_judge(columns, starts, clocks, closed_through_ms):
            return columns.reasons, starts
        reasons = columns.reasons.copy()
        for reason, applies in (
            (Reason.TIME_MISSING, columns.arrival_ms == NO_TIME),
            (Reason.FUTURE, event > columns.arrival_ms + self.max_future_skew_ms),
            (Reason.BEFORE_START, starts < self.start_ms),
            (Reason.AFTER_EPOCH, starts >= self.end_ms),
            (Reason.LATE, (starts < closed_through_ms) | (self.grid.ends(starts) + self.grace_ms < arrived)),
        ):
            if applies.any():
                reasons[applies & (reasons == Reason.OK)] = reason
        return reasons, starts

    def _none_to_judge(
        self, columns: EventColumns, starts: NDArray[np.int64], clocks: NDArray[np.int64], closed_through_ms: int
    ) -> bool:
        """Whether the extremes of a batch show that none of the rules can apply to any of its rows."""
        if not len(starts):
            return True
        first, arrival = int(starts.min()), columns.arrival_ms
        return (
            first >= max(self.start_ms, closed_through_ms, 0)
            and self.grid.end(first) + self.grace_ms >= int(clocks[-1])
            and int(starts.max()) < self.end_ms
            and int(arrival.min()) > NO_TIME
            and (arrival is columns.event_ms or int((columns.event_ms - arrival).max()) <= self.max_future_skew_ms)
        )


def last_border(grid: Grid, time_ms: int) -> int:
    """The last border at or before a time; FOREVER_MS for FOREVER_MS, which is no time."""
    return time_ms if time_ms == FOREVER_MS else grid.floor(time_ms)
