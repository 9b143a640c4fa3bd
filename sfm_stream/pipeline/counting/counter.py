"""The counting pipeline of one partition: event columns in, steps to publish out. No I/O, no clock of its own.

    counter.add(columns)         columns -> open windows; says what was dropped
    counter.step()               the next transaction that is due, or None; the same one until committed() is called
    counter.committed(step)      it is in the log: forget the raw state behind it

Each window gets its releases and then one close marker, whether or not anything was counted in it, so what is
published up to any border follows from the windows alone (docs/decisions/0008-one-marker-for-each-window.md).

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
from sfm_stream.pipeline.counting.position import declared_digest, drawn_through_ms, encode_state
from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.types import (
    NO_TIME,
    Commit,
    Dropped,
    EventColumns,
    PartitionState,
    Reason,
    Record,
    Step,
    Window,
)
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
        self.store = WindowStore(plan.shape, plan.windows.size_ms)
        self._draw = ReleaseDraw(plan, partition, keys, coins)
        self._clock_ms = state.clock_ms
        self._position = state.offset
        self._mark = state.mark
        # Windows that end at or before this are due, and take no record any more. Where the committed clock has passed
        # one that no commit has closed, nothing was counted in it: replay starts no later than the first record that
        # was, and finds every record from there on late for this window, as the first reading did.
        self._due_ms = max(state.closed_through_ms, plan.windows.closed_by(state.clock_ms))
        # Everything that had arrived at this time has been added, as far as time without records has told.
        self._idle_ms = NO_TIME
        self._in_hand: StepInHand[PartitionState] = StepInHand()
        self.limits = CountingLimits(plan, partition)
        self.failed = 0
        # Window start -> (offset, clock) to replay it from: its first record, and the clock just before that record.
        self._origins: dict[int, tuple[int, int]] = {}

    def add(self, columns: EventColumns) -> Dropped:
        """Count one batch, in order of offset; returns what was not counted.

        Raises StateError, before anything of the batch is counted, where a limit of the plan is passed.
        """
        plan = self.plan
        clocks = plan.windows.clocks(columns, self._clock_ms)
        self.limits.require_steady(columns, clocks, self._idle_ms)
        self.limits.require_no_gap(columns, clocks, self._clock_ms, self._due_ms)
        reasons, starts = plan.windows.judge(columns, clocks, self._due_ms)
        reasons = self._declared_later(columns, starts, reasons)
        self.limits.require_valid(columns)
        if not reasons.any():
            self.store.add(starts, columns.key_ids, columns.cells, columns.offsets)
        else:
            rows = np.flatnonzero(reasons == Reason.OK)
            self.store.add(starts[rows], columns.key_ids[rows], columns.cells[rows], columns.offsets[rows])
        self._note_origins(columns, clocks)
        self._position = columns.next_offset
        if len(clocks):
            self._clock_ms = int(clocks[-1])
            self._due_ms = max(self._due_ms, plan.windows.closed_by(self._clock_ms))
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
        if self._clock_ms != NO_TIME:
            self._due_ms = max(self._due_ms, self.plan.windows.last_border(self._clock_ms))

    def idle(self, until_ms: int) -> None:
        """No record to come arrives before until_ms: what time alone closes by then is due without a record.

        The clock stays where records put it. Once committed, these windows are closed for every replay, and a record
        that comes for one of them after all is late. Raises StateError where more are due at once than a gap may have.
        """
        through = self.plan.windows.due_through(until_ms)
        self.limits.require_short_idling(self._due_ms, through)
        self._due_ms = max(self._due_ms, through)
        self._idle_ms = max(self._idle_ms, until_ms)

    @property
    def open_windows(self) -> int:
        """How many windows hold something."""
        return len(self.store.starts())

    @property
    def behind(self) -> bool:
        """Whether a window is due that no commit has closed."""
        return self._due_ms > self.state.closed_through_ms

    def step(self) -> Step | None:
        """The next transaction: releases in order of window and key, close markers, and the new position.

        None where no window is due. A draw is made once: the same step is given until committed() is called.
        """
        return self._in_hand.step(self._next_releases)

    def committed(self, step: Step) -> None:
        """Take the step as done and drop the raw state of the windows that it closed."""
        self.state = self._in_hand.committed(step)
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
            del self._origins[start]
        self.keys.retain(self.store.live_keys())

    def _moved_position(self) -> Prepared[PartitionState] | None:
        moved = self._state_at(self.state.closed_through_ms, self.state.cursor)
        return None if moved == self.state else self._prepared((), moved)

    def _next_releases(self) -> Prepared[PartitionState] | None:
        """Releases from the cursor on, and behind those of each window its close marker, until the step is full."""
        if not self.behind:
            return None
        room = self.plan.limits.max_transaction_bytes
        records: list[Record] = []
        border, cursor = self.state.closed_through_ms, self.state.cursor
        while border < self._due_ms and room > 0:
            window = Window(border, border + self.plan.windows.size_ms)
            for key, record in self._draw.decisions(window, self.store.get(border), cursor):
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
        return self._prepared(tuple(records), self._state_at(border, cursor))

    def _prepared(self, records: tuple[Record, ...], state: PartitionState) -> Prepared[PartitionState]:
        return Prepared(Step(publish=records, commit=(self._commit(state),)), state)

    def _state_at(self, closed_through_ms: int, cursor: bytes | None) -> PartitionState:
        """The state in which windows up to a border are closed: replay starts at the oldest window still open.

        The clock goes with the offset. The one of now may have passed windows that are due but not committed yet, and
        replay must not find their records late.
        """
        still_open = [origin for start, origin in self._origins.items() if start >= closed_through_ms]
        offset, clock_ms = min(still_open, default=(self._position, self._clock_ms))
        return self._state_from(offset, clock_ms, closed_through_ms, cursor)

    def _state_from(self, offset: int, clock_ms: int, closed_through_ms: int, cursor: bytes | None) -> PartitionState:
        return replace(
            self.state,
            closed_through_ms=closed_through_ms,
            cursor=cursor,
            clock_ms=clock_ms,
            offset=offset,
            mark=self._mark,
            declared=declared_digest(self.plan, drawn_through_ms(closed_through_ms, self.state.window_ms, cursor)),
        )

    def _note_origins(self, columns: EventColumns, clocks: NDArray[np.int64]) -> None:
        """Remember for each window opened by this batch where its replay begins."""
        for start in self.store.starts():
            if start not in self._origins:
                window = self.store.get(start)
                assert window is not None
                row = int(np.searchsorted(columns.offsets, window.first_offset))
                before = int(clocks[row - 1]) if row else self._clock_ms
                self._origins[start] = (window.first_offset, before)

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
