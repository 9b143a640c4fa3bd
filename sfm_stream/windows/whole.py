"""Windows of an input that is complete and counted whole, in any order: there is no clock, and nothing is late.

Two borders say which windows there are. If both are configured, the windows do not depend on the data. In place of a
border that is not configured, the first or last event time of the input is used, be its record counted or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import NO_TIME, EventColumns, Reason, Window
from sfm_stream.windows.grid import Grid
from sfm_stream.windows.tumbling import Tumbling, last_border


@dataclass(frozen=True, slots=True)
class Whole(Tumbling):
    """Windows between two borders. grace_ms, max_future_skew_ms and margin_ms have no effect here.

    start_known: whether start_ms is the first border; else it is a lower bound of it. until_ms: the last border, if it
    is configured. start_given: whether the first border is configured; else it is that of the first event.
    """

    start_known: bool = True
    until_ms: int | None = None
    start_given: bool = True

    @property
    def fixed(self) -> bool:
        """Whether both borders are known without the data."""
        return self.start_known and self.until_ms is not None

    @property
    def last_ms(self) -> int:
        """No window ends later."""
        return self.end_ms if self.until_ms is None else min(self.until_ms, self.end_ms)

    def around(self, grid: Grid) -> Whole:
        """As Tumbling; a border that is not configured lies at or outside that of these windows."""
        return replace(
            self,
            grid=grid,
            start_ms=grid.ceil(self.start_ms) if self.start_given else grid.floor(self.start_ms),
            end_ms=last_border(grid, self.end_ms),
            until_ms=None if self.until_ms is None else grid.floor(self.until_ms),
        )

    def end_with(self, finer: Window) -> int:
        """The last border, where the windows of the finest span fill this time from their first to their last one."""
        if self.until_ms is not None:
            return max(self.start_ms, self.last_ms)
        if finer.start_ms == finer.end_ms:
            return self.start_ms
        return max(self.start_ms, min(self.grid.ceil(finer.end_ms), self.end_ms))

    def judge_by_borders(self, columns: EventColumns) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(reasons, window starts), shape (n,) each: the extractor's reasons, completed by the borders."""
        event = columns.event_ms
        starts = self.grid.floors(event, max(self.start_ms, 0), self.last_ms)
        if not len(event) or (int(event.min()) >= max(self.start_ms, 0) and int(event.max()) < self.last_ms):
            return columns.reasons, starts
        reasons = columns.reasons.copy()
        for reason, applies in (
            (Reason.TIME_MISSING, event == NO_TIME),
            (Reason.BEFORE_START, starts < self.start_ms),
            (Reason.AFTER_EPOCH, starts >= self.end_ms),
            (Reason.AFTER_END, starts >= self.last_ms),
        ):
            reasons[applies & (reasons == Reason.OK)] = reason
        return reasons, starts
