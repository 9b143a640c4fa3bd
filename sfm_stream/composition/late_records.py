"""How many records of a sample come too late, for `check`."""

from __future__ import annotations

from sfm_stream.config.config import Config
from sfm_stream.types import NO_TIME, EventColumns, Reason


class LateRecords:
    """How many records come too late for their window, in the order in which they are read."""

    def __init__(self, config: Config) -> None:
        self._windows = None if config.whole else config.plan(1, config.window.start or 0).windows
        self._clocks: dict[int, int] = {}
        self.count = 0

    def add(self, columns: EventColumns, rows: int) -> None:
        """The first so many rows of these columns."""
        if self._windows is None or not len(columns.offsets):
            return
        clocks = self._windows.clocks(columns, self._clocks.get(columns.partition, NO_TIME))
        reasons, _ = self._windows.judge(columns, clocks, 0)
        self.count += int((reasons[:rows] == Reason.LATE).sum())
        self._clocks[columns.partition] = int(clocks[-1])
