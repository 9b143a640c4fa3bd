"""Where replay begins for each open window: at its first counted record, with the clock just before that record.

The clock goes with the offset. The clock of now may have passed windows that are due and not committed yet; replay
with it would find their records late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import EventColumns
from sfm_stream.windows.store import WindowStore


@dataclass(frozen=True, slots=True, order=True)
class ReplayPoint:
    """An offset to read from, and the largest arrival time of all records before it."""

    offset: int
    clock_ms: int


class ReplayPoints:
    """The replay point of every open window of one span of one partition."""

    def __init__(self) -> None:
        self._points: dict[int, ReplayPoint] = {}

    def note(
        self, store: WindowStore, columns: EventColumns, clocks: NDArray[np.int64], clock_ms: int
    ) -> dict[int, ReplayPoint]:
        """Take a point for each window of the store that this batch opened, and return these points by window start.

        clock_ms: the clock before the batch.
        """
        opened = {}
        for start_ms in store.starts_without(self._points.keys()):
            offset = store.first_offset_of(start_ms)
            row = int(np.searchsorted(columns.offsets, offset))
            opened[start_ms] = ReplayPoint(offset, int(clocks[row - 1]) if row else clock_ms)
        self._points |= opened
        return opened

    def take(self, start_ms: int, point: ReplayPoint) -> None:
        """Take a point of a record that this window gets when a finer one around the record is closed."""
        self._points[start_ms] = min(point, self._points.get(start_ms, point))

    def earliest(self, closed_through_ms: int, none_open: ReplayPoint) -> ReplayPoint:
        """Where replay begins once windows up to a border are closed; none_open where no other window is open."""
        still_open = [point for start_ms, point in self._points.items() if start_ms >= closed_through_ms]
        return min(still_open, default=none_open)

    def forget(self, closed_through_ms: int) -> None:
        """Drop the points of windows that are closed."""
        for start_ms in [start_ms for start_ms in self._points if start_ms < closed_through_ms]:
            del self._points[start_ms]
