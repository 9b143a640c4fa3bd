"""Counting an input whole: every record in the window of its time, whatever the order, and all releases at the end.

Nothing is committed before the end of the input, so a restart while reading begins again. A restart between two
releases reads the whole input again, leaves out the records of closed windows, and goes on behind the cursor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import StateError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.counter import WindowCounter, dropped
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.position import first_progress
from sfm_stream.pipeline.counting.replay import ReplayPoint
from sfm_stream.pipeline.counting.span_counter import SpanCounter
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.types import NO_TIME, Dropped, EventColumns, PartitionState, Reason, SpanProgress, Step, Window
from sfm_stream.windows.whole import Whole


def counter_of(
    plan: CountingPlan, partition: int, state: PartitionState, keys: KeyTable, coins: Coins = SYSTEM_COINS
) -> WindowCounter:
    """The counter for this plan: a WholeCounter if the input is counted whole, else a WindowCounter."""
    kind = WholeCounter if isinstance(plan.windows, Whole) else WindowCounter
    return kind(plan, partition, state, keys, coins)


class WholeCounter(WindowCounter):
    """A WindowCounter whose windows are all open until finish(), and all due then."""

    def __init__(
        self, plan: CountingPlan, partition: int, state: PartitionState, keys: KeyTable, coins: Coins = SYSTEM_COINS
    ) -> None:
        super().__init__(plan, partition, state, keys, coins)
        # Window start -> offset of its first record with a time, counted or not: times alone say which there are.
        self._occupied: dict[int, int] = {}

    @property
    def windows(self) -> Whole:
        """The windows of the plan."""
        assert isinstance(self.plan.windows, Whole)
        return self.plan.windows

    def add(self, columns: EventColumns) -> Dropped:
        """As WindowCounter. Records of windows that an earlier run released are neither counted nor dropped."""
        reasons, starts = self.windows.judge_by_borders(columns)
        if not self.windows.fixed:
            self._note_times(columns, starts)
        reasons = self._since.judge(columns, starts, reasons)
        self.limits.require_valid(columns)
        released = self._count(columns, starts, np.flatnonzero(reasons == Reason.OK))
        self._position = columns.next_offset
        self._require_memory()
        return dropped(columns, reasons, released)

    def finish(self) -> None:
        """The input has ended: every window of each span from the first border to the last is due.

        Raises StateError where more windows without a record lie between two others than a gap may have.
        """
        start_ms, end_ms = self._borders()
        if not self.windows.start_known:
            self._begin_at(start_ms)
        filled = Window(start_ms, end_ms)
        for span in self.spans:
            assert isinstance(span.windows, Whole)
            span.schedule = span.schedule.complete_at(end_ms if span is self.base else span.windows.end_with(filled))

    def checkpoint(self) -> Step | None:
        """None: a position inside the input is never committed."""
        return None

    def _begin_at(self, start_ms: int) -> None:
        """Fix the first border, which follows from the input."""
        self.plan = replace(self.plan, windows=replace(self.windows, start_ms=start_ms, start_known=True))
        self.state = replace(self.state, start_ms=start_ms, spans=first_progress(self.plan))
        for span, (_, windows), progress in zip(self.spans, self.plan.counted, self.state.spans, strict=True):
            span.begin_at(windows, progress, NO_TIME)

    def _borders(self) -> tuple[int, int]:
        """(first border, last border)."""
        windows = self.windows
        if windows.fixed:
            return windows.start_ms, windows.last_ms
        occupied = sorted(self._occupied)
        if not occupied:
            return windows.start_ms, windows.start_ms
        start_ms = windows.start_ms if windows.start_known else occupied[0]
        end_ms = windows.grid.end(occupied[-1]) if windows.until_ms is None else windows.last_ms
        self.limits.require_few_empty([windows.grid.floor(start_ms - 1), *occupied, end_ms], self._occupied)
        return start_ms, end_ms

    def _count(self, columns: EventColumns, starts: NDArray[np.int64], rows: NDArray[np.intp]) -> int:
        """Count the rows that count. Returns how many belong to windows of every span that were released before."""
        still_open = starts[rows] >= self.base.schedule.closed_through_ms
        released = 0
        if not still_open.all():
            released = self._count_again(columns.at(rows[~still_open]))
            rows = rows[still_open]
        self.base.count(starts[rows], columns, rows)
        return released

    def _count_again(self, rows: EventColumns) -> int:
        """Put records of base windows that were released before into the coarser windows that were not.

        Returns how many of them no window takes.
        """
        taken = np.zeros(len(rows.offsets), np.bool_)
        for span in self._coarser:
            assert isinstance(span.windows, Whole)
            reasons, starts = span.windows.judge_by_borders(rows)
            counts = (self._since.judge(rows, starts, reasons) == Reason.OK) & (
                starts >= span.schedule.closed_through_ms
            )
            span.count(starts[counts], rows, np.flatnonzero(counts))
            taken |= counts
        return int(np.count_nonzero(~taken))

    def _note_times(self, columns: EventColumns, starts: NDArray[np.int64]) -> None:
        """Remember which windows the times of these records lie in."""
        if not len(starts):
            return
        rows = np.zeros(1, np.int64)
        if not (starts == starts[0]).all():
            # Each window once, as a visit costs more than a sort.
            rows = np.unique(starts, return_index=True)[1]
        for start, offset in zip(starts[rows].tolist(), columns.offsets[rows].tolist(), strict=True):
            if self.windows.start_ms <= start < self.windows.last_ms:
                self._occupied.setdefault(start, offset)

    def _forget(self, span: SpanCounter, closed: list[int]) -> None:
        """As WindowCounter, but ids of keys stay: no record follows that would need one.

        Raises StateError where the coarser windows that took the cells are more than a partition may hold: no record
        follows with which that would be noticed.
        """
        span.forget(closed)
        if self._coarser and span is self.base:
            self._require_memory()

    def _state_at(self, span: SpanCounter, progress: SpanProgress) -> PartitionState:
        """Replay starts at the first byte until all is closed; then there is nothing left to read."""
        if progress.closed_through_ms > span.schedule.due_ms:
            raise StateError(f"partition {self.partition}: a window was closed behind the end of the input")
        spans = self._progress_with(span, progress)
        closed = all(
            each.schedule.closed(mine.closed_through_ms).closed_through_ms == each.schedule.due_ms
            for each, mine in zip(self.spans, spans, strict=True)
        )
        return self._state_from(ReplayPoint(self._position if closed else 0, NO_TIME), spans)
