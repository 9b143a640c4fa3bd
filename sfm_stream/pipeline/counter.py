"""The counting pipeline of one partition: event columns in, steps to publish out. No I/O, no clock of its own.

    counter.add(columns)         columns -> open windows; says what was dropped
    counter.step()               the next transaction that is due, or None; the same one until committed() is called
    counter.committed(step)      it is in the log: forget the raw state behind it

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
from sfm_stream.privacy.key_rules import DeclaredKeys
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
        # Borders up to which windows are due, ascending, each with the (offset, clock) to replay it from.
        self._due: list[tuple[int, tuple[int, int]]] = []
        self._chunk: _Chunk | None = None
        self._invalid_run = 0
        # Window start -> (offset, clock) to replay it from: its first record, and the clock just before that record.
        self._origins: dict[int, tuple[int, int]] = {}

    def add(self, columns: EventColumns) -> Dropped:
        """Count one batch, in order of offset; returns what was not counted.

        Raises StateError, before anything of the batch is counted, where a limit of the plan is passed.
        """
        plan = self.plan
        clocks = plan.windows.clocks(columns, self._clock_ms)
        self._require_no_gap(columns, clocks)
        reasons, starts = plan.windows.judge(columns, clocks, self.state.closed_through_ms)
        reasons = self._declared_later(columns, starts, reasons)
        self._require_valid(columns)
        if not reasons.any():
            self.store.add(starts, columns.key_ids, columns.cells, columns.offsets)
        else:
            rows = np.flatnonzero(reasons == Reason.OK)
            self.store.add(starts[rows], columns.key_ids[rows], columns.cells[rows], columns.offsets[rows])
        self._note_origins(columns, clocks)
        self._note_due(columns, clocks)
        self._position = columns.next_offset
        if len(clocks):
            self._clock_ms = int(clocks[-1])
        self._require_memory()
        return _dropped(columns, reasons)

    def finish(self) -> None:
        """The input is complete: every window that a record up to the clock may belong to is due."""
        if self._clock_ms != NO_TIME:
            last = self.plan.windows.last_border(self._clock_ms)
            if last > self._due_through():
                self._due.append((last, (self._position, self._clock_ms)))

    def step(self) -> Step | None:
        """The next transaction: releases in order of window and key, a close marker, and the new position.

        None where no window is due. A draw is made once: the same step is given until committed() is called.
        """
        if self._chunk is None and self._due:
            self._chunk = self._next_chunk()
        return self._chunk.step if self._chunk else None

    def committed(self, step: Step) -> None:
        """Take the step as done and drop the raw state of the windows that it closed."""
        if self._chunk is None or step is not self._chunk.step:
            raise StateError("committed() was called with a step that is not due")
        self.state, self._chunk = self._chunk.state, None
        self._due = [due for due in self._due if due[0] > self._marked_through()]
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
        moved = self._state_at(self.state.closed_through_ms, self.state.cursor, self._marked_through())
        if moved == self.state:
            return None
        self._chunk = _Chunk(Step(commit=(self._commit(moved),)), moved)
        return self._chunk.step

    def _next_chunk(self) -> _Chunk:
        """Releases from the cursor on, until the chunk is full or every due window is decided.

        There is a close marker for each border that the clock made due, whatever batches or chunks lie between them:
        what is published follows the arrival times of single records, never the lengths of lines.
        """
        size = self.plan.windows.size_ms
        room = self.plan.limits.max_transaction_bytes
        records: list[Record] = []
        border, cursor, marked = self.state.closed_through_ms, self.state.cursor, self._marked_through()
        for due, _ in self._due:
            while border < due and (room > 0 or not self._decides(border)):
                window = Window(border, border + size)
                for key, record in self._publisher.decisions(window, self.store.get(border), cursor):
                    cursor = key
                    if record is not None:
                        records.append(record)
                        room -= len(record.value)
                    if room <= 0:
                        break
                else:
                    border, cursor = self._after(window, due), None
            if border < due:
                break
            records.append(self._publisher.marker(marked, due))
            marked = due
        state = self._state_at(border, cursor, marked)
        return _Chunk(Step(publish=tuple(records), commit=(self._commit(state),)), state)

    def _decides(self, start_ms: int) -> bool:
        """Whether there is anything to decide in the window that starts there."""
        return isinstance(self.plan.keys, DeclaredKeys) or self.store.get(start_ms) is not None

    def _after(self, window: Window, due_ms: int) -> int:
        """The next border at which there is something to decide: windows in which nothing was counted are passed."""
        if isinstance(self.plan.keys, DeclaredKeys):
            return window.end_ms
        later = (start for start in self.store.starts() if start >= window.end_ms)
        return min(next(later, due_ms), due_ms)

    def _marked_through(self) -> int:
        """The end of the last close marker."""
        marked = self.state.marked_through_ms
        return self.state.closed_through_ms if marked is None else marked

    def _due_through(self) -> int:
        """The last border that is due or marked already."""
        return self._due[-1][0] if self._due else self._marked_through()

    def _note_due(self, columns: EventColumns, clocks: NDArray[np.int64]) -> None:
        """Remember each border that a record of this batch made due, and where its replay begins: at that record."""
        windows, after = self.plan.windows, self._due_through()
        if not len(clocks) or windows.due_through(int(clocks[-1])) <= after:
            return
        for row in windows.due_rows(clocks, after).tolist():
            before = int(clocks[row - 1]) if row else self._clock_ms
            self._due.append((windows.due_through(int(clocks[row])), (int(columns.offsets[row]), before)))

    def _state_at(self, closed_through_ms: int, cursor: bytes | None, marked_through_ms: int) -> PartitionState:
        """The state in which windows up to a border are closed: replay starts at the oldest window still open.

        Or at the record that made a border due which is not marked yet, where that is earlier.

        The clock goes with the offset. The one of now may have passed windows that are due but not committed yet, and
        replay must not find their records late.
        """
        still_open = [origin for start, origin in self._origins.items() if start >= closed_through_ms]
        still_due = [origin for border, origin in self._due if border > marked_through_ms]
        offset, clock_ms = min(still_open + still_due, default=(self._position, self._clock_ms))
        return replace(
            self.state,
            closed_through_ms=closed_through_ms,
            cursor=cursor,
            clock_ms=clock_ms,
            offset=offset,
            declared=declared_digest(self.plan, drawn_through_ms(closed_through_ms, self.state.window_ms, cursor)),
            marked_through_ms=None if marked_through_ms == closed_through_ms else marked_through_ms,
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
        limit = self.plan.limits.max_gap_windows * self.plan.windows.size_ms
        # Before the start of the epoch there is nothing to close, so no gap either.
        clocks = np.maximum(clocks, self.state.start_ms)
        jumps = np.diff(clocks, prepend=max(self._clock_ms, self.state.start_ms))
        if len(jumps) and int(jumps.max()) > limit:
            row = int(jumps.argmax())
            raise StateError(
                f"partition {self.partition}, offset {int(columns.offsets[row])}: arrival time jumps by "
                f"{int(jumps[row])} ms, more than limits.max_gap_windows = {self.plan.limits.max_gap_windows} windows. "
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
            raise StateError(
                f"partition {self.partition}, offset {int(columns.offsets[0])}: more than "
                f"limits.max_consecutive_invalid = {self.plan.limits.max_consecutive_invalid} records in a row are "
                f"unusable, mostly {top.name.lower()}. Check the [event] section against the data (sfm-stream check)"
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
