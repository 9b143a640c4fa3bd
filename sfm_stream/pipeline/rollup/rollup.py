"""The roll-up pipeline of one partition of the sketch topic: releases in, hour and day records out. No I/O.

    rollup.restore(commit, history)   where to read from
    rollup.add(offset, payload)       one record of the sketch topic
    rollup.step()                     the next transaction that is due, or None; the same until committed() is called
    rollup.committed(step)            it is in the log

A roll-up is IDLE, or PUBLISHING what was due when step() was asked:

    phase        step()                                                        checkpoint()
    IDLE         PUBLISHING, the first records; IDLE, None where none is due   the position, where it moved
    PUBLISHING   the next records; IDLE, None where none is left               None

Recomputation costs no privacy, so recovery is replay here too: the committed offset is the first release of the
oldest base span that is not published, and the state is what was known there; open days are rebuilt from published
base records. Whether a span is final is decided by the markers before it in the log, never by when a step was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sfm_stream.errors import StateError
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.decided import DecidedHistory, DecidedWindows
from sfm_stream.pipeline.rollup.epoch import Epoch, WaitingRelease
from sfm_stream.pipeline.rollup.open_spans import ReleaseOutcome
from sfm_stream.pipeline.rollup.position import (
    EpochState,
    RollupState,
    decode_rollup_state,
    encode_rollup_state,
)
from sfm_stream.pipeline.rollup.publication import DueRecord, final_records, provisional_records
from sfm_stream.pipeline.rollup.record_reader import RecordReader
from sfm_stream.pipeline.rollup.span_rollup import EpochHead, SpanRollup
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import FOREVER_MS, LONGEST_DAY_MS, ROLLUPS
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, decode_at, encode


@dataclass(slots=True)
class MergeCounts:
    """What became of the sketch records given to a roll-up: how many releases for each outcome, and markers.

    conflicts: release ids (hex) with a second, different payload, each a privacy incident.
    """

    merged: int = 0
    duplicate: int = 0
    conflict: int = 0
    already_final: int = 0
    markers: int = 0
    conflicts: list[str] = field(default_factory=list)

    def count(self, outcome: ReleaseOutcome) -> None:
        setattr(self, outcome.value, getattr(self, outcome.value) + 1)


class Rollup:
    """Tallies of one pipeline and partition, for every epoch in it."""

    def __init__(self, pipeline: str, partition: int, calendar: Calendar, max_transaction_bytes: int = 8 << 20) -> None:
        self._pipeline, self._partition, self._calendar = pipeline, partition, calendar
        self._max_bytes = max_transaction_bytes
        self._epochs: dict[int, Epoch] = {}
        self._history = DecidedHistory()
        self._reader = RecordReader()
        self._position = 0
        self._committed: RollupState | None = None
        self._in_hand: StepInHand[RollupState] = StepInHand()
        self._publishing: Iterator[DueRecord] | None = None
        self._expire_before_ms: int | None = None
        self.seen = MergeCounts()
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
            self._epoch(saved.epoch, saved.partitions).restore(saved.spans)
        self._position, self._committed = commit.offset, state
        for payload in history:
            record = decode_at("roll-up topic", payload)
            if isinstance(record, RollupRecord) and self._is_mine(record) and record.epoch in self._epochs:
                self._epochs[record.epoch].recall(record)
        return commit.offset

    def recalls(self, end_ms: int) -> bool:
        """Whether restore() can need a published record of a span that ends then: only those in open ones matter."""
        return any(
            not span.is_published(end_ms)
            and (not self._ended(span) or span.coarsest_end_ms(end_ms) <= span.coarsest_end_ms(span.decided.through_ms))
            for span in self._with_history
        )

    @property
    def recalls_since_ms(self) -> int:
        """No record of a span that ends at or before this time can be needed by restore()."""
        open_ends = (
            span.cursor.end_ms - LONGEST_DAY_MS
            for span in self._with_history
            if not self._ended(span) or not span.is_published(span.decided.through_ms)
        )
        return max(0, min(open_ends, default=FOREVER_MS))

    def add(self, offset: int, payload: bytes) -> None:
        """Merge one record of the sketch topic; what became of it is counted in `seen`.

        Raises FormatError for bytes that are no record of this version, IncompatibleError for a release that cannot
        belong to its epoch, StateError where a close marker is missing. A second payload for a known release is
        refused, counted and kept out.
        """
        record = self._reader.read(f"sketch topic, partition {self._partition}, offset {offset}", payload)
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
        return self._in_hand.step(self._moved_position) if self._in_hand.free and self._publishing is None else None

    def _is_mine(self, record: Release | CloseMarker | RollupRecord) -> bool:
        return record.pipeline == self._pipeline and record.partition == self._partition

    def _mark(self, marker: CloseMarker, offset: int) -> None:
        epoch = self._epoch(marker.epoch, marker.partitions)
        epoch.know(marker)
        for waiting in epoch.take_waiting():
            self._merge(waiting.release, waiting.offset, waiting.payload)
        span = epoch.of(marker)
        self._history.note(offset, (marker.epoch, span.span), span.decided)
        span.mark(marker)
        self.seen.markers += 1

    def _merge(self, release: Release, offset: int, payload: bytes) -> None:
        epoch = self._epoch(release.epoch, release.partitions)
        epoch.know(release)
        if not epoch.spans:
            epoch.waiting.append(WaitingRelease(release, payload, offset))
            return
        span = epoch.of(release)
        outcome = span.merge(release, payload, offset, self._final_ms(span))
        self.seen.count(outcome)
        if outcome is ReleaseOutcome.CONFLICT:
            self.seen.conflicts.append(release.release_id.hex())

    def _epoch(self, number: int, partitions: int) -> Epoch:
        epoch = self._epochs.get(number)
        if epoch is None:
            head = EpochHead(self._pipeline, number, self._partition, partitions)
            epoch = self._epochs[number] = Epoch(head, self._calendar)
        return epoch

    @property
    def _spans(self) -> Iterator[SpanRollup]:
        """The roll-ups of the released spans of every epoch, in order of epochs, the base span first."""
        for _, epoch in sorted(self._epochs.items()):
            yield from epoch.spans.values()

    @property
    def _with_history(self) -> Iterator[SpanRollup]:
        return (span for span in self._spans if span.needs_history)

    def _ended(self, span: SpanRollup) -> bool:
        """Whether the epoch has reached the border at which a later one begins, and no further window of the span fits.

        The border is that of the base spans: windows of a longer span end and begin with their own borders.
        """
        epoch = self._epochs[span.head.epoch]
        end_ms = min((later.from_ms for later in self._later_bases(epoch)), default=None)
        base = epoch.base
        if end_ms is None or base is None or not base.decided.some or end_ms > base.decided.through_ms:
            return False
        return span is base or span.is_decided_up_to(end_ms)

    def _later_bases(self, epoch: Epoch) -> Iterator[DecidedWindows]:
        """What is decided of the base span of each later epoch, where any window of it is."""
        for number, later in self._epochs.items():
            if number > epoch.head.epoch and later.base is not None and later.base.decided.some:
                yield later.base.decided

    def _final_ms(self, span: SpanRollup) -> int:
        """What ends at or before this is final: everything, once the epoch has ended."""
        return FOREVER_MS if self._ended(span) else span.decided.through_ms

    def _next_records(self) -> Prepared[RollupState] | None:
        """As many records as a transaction has room for, and the position behind them; None where none is left."""
        if self._publishing is None:
            self._publishing = self._due_records()
        records: list[Record] = []
        room = self._max_bytes
        for due in self._publishing:
            content = due.content
            value = encode(content)
            records.append(Record(ROLLUPS, self._partition, content.key, value, content.window.end_ms))
            if due.cursor is not None:
                due.rollup.cursor = due.cursor
            room -= len(value)
            if room <= 0:
                break
        if not records:
            self._publishing = None
            return None
        return self._prepared(tuple(records), self._state())

    def _due_records(self) -> Iterator[DueRecord]:
        """Every record that is due: what is final, then what has expired."""
        for span in self._spans:
            yield from final_records(span, partial(self._final_ms, span))
        if self._expire_before_ms is not None:
            for span in self._spans:
                yield from provisional_records(span, self._expire_before_ms)
            self._expire_before_ms = None

    def _moved_position(self) -> Prepared[RollupState] | None:
        state = self._state()
        return None if state == self._committed else self._prepared((), state)

    def _state(self) -> RollupState:
        """The offset at which replay must begin, what was decided there, and what is published by now."""
        needed = (offset for epoch in self._epochs.values() if (offset := epoch.first_offset) is not None)
        offset = min(needed, default=self._position)
        now = {(span.head.epoch, span.span): span.decided for span in self._spans}
        decided = self._history.at(offset, now)
        epochs = tuple(
            EpochState(number, epoch.head.partitions, epoch.positions(decided))
            for number, epoch in sorted(self._epochs.items())
            if epoch.spans
        )
        return RollupState(self._calendar.zone, offset, epochs)

    def _prepared(self, records: tuple[Record, ...], state: RollupState) -> Prepared[RollupState]:
        return Prepared(Step(records, (Commit(self._partition, state.offset, encode_rollup_state(state)),)), state)
