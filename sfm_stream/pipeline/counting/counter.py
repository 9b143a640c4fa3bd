"""The counting pipeline of one partition: event columns in, steps to publish out. No I/O, no clock of its own.

    counter.add(columns)         columns -> open windows of the base span; says what was dropped
    counter.step()               the next transaction that is due, or None; the same one until committed() is called
    counter.committed(step)      it is in the log: the coarser spans absorb what it closed, the raw state is forgotten

What is released is one span or several, each a SpanCounter. A record is put into its base window; where it comes too
late for that, into each coarser window that it still counts in. When a window is due is decided in schedule.py. Due
windows are taken in the order of their end, and of one end the shorter first; a step has windows of one span only. So
a coarser window is drawn when every base window inside it is closed and absorbed
(docs/decisions/0030-released-spans.md).

Each window gets its releases and then one close marker, whether or not anything was counted in it, so what is
published up to any border follows from the windows alone (docs/decisions/0008-one-marker-for-each-window.md).

A restart drops this object and replays from the committed offset: records decide by themselves whether they count,
so the second reading gives what the first one gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.declared_since import DeclaredSince
from sfm_stream.pipeline.counting.limits import CountingLimits
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.position import declared_digest, encode_state
from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.counting.replay import ReplayPoint
from sfm_stream.pipeline.counting.schedule import Schedule
from sfm_stream.pipeline.counting.span_counter import SpanCounter
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.released_span import widest
from sfm_stream.types import Commit, Dropped, EventColumns, PartitionState, Reason, Record, SpanProgress, Step
from sfm_stream.units import FOREVER_MS


class WindowCounter:
    """Distinct items for each key and window of one partition. Holds SECRET state in its spans."""

    def __init__(
        self, plan: CountingPlan, partition: int, state: PartitionState, keys: KeyTable, coins: Coins = SYSTEM_COINS
    ) -> None:
        self.plan = plan
        self.partition = partition
        self.keys = keys
        self.state = state
        self.limits = CountingLimits(plan, partition)
        self.failed = 0
        cells = widest(plan.spans)
        self.spans = tuple(
            SpanCounter(span, windows, progress, state.clock_ms, cells, ReleaseDraw(plan, span, partition, keys, coins))
            for (span, windows), progress in zip(plan.counted, state.spans, strict=True)
        )
        self.base, *self._coarser = self.spans
        self._since = DeclaredSince(plan, keys)
        self._kept_keys = 0
        self._digest: tuple[int | None, str] = (None, "")
        """That of the declared keys, and the border that it is of: all steps of a window have the same."""
        self._position, self._mark = state.offset, state.mark
        self._in_hand: StepInHand[PartitionState] = StepInHand()

    def add(self, columns: EventColumns) -> Dropped:
        """Count one batch, in order of offset; returns what was not counted.

        Raises StateError, before anything of the batch is counted, where a limit of the plan is passed.
        """
        base, before = self.base, self.base.schedule
        clocks = base.windows.clocks(columns, before.clock_ms)
        self.limits.require_steady(columns, clocks, before.idle_ms)
        self.limits.require_no_gap(columns, clocks, before.clock_ms, before.due_ms)
        reasons, starts = base.windows.judge(columns, clocks, before.due_ms)
        reasons = self._since.judge(columns, starts, reasons)
        self.limits.require_valid(columns)
        if not reasons.any():
            base.count(starts, columns, slice(None))
        else:
            rows = np.flatnonzero(reasons == Reason.OK)
            base.count(starts[rows], columns, rows)
            reasons = self._count_late(columns, clocks, reasons)
        self._note_opened(columns, clocks)
        self._position = columns.next_offset
        if len(clocks):
            self._advance(lambda schedule: schedule.arrived(int(clocks[-1])))
        if len(self.keys) > self.plan.limits.max_open_keys:
            self._free_keys()  # ids that no window holds are freed late, see _forget(), and are no reason to stop
        self._require_memory()
        return dropped(columns, reasons)

    def passed(self, offset: int) -> None:
        """Every record before this offset has been added; offsets that hold none may lie before it."""
        self._position = max(self._position, offset)

    def read_to(self, mark: str) -> None:
        """Take what the input calls itself up to here; it is kept with the position."""
        self._mark = mark

    def finish(self) -> None:
        """The input is complete: every window that a record up to the clock may belong to is due."""
        self._advance(Schedule.complete)

    def idle(self, until_ms: int) -> None:
        """No record to come arrives before until_ms: what time alone closes by then is due without a record.

        Once committed, these windows are closed for every replay, and a record that comes for one of them after all is
        late. Raises StateError where more are due at once than a gap may have.
        """
        idle = self.base.schedule.idle(until_ms)
        self.limits.require_short_idling(self.base.schedule.due_ms, idle.due_ms)
        self._advance(lambda schedule: schedule.idle(until_ms))

    @property
    def open_windows(self) -> int:
        """How many windows hold something."""
        return sum(len(span.store.starts()) for span in self.spans)

    @property
    def raw_bytes(self) -> int:
        """Bytes of sketch state held."""
        return sum(span.store.raw_bytes() for span in self.spans)

    @property
    def behind(self) -> bool:
        """Whether a window is due that no commit has closed."""
        return any(span.schedule.behind for span in self.spans)

    def step(self) -> Step | None:
        """The next transaction: releases in order of window and key, close markers, and the new position.

        None where no window is due. A draw is made once: the same step is given until committed() is called.
        """
        return self._in_hand.step(self._next_releases)

    def committed(self, step: Step) -> None:
        """Take the step as done: coarser spans absorb the windows that it closed, and their raw state is dropped."""
        self.state = self._in_hand.committed(step)
        for span, progress in zip(self.spans, self.state.spans, strict=True):
            if closed := span.closed(progress):
                if span is self.base:
                    self._absorb(closed)
                self._forget(span, closed)

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where it did not move. For use between steps."""
        return self._in_hand.step(self._moved_position) if self._in_hand.free else None

    def position(self) -> Commit:
        """The position that is committed, to go along with records that move nothing."""
        return self._commit(self.state)

    def _count_late(
        self, columns: EventColumns, clocks: NDArray[np.int64], reasons: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Put what comes too late for its base window into each coarser window that it counts in.

        Returns the reasons, OK for a row that counts in any.
        """
        if not self._coarser or not len(late := np.flatnonzero(reasons == Reason.LATE)):
            return reasons
        rows, some_clocks, reasons = columns.at(late), clocks[late], reasons.copy()
        for span in self._coarser:
            judged, starts = span.windows.judge(rows, some_clocks, span.schedule.due_ms)
            counted = np.flatnonzero(self._since.judge(rows, starts, judged) == Reason.OK)
            span.count(starts[counted], rows, counted)
            reasons[late[counted]] = Reason.OK
        return reasons

    def _note_opened(self, columns: EventColumns, clocks: NDArray[np.int64]) -> None:
        """Note where replay has to begin for each window of any span that has its first record in this batch."""
        clock_ms = self.base.schedule.clock_ms
        opened = self.base.replay.note(self.base.store, columns, clocks, clock_ms)
        for span in self._coarser:
            span.replay.note(span.store, columns, clocks, clock_ms)
            span.expect(opened)

    def _advance(self, event: Callable[[Schedule], Schedule]) -> None:
        for span in self.spans:
            span.schedule = event(span.schedule)

    def _require_memory(self) -> None:
        self.limits.require_memory(self.keys, [span.store for span in self.spans])

    def _absorb(self, closed: list[int]) -> None:
        """Give the cells of closed base windows to the coarser windows around them."""
        for start_ms in closed:
            window = self.base.store.get(start_ms)
            assert window is not None
            for span in self._coarser:
                span.absorb(start_ms, window)

    def _forget(self, span: SpanCounter, closed: list[int]) -> None:
        """Drop the raw state of windows, and free the ids of keys that no other holds."""
        span.forget(closed)
        # What leaves a base window is mostly held by a coarser one, and to look at that costs time.
        if not self._coarser or span is not self.base or len(self.keys) > 2 * self._kept_keys:
            self._free_keys()

    def _free_keys(self) -> None:
        """Free the ids of keys that no window holds."""
        self.keys.retain(np.concatenate([span.store.live_keys() for span in self.spans]))
        self._kept_keys = len(self.keys)

    def _moved_position(self) -> Prepared[PartitionState] | None:
        moved = self._state_at(self.base, self.base.progress)
        return None if moved == self.state else self._prepared((), moved)

    def _next_releases(self) -> Prepared[PartitionState] | None:
        """Releases of one span from its cursor on, and behind those of each window its close marker, until the step is
        full or a window of another span comes first.
        """
        span, end_ms = self._next_span()
        if span is None:
            return None
        room = self.plan.limits.max_transaction_bytes
        records: list[Record] = []
        progress = span.progress
        for window in span.due_before(end_ms):
            cursor = progress.cursor
            for key, record in span.draw.decisions(window, span.store.get(window.start_ms), cursor):
                cursor = key
                if record is not None:
                    records.append(record)
                    room -= len(record.value)
                if room <= 0:
                    break
            else:
                records.append(span.draw.marker(window))
                room -= len(records[-1].value)
                progress = SpanProgress(span.span.name, window.end_ms)
            if room <= 0:
                break
        if progress.closed_through_ms < window.end_ms:
            progress = replace(progress, cursor=cursor, cursor_end_ms=window.end_ms)
        state = self._state_at(span, progress)
        drawn = tuple(border for border in state.drawn.items() if border not in self.state.drawn.items())
        return self._prepared(tuple(records), state, drawn)

    def _next_span(self) -> tuple[SpanCounter | None, int]:
        """(the span whose window is next, the last end of its windows that come before those of every other span)."""
        due = [(window.end_ms, place) for place, span in enumerate(self.spans) if (window := span.first_due)]
        if not due:
            return None, 0
        _, place = min(due)
        ends = [end_ms if other > place else end_ms - 1 for end_ms, other in due if other != place]
        return self.spans[place], min(ends, default=FOREVER_MS)

    def _prepared(
        self, records: tuple[Record, ...], state: PartitionState, drawn: tuple[tuple[str, int], ...] = ()
    ) -> Prepared[PartitionState]:
        return Prepared(Step(publish=records, commit=(self._commit(state),), drawn=drawn), state)

    def _state_at(self, span: SpanCounter, progress: SpanProgress) -> PartitionState:
        """The state in which this span has come so far: replay starts at the oldest window of any span still open."""
        here = ReplayPoint(self._position, self.base.schedule.clock_ms)
        spans = self._progress_with(span, progress)
        earliest = (
            each.replay.earliest(mine.closed_through_ms, here) for each, mine in zip(self.spans, spans, strict=True)
        )
        return self._state_from(min(earliest), spans)

    def _progress_with(self, span: SpanCounter, progress: SpanProgress) -> tuple[SpanProgress, ...]:
        return tuple(progress if each is span else each.progress for each in self.spans)

    def _state_from(self, replay: ReplayPoint, spans: tuple[SpanProgress, ...]) -> PartitionState:
        state = replace(self.state, spans=spans, clock_ms=replay.clock_ms, offset=replay.offset, mark=self._mark)
        if self._digest[0] != (drawn_ms := state.drawn_through_ms):
            self._digest = (drawn_ms, declared_digest(self.plan, drawn_ms))
        return replace(state, declared=self._digest[1])

    def _commit(self, state: PartitionState) -> Commit:
        return Commit(self.partition, state.offset, encode_state(state))


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
