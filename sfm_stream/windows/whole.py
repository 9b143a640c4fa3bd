"""Windows of an input that is complete and counted whole, in any order: there is no clock, and nothing is late.

Which windows there are is said by two borders. Where both are configured it does not hang on the data at all. Where one
is not, the first or the last event time of the input stands in for it, of whatever record it is, dropped or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import NO_TIME, EventColumns, Reason
from sfm_stream.windows.tumbling import Tumbling


@dataclass(frozen=True, slots=True)
class Whole(Tumbling):
    """start_known: start_ms is the first border; else it is a lower bound of it. until_ms: the last one, if configured.

    grace_ms, max_future_skew_ms and margin_ms mean nothing here.
    """

    start_known: bool = True
    until_ms: int | None = None

    @property
    def fixed(self) -> bool:
        """Whether both borders are known without the data."""
        return self.start_known and self.until_ms is not None

    @property
    def last_ms(self) -> int:
        """No window ends later."""
        return self.end_ms if self.until_ms is None else min(self.until_ms, self.end_ms)

    def place(self, columns: EventColumns) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(reasons, window starts), shape (n,) each: the extractor's reasons, completed by the borders."""
        event = columns.event_ms
        starts = event - event % self.size_ms
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
