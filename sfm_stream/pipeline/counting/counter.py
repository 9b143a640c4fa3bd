"""The counting pipeline of one partition: event columns in, steps to publish out. No I/O, no clock of its own.

    counter.add(columns)         columns -> open windows; says what was dropped
    counter.step()               the next transaction that is due, or None; the same one until committed() is called
    counter.committed(step)      it is in the log: forget the raw state behind it

When a window is due is decided in schedule.py. Each window gets its releases and then one close marker, whether or not
anything was counted in it, so what is published up to any border follows from the windows alone
(docs/decisions/0008-one-marker-for-each-window.md).

A restart drops this object and replays from the committed offset: records decide by themselves whether they count,
so the second reading gives what the first one gave.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.limits import CountingLimits
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.position import declared_digest, encode_state
from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.counting.replay import ReplayPoint, ReplayPoints
from sfm_stream.pipeline.counting.schedule import Schedule
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.types import Commit, Dropped, EventColumns, PartitionState, Reason, Record, Step
from sfm_stream.windows.store import WindowStore


class WindowCounter:
    """Distinct items for each key and window of one partition. Holds SECRET state in `store`."""

    def __init__(
        self, plan: CountingPlan, partition: int, state: PartitionState, keys: KeyTable, coins: Coins = SYSTEM_COINS
    ) -> None:
        self.plan = plan
        self.partition = partition
        self.keys = keys
        self.state = state
        self.store = WindowStore(plan.span.shape, plan.span.size_ms)
        self.limits = CountingLimits(plan, partition)
        self.failed = 0
        self._draw = ReleaseDraw(plan, partition, keys, coins)
        self._schedule = Schedule.begin(plan.windows, state.closed_through_ms, state.clock_ms)
        self._replay = ReplayPoints()
        self._position, self._mark = state.offset, state.mark
        self._in_hand: StepInHand[PartitionState] = StepInHand()

    def add(self, columns: EventColumns) -> Dropped:
        """Count one batch, in order of offset; returns what was not counted.

        Raises StateError, before anything of the batch is counted, where a limit of the plan is passed.
        """
        windows, before = self.plan.windows, self._schedule
        clocks = windows.clocks(columns, before.clock_ms)
        self.limits.require_steady(columns, clocks, before.idle_ms)
        self.limits.require_no_gap(columns, clocks, before.clock_ms, before.due_ms)
        reasons, starts = windows.judge(columns, clocks, before.due_ms)
        reasons = self._declared_later(columns, starts, reasons)
        self.limits.require_valid(columns)
        if not reasons.any():
            self.store.add(starts, columns.key_ids, columns.cells, columns.offsets)
        else:
            rows = np.flatnonzero(reasons == Reason.OK)
            self.store.add(starts[rows], columns.key_ids[rows], columns.cells[rows], columns.offsets[rows])
        self._replay.note(self.store, columns, clocks, before.clock_ms)
        self._position = columns.next_offset
        if len(clocks):
            self._schedule = before.arrived(int(clocks[-1]))
        self.limits.require_memory(self.keys, self.store)
        return dropped(columns, reasons)

    def passed(self, offset: int) -> None:
        """Every record before this offset has been added; offsets that hold none may lie before it."""
        self._position = max(self._position, offset)

    def read_to(self, mark: str) -> None:
        """Take what the input calls itself up to here; it is kept with the position."""
        self._mark = mark

    def finish(self) -> None:
        """The input is complete: every window that a record up to the clock may belong to is due."""
        self._schedule = self._schedule.complete()

    def idle(self, until_ms: int) -> None:
        """No record to come arrives before until_ms: what time alone closes by then is due without a record.

        Once committed, these windows are closed for every replay, and a record that comes for one of them after all is
        late. Raises StateError where more are due at once than a gap may have.
        """
        idle = self._schedule.idle(until_ms)
        self.limits.require_short_idling(self._schedule.due_ms, idle.due_ms)
        self._schedule = idle

    @property
    def open_windows(self) -> int:
        """How many windows hold something."""
        return len(self.store.starts())

    @property
    def behind(self) -> bool:
        """Whether a window is due that no commit has closed."""
        return self._schedule.behind

    def step(self) -> Step | None:
        """The next transaction: releases in order of window and key, close markers, and the new position.

        None where no window is due. A draw is made once: the same step is given until committed() is called.
        """
        return self._in_hand.step(self._next_releases)

    def committed(self, step: Step) -> None:
        """Take the step as done and drop the raw state of the windows that it closed."""
        self.state = self._in_hand.committed(step)
        self._schedule = self._schedule.closed(self.state.closed_through_ms)
        closed = [start for start in self.store.starts() if start < self.state.closed_through_ms]
        if closed:
            self._forget(closed)

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where it did not move. For use between steps."""
        return self._in_hand.step(self._moved_position) if self._in_hand.free else None

    def position(self) -> Commit:
        """The position that is committed, to go along with records that move nothing."""
        return self._commit(self.state)

    def _forget(self, closed: list[int]) -> None:
        """Drop the raw state of windows, and free the ids of keys that no other holds."""
        for start in closed:
            self.store.drop(start)
        self._replay.forget(closed)
        self.keys.retain(self.store.live_keys())

    def _moved_position(self) -> Prepared[PartitionState] | None:
        moved = self._state_at(self.state.span.closed_through_ms, self.state.span.cursor)
        return None if moved == self.state else self._prepared((), moved)

    def _next_releases(self) -> Prepared[PartitionState] | None:
        """Releases from the cursor on, and behind those of each window its close marker, until the step is full."""
        if not self.behind:
            return None
        room = self.plan.limits.max_transaction_bytes
        records: list[Record] = []
        border, cursor = self.state.span.closed_through_ms, self.state.span.cursor
        for window in self._schedule.due_windows():
            for key, record in self._draw.decisions(window, self.store.get(window.start_ms), cursor):
                cursor = key
                if record is not None:
                    records.append(record)
                    room -= len(record.value)
                if room <= 0:
                    break
            else:
                records.append(self._draw.marker(window))
                room -= len(records[-1].value)
                border, cursor = window.end_ms, None
            if room <= 0:
                break
        return self._prepared(tuple(records), self._state_at(border, cursor))

    def _prepared(self, records: tuple[Record, ...], state: PartitionState) -> Prepared[PartitionState]:
        return Prepared(Step(publish=records, commit=(self._commit(state),)), state)

    def _state_at(self, closed_through_ms: int, cursor: bytes | None) -> PartitionState:
        """The state in which windows up to a border are closed: replay starts at the oldest window still open."""
        here = ReplayPoint(self._position, self._schedule.clock_ms)
        return self._state_from(self._replay.earliest(closed_through_ms, here), closed_through_ms, cursor)

    def _state_from(self, replay: ReplayPoint, closed_through_ms: int, cursor: bytes | None) -> PartitionState:
        span = replace(self.state.span, closed_through_ms=closed_through_ms, cursor=cursor)
        return replace(
            self.state,
            spans=(span,),
            clock_ms=replay.clock_ms,
            offset=replay.offset,
            mark=self._mark,
            declared=declared_digest(self.plan, span.drawn_through_ms),
        )

    def _commit(self, state: PartitionState) -> Commit:
        return Commit(self.partition, state.offset, encode_state(state))

    def _declared_later(
        self, columns: EventColumns, starts: NDArray[np.int64], reasons: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """The reasons, with rows marked whose declared key takes effect in a later window."""
        effective = self._draw.effective_ms
        if effective is None:
            return reasons
        rows = np.flatnonzero(reasons == Reason.OK)
        marked = reasons.copy()
        marked[rows[starts[rows] < effective[columns.key_ids[rows]]]] = Reason.KEY_NOT_DECLARED
        return marked


def dropped(columns: EventColumns, reasons: NDArray[np.uint8], released: int = 0) -> Dropped:
    """What is not counted of a batch, by the reasons of its rows. released: as in Dropped."""
    rows = np.flatnonzero(reasons)
    counts = np.bincount(reasons[rows])
    return Dropped(
        columns.partition,
        {Reason(int(code)): int(counts[code]) for code in np.flatnonzero(counts)},
        columns.offsets[rows],
        reasons[rows],
        released,
    )
