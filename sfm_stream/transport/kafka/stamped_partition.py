"""The records of one partition of a published topic by their stamps, which are the ends of windows.

In the sketch topic the records of one epoch are in order of their stamps (pipeline/outbox.py). A later epoch begins
where the earlier ones end, so its stamps lie behind all of theirs; but their workers may finish what is before that
border while it is at work already, and then the topic goes back in time (docs/kafka.md, "A new epoch"). So whoever
reads from a time on has met everything up to another time with the first record behind it whose epoch had begun before
the former, and not with any record behind it.

A broker that stamps records itself says when they were published, not of which window they are. Such records are given
whatever their stamps are, and where one is met the partition is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import FormatError
from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_facts import CREATE_TIME
from sfm_stream.types import StoredRecord
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.codec import CloseMarker, decode_marker
from sfm_stream.wire.heads import ReleaseHead, head_at
from sfm_stream.wire.keys import MARKER_KEY

_FIRST_EPOCH = 1
_STEP_BACK = 1 << 6
"""Records that are read first where the last marker before an offset is looked for."""


@dataclass(slots=True)
class StampedPartition:
    """A partition from its first offset up to a stop.

    batches: those between two offsets. since: the first offset of a record that is stamped at a time or later, at most
    the stop: all before it are stamped earlier.
    """

    number: int
    first: int
    stop: int
    batches: Callable[[int, int], Iterator[LogBatch]]
    since: Callable[[int], int]
    trusted: bool = True
    """Whether every record that was met has the stamp of its producer."""

    def records(
        self, since_ms: int, until_ms: int, keys: Set[bytes] | None, *, in_order: bool
    ) -> Iterator[StoredRecord]:
        """Those of these keys that are stamped in this time. in_order: as in the sketch topic; else to the stop."""
        start, begun, is_first = self.since(since_ms), {_FIRST_EPOCH}, True
        for batch in self._met(start, self.stop):
            yield from self._asked(batch, since_ms, until_ms, keys)
            if not in_order or batch.timestamp_type != CREATE_TIME:
                continue
            stamps = batch.arrivals()
            for stored in _first_of(batch, stamps >= since_ms) if is_first else ():
                begun |= _begun_before(since_ms, stored)
                is_first = False
            if any(_epoch_of(stored) in begun for stored in _first_of(batch, stamps > until_ms)):
                break
        if not self.trusted:
            for batch in self._met(self.first, start):
                yield from self._asked(batch, since_ms, until_ms, keys)

    def markers(self, since_ms: int, until_ms: int) -> Iterator[StoredRecord]:
        """As TopicReader.markers()."""
        start, begun = self.since(since_ms), {_FIRST_EPOCH}
        for stored, marker in self._before(start):
            begun.add(marker.epoch)
            yield stored
        yield from self._behind(start, since_ms, until_ms, begun)
        if not self.trusted:
            yield from (stored for stored, _ in self._markers(self.first, start))

    def _before(self, start: int) -> Iterator[tuple[StoredRecord, CloseMarker]]:
        """The last marker of a finest span before an offset, and those before it that end later."""
        high, step, last = start, _STEP_BACK, None
        while high > self.first and last is None:
            low = max(self.first, high - step)
            for each in self._finest(low, high):
                last = each
            high, step = low, 4 * step
        if last is not None:
            yield last
            yield from self._finest(self.since(last[1].through_ms + 1), last[0].offset)

    def _behind(self, start: int, since_ms: int, until_ms: int, begun: set[int]) -> Iterator[StoredRecord]:
        """The markers from an offset on up to the first of a finest span behind a time, whose epoch had begun.

        Where that is the epoch of the first one too, and it has one span, no other marker between them says anything.
        """
        is_first = True
        for stored, marker in self._markers(start, self.stop):
            yield stored
            if marker is None or not _is_finest(marker):
                continue
            if marker.start_ms < since_ms:
                begun.add(marker.epoch)
            if marker.epoch in begun and marker.through_ms > until_ms:
                return
            if is_first and marker.epoch in begun and len(marker.spans) <= 1 and until_ms < FOREVER_MS:
                later = self._finest(max(self.since(until_ms), stored.offset + 1), self.stop)
                at_until = next((each for each in later if each[1].through_ms >= until_ms), None)
                if at_until is not None and at_until[1].epoch == marker.epoch:
                    yield at_until[0]
                    return
            is_first = False

    def _finest(self, start: int, stop: int) -> Iterator[tuple[StoredRecord, CloseMarker]]:
        for stored, marker in self._markers(start, stop):
            if marker is not None and _is_finest(marker):
                yield stored, marker

    def _markers(self, start: int, stop: int) -> Iterator[tuple[StoredRecord, CloseMarker | None]]:
        """What is published as a marker between two offsets, and the marker if it is one."""
        for batch in self._met(start, stop):
            rows = [row for row, key in enumerate(batch.keys()) if not key]
            for stored in stored_rows(batch, rows):
                if stored.offset < stop:
                    yield stored, _marker(stored)

    def _met(self, start: int, stop: int) -> Iterator[LogBatch]:
        for batch in self.batches(start, stop):
            if batch.first >= stop:
                return  # it came along in the same fetch
            self.trusted = self.trusted and batch.timestamp_type == CREATE_TIME
            yield batch

    def _asked(self, batch: LogBatch, since_ms: int, until_ms: int, keys: Set[bytes] | None) -> Iterator[StoredRecord]:
        stamps = batch.arrivals()
        inside = batch.offsets() < self.stop
        if batch.timestamp_type == CREATE_TIME:
            inside &= (stamps >= since_ms) & (stamps <= until_ms)
        rows = inside.nonzero()[0].tolist()
        if keys is not None and rows:
            of_rows = batch.keys()
            rows = [row for row in rows if (of_rows[row] or b"") in keys]
        return stored_rows(batch, rows)


def stored_rows(batch: LogBatch, rows: Sequence[int]) -> Iterator[StoredRecord]:
    """These rows of a batch of the log. Values are made where there is a row."""
    if not rows:
        return
    offsets, stamps, keys, values = batch.offsets(), batch.arrivals(), batch.keys(), batch.values()
    for row in rows:
        yield StoredRecord(int(offsets[row]), batch.partition, keys[row] or b"", values[row] or b"", int(stamps[row]))


def _first_of(batch: LogBatch, which: NDArray[np.bool_]) -> Iterator[StoredRecord]:
    return stored_rows(batch, which.nonzero()[0][:1].tolist())


def _is_finest(marker: CloseMarker) -> bool:
    return marker.span is None or marker.spans[0] == marker.span


def _marker(stored: StoredRecord) -> CloseMarker | None:
    """The marker in a record, None where it is none: whoever asks for the record says what is wrong."""
    try:
        return decode_marker(stored.value)
    except FormatError:
        return None


def _head(stored: StoredRecord) -> tuple[int, int] | None:
    """Epoch, and start of the window, of a release or marker; None where it is neither."""
    if stored.key == MARKER_KEY:
        marker = _marker(stored)
        return None if marker is None else (marker.epoch, marker.start_ms)
    try:
        head = head_at("", stored.value)
    except FormatError:
        return None
    return (head.epoch, head.window.start_ms) if isinstance(head, ReleaseHead) else None


def _epoch_of(stored: StoredRecord) -> int | None:
    head = _head(stored)
    return None if head is None else head[0]


def _begun_before(time_ms: int, stored: StoredRecord) -> set[int]:
    """The epoch of a record, if its window shows that it had begun before a time."""
    head = _head(stored)
    return set() if head is None or head[1] >= time_ms else {head[0]}
