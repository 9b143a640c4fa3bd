"""The copy of one partition of the outbox to the sketch topic: committed records in, the same bytes out. No I/O.

    copy.restore(commit)              where to read from
    copy.add(offset, key, payload)    one record of the outbox
    copy.due(now_ms)                  what time it is
    copy.step()                       the next transaction that is due, or None; the same until committed() is called
    copy.committed(step)              it is in the log

Records are copied in the order of the outbox. A record that does not belong there is refused, for good:

    state     add()                              step(), checkpoint()     committed(the step in hand)
    COPYING   the record waits; or is refused:   as in in_hand.py         COPYING
              REFUSED, and the error is raised
    REFUSED   the same error                     the same error           REFUSED: it may have been under way

So what is public stays public, and nothing more follows. What a record is by itself is judged in outbox_record.py,
which record may follow in outbox_epoch.py.

A successor also reads what was copied of windows that no marker has closed. It does not copy these releases again, but
refuses a second payload for them. Payloads are told apart by 128 bits of a fast hash, since ingest workers alone write
here: what they draw twice differs by chance, and nobody chooses it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import msgspec
from xxhash import xxh3_128_digest

from sfm_stream.errors import ConflictError, SfmStreamError, StateError
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.pipeline.outbox_epoch import OutboxEpoch, ReleaseRead
from sfm_stream.pipeline.outbox_record import OutboxRecords, RunRelease
from sfm_stream.readable import instant
from sfm_stream.types import NO_TIME, Commit, Record, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release
from sfm_stream.wire.keys import MARKER_KEY
from sfm_stream.wire.stored_state import StateCodec, StoredFields


class _CopyFields(StoredFields, frozen=True):
    offset: Annotated[int, msgspec.Meta(ge=0)]
    reads_from: Annotated[int, msgspec.Meta(ge=0)]
    """Offset of the first copied release of a window that no marker has closed; that of the position without one."""


_CODEC = StateCodec(_CopyFields, version=1)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A record that is not copied yet, its offset in the outbox, and the time from which on it may be public.

    size: bytes of key and value.
    """

    offset: int
    record: Record
    due_ms: int
    size: int


@dataclass(frozen=True, slots=True)
class _Copied:
    """What is true once a step is committed: so many of the waiting records are copied, up to this position."""

    count: int
    position: int


class OutboxCopy:
    """Copies one partition for one pipeline.

    hold_ms: a record is held until this long after the end of its window, and all records behind it too; None: every
    record is due at once.
    """

    def __init__(self, pipeline: str, partition: int, max_transaction_bytes: int, hold_ms: int | None = None) -> None:
        self._partition, self._records = partition, OutboxRecords(pipeline, partition)
        self._max_bytes, self._hold_ms = max_transaction_bytes, hold_ms
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._epochs: dict[int, OutboxEpoch] = {}
        # All before `_position` is read, all before `_committed` is committed. Records before `_copied` were public
        # when this object was made: they are judged and not copied again.
        self._position = self._committed = self._copied = 0
        self._now_ms = NO_TIME
        self._in_hand: StepInHand[_Copied] = StepInHand()
        self._refusal: SfmStreamError | None = None
        self.failed = 0

    def restore(self, commit: Commit | None) -> int:
        """Take up a committed position. Returns the offset to read from, which may lie before it.

        Raises StateError for a state of another version.
        """
        if commit is not None:
            stored = _stored(commit)
            self._position, self._committed, self._copied = stored.reads_from, stored.offset, stored.offset
        return self._position

    def add(self, offset: int, key: bytes | None, payload: bytes | None) -> None:
        """Take one record of the outbox, to be copied once it is due.

        Raises StateError for one that does not belong there, ConflictError for a second payload of a release. Then
        nothing more is published: whatever is asked of this object later raises the same.
        """
        self._require_no_refusal()
        try:
            waiting = self._judge(offset, key, payload)
            if offset >= self._copied:
                self._waiting.append(waiting)
                self._waiting_bytes += waiting.size
        except SfmStreamError as error:
            self._refusal = error
            raise
        self._position = offset + 1

    def passed(self, offset: int) -> None:
        """Every record before this offset has been added; offsets that hold none may lie before it."""
        self._position = max(self._position, offset)

    def due(self, now_ms: int) -> None:
        """What is due is decided by this time from now on. A step that was given stays due."""
        self._now_ms = now_ms

    @property
    def gathered(self) -> bool:
        """Whether the next transaction gains nothing by waiting: a window is whole, or enough waits to fill it."""
        waiting = self._waiting
        return bool(waiting) and (waiting[-1].record.key == MARKER_KEY or self._waiting_bytes >= self._max_bytes)

    def step(self) -> Step | None:
        """The next transaction: as many records as are due and have room, at least one, and the new position.

        None where nothing is due; the same one until committed() is called.
        """
        self._require_no_refusal()
        return self._in_hand.step(self._next_records)

    def committed(self, step: Step) -> None:
        """Take the step as done."""
        copied = self._in_hand.committed(step)
        for _ in range(copied.count):
            self._waiting_bytes -= self._waiting.popleft().size
        self._committed = copied.position

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where it did not move or a record waits. For use between steps."""
        self._require_no_refusal()
        return self._in_hand.step(self._moved_position) if self._in_hand.free else None

    def _moved_position(self) -> Prepared[_Copied] | None:
        if self._waiting or self._position <= self._committed:
            return None
        return self._prepared((), self._position)

    def _next_records(self) -> Prepared[_Copied] | None:
        count = self._count_due()
        if not count:
            return None
        records = tuple(waiting.record for waiting in islice(self._waiting, count))
        return self._prepared(records, self._waiting[count].offset if count < len(self._waiting) else self._position)

    def _count_due(self) -> int:
        """How many of the waiting records are due and have room in one transaction; at least one of those due."""
        count, room = 0, self._max_bytes
        for waiting in self._waiting:
            room -= waiting.size
            if (count and room < 0) or (self._hold_ms is not None and self._now_ms < waiting.due_ms):
                break
            count += 1
        return count

    def _prepared(self, records: tuple[Record, ...], position: int) -> Prepared[_Copied]:
        open_offsets = (epoch.first_open_offset for epoch in self._epochs.values())
        reads_from = min([position, *(offset for offset in open_offsets if offset is not None)])
        step = Step(records, (Commit(self._partition, position, _CODEC.encode(position, reads_from)),))
        return Prepared(step, _Copied(len(records), position))

    def _judge(self, offset: int, key: bytes | None, payload: bytes | None) -> _Waiting:
        """The record to publish, after every check."""
        where = f"outbox, partition {self._partition}, offset {offset}"
        if offset < self._position:
            raise StateError(f"{where}: everything before offset {self._position} has been read already")
        record = self._records.read(where, key, payload)
        assert payload is not None
        like = record if isinstance(record, CloseMarker) else record.like
        epoch = self._epochs.get(like.epoch)
        if epoch is None:
            epoch = self._epochs[like.epoch] = OutboxEpoch()
        _require_agreement(epoch, like, where)
        if isinstance(record, CloseMarker):
            _take_marker(epoch, record, xxh3_128_digest(payload), where)
            to_publish = Record(SKETCHES, self._partition, MARKER_KEY, payload, record.through_ms)
        else:
            _take_release(epoch, record, xxh3_128_digest(payload), offset, where)
            to_publish = Record(SKETCHES, self._partition, record.key, payload, record.like.window.end_ms)
        due_ms = to_publish.timestamp_ms + (self._hold_ms or 0)
        return _Waiting(offset, to_publish, due_ms, len(to_publish.key) + len(payload))

    def _require_no_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def _take_release(epoch: OutboxEpoch, record: RunRelease, digest: bytes, offset: int, where: str) -> None:
    """A release must be of a window that no marker has closed, and the only payload of its id."""
    release = record.like
    read = epoch.release(record.release_id, digest, release.span, release.window, offset)
    if read is ReleaseRead.BEHIND_MARKER:
        raise StateError(
            f"{where}: a release for the {_window(release.span)} that ends at {instant(release.window.end_ms)}, behind "
            f"the close marker of epoch {release.epoch} through {_end_of_last_marker(epoch, release.span)}"
        )
    if read is ReleaseRead.SECOND_PAYLOAD:
        raise ConflictError(
            f"{where}: a second, different payload for release {record.release_id.hex()}: a privacy incident. It was "
            "not published; keep the outbox"
        )


def _take_marker(epoch: OutboxEpoch, marker: CloseMarker, digest: bytes, where: str) -> None:
    """A marker must go on where the one before it of its span ended, or be the same once more."""
    if not epoch.follows(marker.span, marker.start_ms, digest):
        raise StateError(
            f"{where}: a close marker of epoch {marker.epoch}{_of_span(marker.span)} from {instant(marker.start_ms)} "
            f"on, the one before it ended at {_end_of_last_marker(epoch, marker.span)}"
        )
    epoch.marker(marker.span, marker.through_ms, digest)


def _require_agreement(epoch: OutboxEpoch, record: Release | CloseMarker, where: str) -> None:
    """All records of an epoch name their span, or none does."""
    if not epoch.agrees(record.span):
        named = ("with the name of its span", "without") if record.span else ("without the name of its span", "with")
        raise StateError(
            f"{where}: a record of epoch {record.epoch} {named[0]}, where those before it are {named[1]} one"
        )


def _window(span: str | None) -> str:
    return "window" if span is None else f"window of span {span}"


def _of_span(span: str | None) -> str:
    return "" if span is None else f", span {span},"


def _end_of_last_marker(epoch: OutboxEpoch, span: str | None) -> str:
    through_ms = epoch.through_ms(span)
    assert through_ms is not None
    return instant(through_ms)


def _stored(commit: Commit) -> _CopyFields:
    """What is in a committed position. Raises StateError where it is not one this version wrote."""
    where = f"outbox, partition {commit.partition}"
    stored = _CODEC.decode_commit(commit, where)
    if stored.reads_from > stored.offset:
        raise StateError(
            f"{where}: the committed state begins at offset {stored.reads_from}, behind its own position "
            f"{stored.offset}"
        )
    return stored
