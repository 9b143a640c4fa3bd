"""The roll-up pipeline of one partition of the sketch topic: releases in, hour and day records out. No I/O.

    rollup.restore(commit, history)   where to read from
    rollup.add(offset, payload)       one record of the sketch topic
    rollup.step()                     the next transaction that is due, or None; the same until committed() is called
    rollup.committed(step)            it is in the log

Recomputation costs no privacy, so recovery is replay here too: the committed offset is the first release of the
oldest base span that is not published, and the state is what was known there; open days are rebuilt from published
base records. Whether a span is final is decided by the markers before it in the log, never by when a step was taken.

Everything final is published in one order for each epoch: (end of span, grain, key). The cursor is the last place in
it that is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from sfm_stream.errors import StateError
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.open_spans import Epoch, EpochHead, Outcome, Span
from sfm_stream.pipeline.rollup.position import (
    Cursor,
    EpochState,
    RollupState,
    decode_rollup_state,
    encode_rollup_state,
)
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import LONGEST_DAY_MS, ROLLUPS
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, decode_at, encode

_FOREVER_MS = 1 << 63

_Due: TypeAlias = Iterator[tuple[Record, Epoch, Cursor | None]]
"""Records in order, each with the cursor that its commit sets (None for provisional ones)."""


@dataclass(slots=True)
class Seen:
    """What became of the sketch records given to a roll-up, by outcome."""

    merged: int = 0
    duplicate: int = 0
    conflict: int = 0
    already_final: int = 0
    markers: int = 0
    conflicts: list[str] = field(default_factory=list)
    """Release ids (hex) with a second, different payload: each a privacy incident."""

    def count(self, outcome: Outcome) -> None:
        if outcome == "merged":
            self.merged += 1
        elif outcome == "duplicate":
            self.duplicate += 1
        elif outcome == "conflict":
            self.conflict += 1
        else:
            self.already_final += 1


@dataclass(frozen=True, slots=True)
class _Mark:
    """A marker that replay may meet again, and what its epoch had decided before it."""

    offset: int
    epoch: int
    from_ms: int
    through_ms: int


class Rollup:
    """Tallies of one pipeline and partition, for every epoch in it."""

    def __init__(self, pipeline: str, partition: int, calendar: Calendar, max_transaction_bytes: int = 8 << 20) -> None:
        self._pipeline, self._partition, self._calendar = pipeline, partition, calendar
        self._max_bytes = max_transaction_bytes
        self._epochs: dict[int, Epoch] = {}
        self._marks: deque[_Mark] = deque()
        self._position = 0
        self._committed: RollupState | None = None
        self._in_hand: StepInHand[RollupState] = StepInHand()
        self._queue: _Due | None = None
        self._expire_before_ms: int | None = None
        self.seen = Seen()
        self.failed = 0

    def restore(self, commit: Commit | None, history: Iterable[bytes]) -> int:
        """Take up a committed state; history: the partition's published roll-ups. Returns the offset to read from.

        Raises StateError for a state of another zone or version, IncompatibleError where the history does not agree.
        """
        if commit is None:
            return 0
        state = decode_rollup_state(commit)
        if state.zone != self._calendar.zone:
            raise StateError(
                f"rollup.zone is {self._calendar.zone}, the roll-ups so far are of {state.zone}; days of two zones do "
                "not mix: set it back, or give days of another zone a pipeline.id of their own, with window.start "
                "behind all that this pipeline ever released"
            )
        for saved in state.epochs:
            epoch = self._epoch(saved.epoch, saved.partitions, saved.window_ms)
            epoch.from_ms, epoch.through_ms, epoch.cursor = saved.from_ms, saved.through_ms, saved.cursor
        self._position, self._committed = commit.offset, state
        for payload in history:
            record = decode_at("roll-up topic", payload)
            if isinstance(record, RollupRecord) and self._is_mine(record) and record.epoch in self._epochs:
                self._epochs[record.epoch].recall(record)
        return commit.offset

    def recalls(self, end_ms: int) -> bool:
        """Whether restore() can need a published record of a span that ends then: only those of open days matter."""
        day_ms = self._day_end_ms(end_ms)
        return any(
            not epoch.cursor.covers(day_ms, "day", None)
            and (self._final_ms(epoch) < _FOREVER_MS or day_ms <= self._day_end_ms(epoch.through_ms))
            for epoch in self._epochs.values()
        )

    @property
    def recalls_since_ms(self) -> int:
        """No record of a span that ends at or before this time can be needed by restore()."""
        open_ends = (
            epoch.cursor.end_ms - LONGEST_DAY_MS
            for epoch in self._epochs.values()
            if self._final_ms(epoch) < _FOREVER_MS
            or not epoch.cursor.covers(self._day_end_ms(epoch.through_ms), "day", None)
        )
        return max(0, min(open_ends, default=_FOREVER_MS - 1))

    def add(self, offset: int, payload: bytes) -> None:
        """Merge one record of the sketch topic; outcomes are counted in `seen`.

        Raises FormatError for bytes that are no record of this version, IncompatibleError for a release that cannot
        belong to its epoch, StateError where a close marker is missing. A second payload for a known release is
        refused, counted and kept out.
        """
        record = decode_at(f"sketch topic, partition {self._partition}, offset {offset}", payload)
        if isinstance(record, RollupRecord):
            raise StateError(f"sketch topic, offset {offset}: a roll-up record where a release is expected")
        if self._is_mine(record):
            if isinstance(record, CloseMarker):
                self._mark(record, offset)
            else:
                self._merge(record, offset, payload)
        self._position = offset + 1

    def passed(self, offset: int) -> None:
        """Every record before this offset has been added; offsets that hold none may lie before it."""
        self._position = max(self._position, offset)

    def expire(self, before_ms: int) -> None:
        """Spans that end at or before this time are published as they stand, marked as not complete."""
        self._expire_before_ms = before_ms

    def step(self) -> Step | None:
        """The next transaction of roll-ups that are due, or None; the same one until committed() is called."""
        return self._in_hand.step(self._next_records)

    def committed(self, step: Step) -> None:
        """Take the step as done."""
        self._committed = self._in_hand.committed(step)

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where nothing moved."""
        return self._in_hand.step(self._moved_position) if self._in_hand.free and self._queue is None else None

    def _day_end_ms(self, end_ms: int) -> int:
        return self._calendar.span("day", end_ms - 1).end_ms

    def _is_mine(self, record: Release | CloseMarker | RollupRecord) -> bool:
        return record.pipeline == self._pipeline and record.partition == self._partition

    def _mark(self, marker: CloseMarker, offset: int) -> None:
        epoch = self._epoch(marker.epoch, marker.partitions, marker.window_ms)
        self._marks.append(_Mark(offset, marker.epoch, epoch.from_ms, epoch.through_ms))
        epoch.mark(marker)
        self.seen.markers += 1

    def _merge(self, release: Release, offset: int, payload: bytes) -> None:
        epoch = self._epoch(release.epoch, release.partitions, release.window.end_ms - release.window.start_ms)
        outcome = epoch.add(release, payload, offset, self._final_ms(epoch))
        self.seen.count(outcome)
        if outcome == "conflict":
            self.seen.conflicts.append(release.release_id.hex())

    def _epoch(self, number: int, partitions: int, window_ms: int) -> Epoch:
        epoch = self._epochs.get(number)
        if epoch is None:
            head = EpochHead(self._pipeline, number, self._partition, partitions, window_ms)
            epoch = self._epochs[number] = Epoch(head, self._calendar, Cursor(0, 0, None))
        return epoch

    def _final_ms(self, epoch: Epoch) -> int:
        """Spans that end at or before this are final. After an epoch has reached the next one, all of its spans are."""
        for number, later in self._epochs.items():
            if number > epoch.head.epoch and later.marked and epoch.marked and later.from_ms <= epoch.through_ms:
                return _FOREVER_MS
        return epoch.through_ms

    def _due(self) -> _Due:
        """Every record that is due; what is final, then what has expired."""
        for _, epoch in sorted(self._epochs.items()):
            while (span := epoch.due(self._final_ms(epoch))) is not None:
                yield from self._final(epoch, span)
                del epoch.spans[span.grain, span.window.start_ms]
        if self._expire_before_ms is not None:
            for _, epoch in sorted(self._epochs.items()):
                yield from self._provisional(epoch, self._expire_before_ms)
            self._expire_before_ms = None

    def _final(self, epoch: Epoch, span: Span) -> _Due:
        end_ms, rank = span.rank
        coarser = epoch.coarser(span.window) if span.grain == self._calendar.base else []
        for key in sorted(span.keys):
            if epoch.cursor.covers(end_ms, span.grain, key):
                continue
            total = span.keys.pop(key).sum  # its memory is free again before the next key takes any
            for around in coarser:
                around.entry(key, total).sum.add_sum(total)
            record = epoch.record(span, key, total, complete=True)
            yield self._record(record), epoch, Cursor(end_ms, rank, key)
        epoch.cursor = Cursor(end_ms, rank, None)

    def _provisional(self, epoch: Epoch, before_ms: int) -> _Due:
        """Open spans that should have ended, as far as they are known, where they changed since the last time."""
        late = [span for span in epoch.spans.values() if span.window.end_ms <= before_ms]
        for span in sorted(late, key=lambda s: s.rank):
            parts = epoch.parts(span)
            for key in sorted({key for part in parts for key in part.keys}):
                sums = [part.keys[key].sum for part in parts if key in part.keys]
                revision = epoch.revision(span, sum(part.releases for part in sums), complete=False)
                if span.published.get(key, 0) >= revision:
                    continue
                total = TallySum.like(sums[0])
                for part in sums:
                    total.add_sum(part)
                record = epoch.record(span, key, total, complete=False)
                span.published[key] = revision
                yield self._record(record), epoch, None

    def _moved_position(self) -> Prepared[RollupState] | None:
        state = self._state()
        return None if state == self._committed else self._prepared((), state)

    def _next_records(self) -> Prepared[RollupState] | None:
        """The next records of the queue, which is begun where there is none and dropped once it is empty."""
        if self._queue is None:
            self._queue = self._due()
        records: list[Record] = []
        room = self._max_bytes
        for record, epoch, cursor in self._queue:
            records.append(record)
            if cursor is not None:
                epoch.cursor = cursor
            room -= len(record.value)
            if room <= 0:
                break
        if not records:
            self._queue = None
            return None
        return self._prepared(tuple(records), self._state())

    def _state(self) -> RollupState:
        """The offset at which replay must begin, what was decided there, and what is published by now."""
        spans = (span for epoch in self._epochs.values() for span in epoch.spans.values())
        offset = min((s.first_offset for s in spans if s.first_offset is not None), default=self._position)
        while self._marks and self._marks[0].offset < offset:
            self._marks.popleft()
        decided = {number: (epoch.from_ms, epoch.through_ms) for number, epoch in self._epochs.items()}
        for mark in reversed(self._marks):
            decided[mark.epoch] = (mark.from_ms, mark.through_ms)
        epochs = tuple(
            EpochState(n, e.head.partitions, e.head.window_ms, *decided[n], e.cursor)
            for n, e in sorted(self._epochs.items())
        )
        return RollupState(self._calendar.zone, offset, epochs)

    def _prepared(self, records: tuple[Record, ...], state: RollupState) -> Prepared[RollupState]:
        return Prepared(Step(records, (Commit(self._partition, state.offset, encode_rollup_state(state)),)), state)

    def _record(self, record: RollupRecord) -> Record:
        return Record(ROLLUPS, self._partition, record.key, encode(record), record.window.end_ms)
