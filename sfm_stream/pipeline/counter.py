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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import StateError
from sfm_stream.pipeline.plan import CountingPlan
from sfm_stream.pipeline.publish import Publisher
from sfm_stream.pipeline.state import declared_digest, drawn_through_ms, encode_state
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
from sfm_stream.windows.keys import KeyTable
from sfm_stream.windows.store import WindowStore

_FIRST_TIME_REASON = int(Reason.FUTURE)


@dataclass(slots=True)
class _Chunk:
    """A step that is due and what becomes true once it is committed."""

    step: Step
    state: PartitionState


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
        self._publisher = Publisher(plan, partition, keys, coins)
        self._clock_ms = state.clock_ms
        self._position = state.offset
        # Windows that end at or before this are due, and take no record any more. Where the committed clock has passed
        # one that no commit has closed, nothing was counted in it: replay starts no later than the first record that
        # was, and finds every record from there on late for this window, as the first reading did.
        self._due_ms = max(state.closed_through_ms, plan.windows.due_through(state.clock_ms))
        self._chunk: _Chunk | None = None
        self._invalid_run = 0
        self.failed = 0
        # Window start -> (offset, clock) to replay it from: its first record, and the clock just before that record.
        self._origins: dict[int, tuple[int, int]] = {}

    def add(self, columns: EventColumns) -> Dropped:
        """Count one batch, in order of offset; returns what was not counted.

        Raises StateError, before anything of the batch is counted, where a limit of the plan is passed.
        """
        plan = self.plan
        clocks = plan.windows.clocks(columns, self._clock_ms)
        self._require_no_gap(columns, clocks)
        reasons, starts = plan.windows.judge(columns, clocks, self._due_ms)
        reasons = self._declared_later(columns, starts, reasons)
        self._require_valid(columns)
        if not reasons.any():
            self.store.add(starts, columns.key_ids, columns.cells, columns.offsets)
        else:
            rows = np.flatnonzero(reasons == Reason.OK)
            self.store.add(starts[rows], columns.key_ids[rows], columns.cells[rows], columns.offsets[rows])
        self._note_origins(columns, clocks)
        self._position = columns.next_offset
        if len(clocks):
            self._clock_ms = int(clocks[-1])
            self._due_ms = max(self._due_ms, plan.windows.due_through(self._clock_ms))
        self._require_memory()
        return _dropped(columns, reasons)

    def passed(self, offset: int) -> None:
        """Every record before this offset has been added; offsets that hold none may lie before it."""
        self._position = max(self._position, offset)

    def finish(self) -> None:
        """The input is complete: every window that a record up to the clock may belong to is due."""
        if self._clock_ms != NO_TIME:
            self._due_ms = max(self._due_ms, self.plan.windows.last_border(self._clock_ms))

    def idle(self, until_ms: int) -> None:
        """Everything appended before until_ms has been read: what time alone closes by then is due without a record.

        The clock stays where records put it. Once committed, these windows are closed for every replay, and a record
        that comes for one of them after all is late. Raises StateError where more are due at once than a gap may have.
        """
        through, limit = self.plan.windows.due_through(until_ms), self.plan.limits.max_gap_windows
        count = (through - self._due_ms) // self.plan.windows.size_ms
        if count > limit:
            raise StateError(
                f"partition {self.partition}: {count} windows without a record would be closed at once, from "
                f"{self._due_ms} ms on, more than limits.max_gap_windows = {limit}. Raise the limit if they are to be "
                "published, else set window.start to a later border (in a new epoch, if this one has begun)"
            )
        self._due_ms = max(self._due_ms, through)

    @property
    def behind(self) -> bool:
        """Whether a window is due that no commit has closed."""
        return self._due_ms > self.state.closed_through_ms

    def step(self) -> Step | None:
        """The next transaction: releases in order of window and key, close markers, and the new position.

        None where no window is due. A draw is made once: the same step is given until committed() is called.
        """
        if self._chunk is None and self.behind:
            self._chunk = self._next_chunk()
        return self._chunk.step if self._chunk else None

    def committed(self, step: Step) -> None:
        """Take the step as done and drop the raw state of the windows that it closed."""
        if self._chunk is None or step is not self._chunk.step:
            raise StateError("committed() was called with a step that is not due")
        self.state, self._chunk = self._chunk.state, None
        closed = [start for start in self.store.starts() if start < self.state.closed_through_ms]
        for start in closed:
            self.store.drop(start)
            del self._origins[start]
        if closed:
            self.keys.retain(self.store.live_keys())

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where it did not move. For use between steps."""
        if self._chunk is not None:
            return None
        moved = self._state_at(self.state.closed_through_ms, self.state.cursor)
        if moved == self.state:
            return None
        self._chunk = _Chunk(Step(commit=(self._commit(moved),)), moved)
        return self._chunk.step

    def position(self) -> Commit:
        """The position that is committed, to go along with records that move nothing."""
        return self._commit(self.state)

    def _next_chunk(self) -> _Chunk:
        """Releases from the cursor on, and behind those of each window its close marker, until the chunk is full."""
        room = self.plan.limits.max_transaction_bytes
        records: list[Record] = []
        border, cursor = self.state.closed_through_ms, self.state.cursor
        while border < self._due_ms and room > 0:
            window = Window(border, border + self.plan.windows.size_ms)
            for key, record in self._publisher.decisions(window, self.store.get(border), cursor):
                cursor = key
                if record is not None:
                    records.append(record)
                    room -= len(record.value)
                if room <= 0:
                    break
            else:
                records.append(self._publisher.marker(window))
                room -= len(records[-1].value)
                border, cursor = window.end_ms, None
        state = self._state_at(border, cursor)
        return _Chunk(Step(publish=tuple(records), commit=(self._commit(state),)), state)

    def _state_at(self, closed_through_ms: int, cursor: bytes | None) -> PartitionState:
        """The state in which windows up to a border are closed: replay starts at the oldest window still open.

        The clock goes with the offset. The one of now may have passed windows that are due but not committed yet, and
        replay must not find their records late.
        """
        still_open = [origin for start, origin in self._origins.items() if start >= closed_through_ms]
        offset, clock_ms = min(still_open, default=(self._position, self._clock_ms))
        return replace(
            self.state,
            closed_through_ms=closed_through_ms,
            cursor=cursor,
            clock_ms=clock_ms,
            offset=offset,
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
        effective = self._publisher.effective_ms
        if effective is None:
            return reasons
        rows = np.flatnonzero(reasons == Reason.OK)
        marked = reasons.copy()
        marked[rows[starts[rows] < effective[columns.key_ids[rows]]]] = Reason.KEY_NOT_DECLARED
        return marked

    def _require_no_gap(self, columns: EventColumns, clocks: NDArray[np.int64]) -> None:
        windows, limits = self.plan.windows, self.plan.limits
        # No window is left to close before this time: none lies before the start of the epoch, idle time closed others.
        passed = max(self._clock_ms, self._due_ms + windows.grace_ms)
        jumps = np.diff(np.maximum(clocks, passed), prepend=passed)
        if len(jumps) and int(jumps.max()) > limits.max_gap_windows * windows.size_ms:
            row = int(jumps.argmax())
            raise StateError(
                f"partition {self.partition}, offset {int(columns.offsets[row])}: arrival time jumps by "
                f"{int(jumps[row])} ms, more than limits.max_gap_windows = {limits.max_gap_windows} windows. "
                "Raise the limit if the gap is real, else set window.start or remove the record"
            )

    def _require_valid(self, columns: EventColumns) -> None:
        """Stop on a long run of records that no rule can read: a wrong field name must not drain a topic."""
        found = columns.reasons
        # A key outside the declared list says nothing against the [event] section: most keys may be outside.
        valid = np.flatnonzero(
            (found == Reason.OK) | (found == Reason.KEY_NOT_DECLARED) | (found >= _FIRST_TIME_REASON)
        )
        rows = len(columns.reasons)
        if not len(valid):
            self._invalid_run += rows
            longest = self._invalid_run
        else:
            longest = max(self._invalid_run + int(valid[0]), int(np.diff(valid, append=rows).max()) - 1)
            self._invalid_run = rows - 1 - int(valid[-1])
        if longest > self.plan.limits.max_consecutive_invalid:
            top = Reason(int(np.bincount(columns.reasons[columns.reasons != Reason.OK]).argmax()))
            remedy = "Check the [event] section against the data (sfm-stream check)"
            if top == Reason.KEY_MISPLACED:
                remedy = (
                    "The topic is not keyed by the counting key, or not as kafka.partitioner says: correct that, or "
                    "copy it into one that is (sfm-stream repartition)"
                )
            raise StateError(
                f"partition {self.partition}, offset {int(columns.offsets[0])}: more than "
                f"limits.max_consecutive_invalid = {self.plan.limits.max_consecutive_invalid} records in a row are "
                f"unusable, mostly {top.name.lower()}. {remedy}"
            )

    def _require_memory(self) -> None:
        limits, held = self.plan.limits, self.store.raw_bytes()
        if len(self.keys) > limits.max_open_keys and not self.keys.fixed:
            raise StateError(
                f"partition {self.partition}: {len(self.keys)} keys are open, limits.max_open_keys = "
                f"{limits.max_open_keys}. Raise it, or shorten window.grace or window.size in a new epoch"
            )
        if held > limits.max_raw_bytes:
            raise StateError(
                f"partition {self.partition}: raw sketches hold {held} bytes, limits.max_raw_bytes = "
                f"{limits.max_raw_bytes}. Raise it, use smaller sketches or more partitions"
            )


def _dropped(columns: EventColumns, reasons: NDArray[np.uint8]) -> Dropped:
    rows = np.flatnonzero(reasons)
    counts = np.bincount(reasons[rows])
    return Dropped(
        columns.partition,
        {Reason(int(code)): int(counts[code]) for code in np.flatnonzero(counts)},
        columns.offsets[rows],
        reasons[rows],
    )
