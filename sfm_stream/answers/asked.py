"""The published records that a question is about: of these keys, inside this span, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.errors import ConflictError, UsageError
from sfm_stream.readable import instant
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord, Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord, decode_at, payload_digest
from sfm_stream.wire.records import release_id


@dataclass(slots=True)
class LeftOut:
    """Records inside the span of a question that its answer does without.

    duplicates: identical copies. replaced: roll-ups that have a newer revision. conflicts: ids of releases with a
    second, different payload, each a privacy incident.
    """

    duplicates: int = 0
    replaced: int = 0
    conflicts: set[bytes] = field(default_factory=set)


@dataclass(slots=True)
class Extent:
    """What there is at all: how many releases (or roll-ups), the span that they lie in, and of how many keys."""

    records: int = 0
    span: Window | None = None
    keys: set[bytes] = field(default_factory=set)


def releases(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None, left_out: LeftOut
) -> Iterator[Release]:
    """Each release inside the span once, in order of the topic; of two payloads for one id the first, as in a roll-up.

    Holds an id and a digest of each release, no sketches. Raises UsageError where the span cuts a window.
    """
    for record in sketches(reader, pipeline, span, keys, left_out):
        if isinstance(record, Release):
            yield record


def newest_rollups(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None, left_out: LeftOut
) -> Iterator[RollupRecord]:
    """The newest revision of each quarter, hour and day inside the span, in order of the topic.

    Reads the topic twice, so as to hold a number of each roll-up and no sketches: what is published after the first
    time is not in the answer.
    """
    newest: dict[bytes, int] = {}
    for record in rollups(reader, pipeline, span, keys):
        place = _place(record)
        if place in newest:
            left_out.duplicates += record.revision == newest[place]
            left_out.replaced += record.revision != newest[place]
        newest[place] = max(newest.get(place, 0), record.revision)
    for record in rollups(reader, pipeline, span, keys):
        # Taken out once it is found: a second record of that revision is a copy.
        if newest.get(place := _place(record)) == record.revision:
            del newest[place]
            yield record


def sketches(
    reader: TopicReader,
    pipeline: str,
    span: Window | None,
    keys: set[bytes] | None,
    left_out: LeftOut | None = None,
) -> Iterator[Release | CloseMarker]:
    """Every close marker, and each release of these keys inside the span once.

    A second payload for a known release is left out and noted; raises ConflictError where there is nowhere to note it,
    UsageError where the span begins or ends inside a window.
    """
    seen: dict[bytes, bytes] = {}
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        _require_whole(record, span)
        if isinstance(record, Release):
            if not _is_asked(record, span, keys):
                continue
            digest = payload_digest(stored.value)
            known = seen.setdefault(record.release_id, digest)
            if known is not digest:
                _leave_out(record, known == digest, left_out)
                continue
        yield record


def rollups(reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None) -> Iterator[RollupRecord]:
    """Every published revision of these keys inside the span."""
    for stored in reader.read(ROLLUPS):
        record = decoded(ROLLUPS, stored)
        if isinstance(record, RollupRecord) and record.pipeline == pipeline and _is_asked(record, span, keys):
            yield record


def extent(reader: TopicReader, topic: str, pipeline: str, grain: str | None = None) -> Extent:
    """What a pipeline has published in this topic (of this grain), whatever was asked."""
    found = Extent()
    for stored in reader.read(topic):
        record = decoded(topic, stored)
        if isinstance(record, CloseMarker) or record.pipeline != pipeline:
            continue
        if isinstance(record, RollupRecord) and grain not in (None, record.grain):
            continue
        low, high = record.window.start_ms, record.window.end_ms
        known = found.span
        found.span = Window(min(low, known.start_ms), max(high, known.end_ms)) if known else Window(low, high)
        found.records += 1
        found.keys.add(record.key)
    return found


def decoded(topic: str, stored: StoredRecord) -> WireRecord:
    """The record that is stored. Raises FormatError naming where."""
    return decode_at(f"topic {topic}, partition {stored.partition}, offset {stored.offset}", stored.value)


def _require_whole(record: Release | CloseMarker, span: Window | None) -> None:
    """Windows of another epoch may have another size than those that the question was checked against."""
    if span is None:
        return
    if isinstance(record, Release):
        low, high, size = record.window.start_ms, record.window.end_ms, record.window.end_ms - record.window.start_ms
    else:
        low, high, size = record.start_ms, record.through_ms, record.window_ms
    for name, border in (("--from", span.start_ms), ("--to", span.end_ms)):
        if low < border < high and (inside := (border - low) % size):
            raise UsageError(
                f"{name}: {instant(border)} is inside a window of epoch {record.epoch}, which begins at "
                f"{instant(border - inside)} and ends at {instant(border - inside + size)}: ask from or to one of these"
            )


def _leave_out(release: Release, is_copy: bool, left_out: LeftOut | None) -> None:
    if not is_copy and left_out is None:
        raise ConflictError(
            f"release {release.release_id.hex()} was published with two different payloads: a privacy incident. "
            "Keep the file, and do not publish it"
        )
    if left_out is not None and is_copy:
        left_out.duplicates += 1
    elif left_out is not None:
        left_out.conflicts.add(release.release_id)


def _place(record: RollupRecord) -> bytes:
    """16 bytes for what a revision replaces; the length of a span tells its grain."""
    return release_id(record.pipeline, record.epoch, record.partition, record.window, record.key)


def _is_asked(record: Release | RollupRecord, span: Window | None, keys: set[bytes] | None) -> bool:
    return _is_inside(record.window, span) and (keys is None or record.key in keys)


def _is_inside(window: Window, span: Window | None) -> bool:
    return span is None or (span.start_ms <= window.start_ms and window.end_ms <= span.end_ms)
