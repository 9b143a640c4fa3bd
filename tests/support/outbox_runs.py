"""Drive the copy of one partition of the outbox by hand: windows of releases with their markers, steps, what is due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.rollup_runs import PIPELINE, QUARTER_MS, at, marker, release

from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.types import KeyValue, Record, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode
from sfm_stream.wire.keys import MARKER_KEY, encode_key

T0 = at("2026-01-01")
A, B = encode_key("a"), encode_key("b")
FOREVER_MS = 1 << 62


def quarter(number: int) -> int:
    """Start of a window, counted from T0."""
    return T0 + number * QUARTER_MS


def window(number: int, *keys: KeyValue, **other: Any) -> list[bytes]:
    """Releases of a window and its marker."""
    return [*(release(quarter(number), key, **other) for key in keys), closing(number, **other)]


def closing(number: int, **other: Any) -> bytes:
    """The marker of a window."""
    return marker(quarter(number), quarter(number + 1), **other)


def as_published(payload: bytes) -> Record:
    """What has to be in the sketch topic for a record of the outbox."""
    record = decode(payload)
    if isinstance(record, CloseMarker):
        return Record(SKETCHES, record.partition, MARKER_KEY, payload, record.through_ms)
    return Record(SKETCHES, record.partition, record.key, payload, record.window.end_ms)


def add(copy: OutboxCopy, log: Iterable[bytes], at: int = 0) -> None:
    """Add payloads under their own keys, at consecutive offsets."""
    for offset, payload in enumerate(log, at):
        copy.add(offset, as_published(payload).key, payload)


def drain(copy: OutboxCopy) -> list[Step]:
    """Commit what is due; returns the steps."""
    steps = []
    while (step := copy.step()) is not None:
        assert copy.step() is step
        copy.committed(step)
        steps.append(step)
    return steps


def published(steps: Iterable[Step]) -> list[Record]:
    """The records of all of these steps."""
    return [record for step in steps for record in step.publish]


def copy_of(
    log: Iterable[bytes] = (), limit: int = 8 << 20, hold_ms: int | None = None, partition: int = 0
) -> OutboxCopy:
    """A copy at its first start that has read a log."""
    copy = OutboxCopy(PIPELINE, partition, limit, hold_ms)
    assert copy.restore(None) == 0
    add(copy, log)
    return copy


LOG = [*window(0, "a", "b"), *window(1), *window(2, "b"), *window(7, "a", "c", epoch=2), *window(3, "a")]
