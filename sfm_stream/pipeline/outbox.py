"""The copy of one partition of the outbox to the sketch topic: committed records in, the same bytes out. No I/O.

    copy.restore(commit)              where to read from
    copy.add(offset, key, payload)    one record of the outbox
    copy.due(now_ms)                  what time it is
    copy.step()                       the next transaction that is due, or None; the same until committed() is called
    copy.committed(step)              it is in the log

Records are copied in the order of the outbox, and only such as belong there. One that does not stops the copy before
anything that is not yet committed: what is public stays public. A successor reads again, without copying it, what was
copied of windows that no marker has closed, so that a second payload is refused by it too.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

import msgspec

from sfm_stream.errors import ConflictError, FormatError, SfmStreamError, StateError
from sfm_stream.pipeline.counting.releases import MARKER_KEY
from sfm_stream.pipeline.in_hand import Prepared, StepInHand
from sfm_stream.readable import instant
from sfm_stream.types import NO_TIME, Commit, Record, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, decode, payload_digest
from sfm_stream.wire.stored_state import StateCodec, StoredFields


class _Stored(StoredFields, frozen=True):
    offset: Annotated[int, msgspec.Meta(ge=0)]
    since: Annotated[int, msgspec.Meta(ge=0)]
    """The first copied release of a window that no marker has closed; the offset where there is none."""


_CODEC = StateCodec(_Stored, version=1)


@dataclass(frozen=True, slots=True)
class _Held:
    """A record that is not copied yet, its offset in the outbox, and since when it may be public."""

    offset: int
    record: Record
    due_ms: int


@dataclass(frozen=True, slots=True)
class _Copied:
    """What a step does: how many of the held records it copies, and the position that it commits."""

    count: int
    position: int


@dataclass(slots=True)
class _Epoch:
    """What was read of one epoch: releases behind its last marker, and that marker."""

    digests: dict[bytes, tuple[bytes, int, int]] = field(default_factory=dict)
    """Release id -> (digest of its payload, end of its window, offset), in order of offset."""
    through_ms: int | None = None
    marker: bytes = b""
    """Digest of the last marker."""


class OutboxCopy:
    """Copies one partition for one pipeline.

    hold_ms: a record is held until this long after the end of its window, and all records behind it too; None: every
    record is due at once.
    """

    def __init__(self, pipeline: str, partition: int, max_transaction_bytes: int, hold_ms: int | None = None) -> None:
        self._pipeline, self._partition = pipeline, partition
        self._max_bytes, self._hold_ms = max_transaction_bytes, hold_ms
        self._held: deque[_Held] = deque()
        self._epochs: dict[int, _Epoch] = {}
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
            self._position, self._committed, self._copied = stored.since, stored.offset, stored.offset
        return self._position

    def add(self, offset: int, key: bytes | None, payload: bytes | None) -> None:
        """Take one record of the outbox, to be copied once it is due.

        Raises StateError for one that does not belong there, ConflictError for a second payload of a release. Then
        nothing more is published: whatever is asked of this object later raises the same.
        """
        self._require_no_refusal()
        try:
            held = self._judge(offset, key, payload)
            if offset >= self._copied:
                self._held.append(held)
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
    def wakes_ms(self) -> int | None:
        """When the first record that is held becomes due; None where none is, or nothing has to wait."""
        return self._held[0].due_ms if self._held and self._hold_ms is not None else None

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
            self._held.popleft()
        self._committed = copied.position

    def checkpoint(self) -> Step | None:
        """A commit of the position alone, None where it did not move or a record waits. For use between steps."""
        self._require_no_refusal()
        return self._in_hand.step(self._moved_position) if self._in_hand.free else None

    def _moved_position(self) -> Prepared[_Copied] | None:
        if self._held or self._position <= self._committed:
            return None
        return self._prepared((), self._position)

    def _next_records(self) -> Prepared[_Copied] | None:
        count = self._fitting()
        if not count:
            return None
        records = tuple(held.record for held in islice(self._held, count))
        return self._prepared(records, self._held[count].offset if count < len(self._held) else self._position)

    def _fitting(self) -> int:
        """How many of the held records make up the next step."""
        count, room = 0, self._max_bytes
        for held in self._held:
            room -= len(held.record.key) + len(held.record.value)
            if (count and room < 0) or (self._hold_ms is not None and self._now_ms < held.due_ms):
                break
            count += 1
        return count

    def _prepared(self, records: tuple[Record, ...], position: int) -> Prepared[_Copied]:
        open_from = (at for epoch in self._epochs.values() for _, _, at in islice(epoch.digests.values(), 1))
        metadata = _CODEC.encode(position, min([position, *open_from]))
        step = Step(records, (Commit(self._partition, position, metadata),))
        return Prepared(step, _Copied(len(records), position))

    def _judge(self, offset: int, key: bytes | None, payload: bytes | None) -> _Held:
        """The record to publish, after every check."""
        where = f"outbox, partition {self._partition}, offset {offset}"
        if offset < self._position:
            raise StateError(f"{where}: everything before offset {self._position} has been read already")
        if payload is None:
            raise StateError(f"{where}: an empty record")
        try:
            record = decode(payload)
        except FormatError as error:
            raise StateError(f"{where}: not a record of this version: {error}") from error
        if not isinstance(record, Release | CloseMarker):
            raise StateError(f"{where}: a roll-up record where a release or a close marker is expected")
        if record.pipeline != self._pipeline:
            raise StateError(f"{where}: a record of pipeline {record.pipeline}, expected {self._pipeline}")
        if record.partition != self._partition:
            raise StateError(f"{where}: a record of partition {record.partition} of the input")
        expected, end_ms = _key_and_end_ms(record)
        if key != expected:
            kind = "close marker" if isinstance(record, CloseMarker) else "release"
            raise StateError(f"{where}: the record key is not the one of the {kind} in it")
        epoch = self._epochs.setdefault(record.epoch, _Epoch())
        if isinstance(record, CloseMarker):
            _mark(epoch, record, payload_digest(payload), where)
        else:
            _note(epoch, record, payload_digest(payload), offset, where)
        return _Held(
            offset, Record(SKETCHES, self._partition, expected, payload, end_ms), end_ms + (self._hold_ms or 0)
        )

    def _require_no_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def _key_and_end_ms(record: Release | CloseMarker) -> tuple[bytes, int]:
    """Record key and time stamp that belong to this content."""
    if isinstance(record, CloseMarker):
        return MARKER_KEY, record.through_ms
    return record.key, record.window.end_ms


def _note(epoch: _Epoch, release: Release, digest: bytes, offset: int, where: str) -> None:
    """A release must be of a window that no marker has closed, and the only payload of its id."""
    if epoch.through_ms is not None and release.window.start_ms < epoch.through_ms:
        raise StateError(
            f"{where}: a release for the window that ends at {instant(release.window.end_ms)}, behind the close "
            f"marker of epoch {release.epoch} through {instant(epoch.through_ms)}"
        )
    known, _, _ = epoch.digests.setdefault(release.release_id, (digest, release.window.end_ms, offset))
    if known != digest:
        raise ConflictError(
            f"{where}: a second, different payload for release {release.release_id.hex()}: a privacy incident. It was "
            "not published; keep the outbox"
        )


def _mark(epoch: _Epoch, marker: CloseMarker, digest: bytes, where: str) -> None:
    """A marker must go on where the one before it ended, or be the same once more."""
    if epoch.through_ms is not None and marker.start_ms != epoch.through_ms and digest != epoch.marker:
        raise StateError(
            f"{where}: a close marker of epoch {marker.epoch} from {instant(marker.start_ms)} on, the one before it "
            f"ended at {instant(epoch.through_ms)}"
        )
    epoch.through_ms, epoch.marker = marker.through_ms, digest
    epoch.digests = {name: seen for name, seen in epoch.digests.items() if seen[1] > marker.through_ms}


def _stored(commit: Commit) -> _Stored:
    """What is in a committed position. Raises StateError where it is not one this version wrote."""
    where = f"outbox, partition {commit.partition}"
    stored = _CODEC.decode_commit(commit, where)
    if stored.since > stored.offset:
        raise StateError(
            f"{where}: the committed state begins at offset {stored.since}, behind its own position {stored.offset}"
        )
    return stored
