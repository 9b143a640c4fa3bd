"""The published records that a question asks for: of its keys, inside its span, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.question import Question
from sfm_stream.errors import ConflictError, QuestionError
from sfm_stream.readable import instant
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord, Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord, decode_at, payload_digest
from sfm_stream.wire.records import release_id


@dataclass(slots=True)
class OmittedRecords:
    """Records that a question asks for and that its answer leaves out.

    duplicates: identical copies. replaced: roll-ups that have a newer revision. conflicts: ids of releases with a
    second, different payload, each a privacy incident.
    """

    duplicates: int = 0
    replaced: int = 0
    conflicts: set[bytes] = field(default_factory=set)


def releases(reader: TopicReader, pipeline: str, question: Question, omitted: OmittedRecords) -> Iterator[Release]:
    """Each release that is asked for once, in order of the topic; of two payloads for one id the first, as in a
    roll-up.

    Holds an id and a digest of each release, no sketches. Raises QuestionError where the span cuts a window.
    """
    for record in releases_and_markers(reader, pipeline, question, omitted):
        if isinstance(record, Release):
            yield record


def newest_rollups(
    reader: TopicReader, pipeline: str, question: Question, omitted: OmittedRecords
) -> Iterator[RollupRecord]:
    """The newest revision of each quarter, hour and day that is asked for, in order of the topic.

    Reads the topic twice, so as to hold one number of each roll-up and no sketches: what is published after the first
    reading is not in the answer.
    """
    newest: dict[bytes, int] = {}
    for record in rollup_revisions(reader, pipeline, question):
        identity = _identity(record)
        if identity in newest:
            omitted.duplicates += record.revision == newest[identity]
            omitted.replaced += record.revision != newest[identity]
        newest[identity] = max(newest.get(identity, 0), record.revision)
    for record in rollup_revisions(reader, pipeline, question):
        # Each newest revision is taken out when it is met first: a second record of it is a copy.
        if newest.get(identity := _identity(record)) == record.revision:
            del newest[identity]
            yield record


def releases_and_markers(
    reader: TopicReader, pipeline: str, question: Question, omitted: OmittedRecords | None = None
) -> Iterator[Release | CloseMarker]:
    """Every close marker of the pipeline, and each release that is asked for once.

    A second payload for a known release is left out and counted in `omitted`. Raises ConflictError for it where
    `omitted` is None, and QuestionError where the span begins or ends inside a window.
    """
    span, keys = question.span, question.encoded_keys
    digests: dict[bytes, bytes] = {}
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        _require_whole_windows(record, span)
        if isinstance(record, Release):
            if not _is_asked_for(record, span, keys):
                continue
            digest = payload_digest(stored.value)
            first = digests.setdefault(record.release_id, digest)
            if first is not digest:
                _omit(record, first == digest, omitted)
                continue
        yield record


def rollup_revisions(reader: TopicReader, pipeline: str, question: Question) -> Iterator[RollupRecord]:
    """Every published revision of the roll-ups that are asked for."""
    span, keys = question.span, question.encoded_keys
    for stored in reader.read(ROLLUPS):
        record = decoded(ROLLUPS, stored)
        if not isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        if question.grain in (None, record.grain) and _is_asked_for(record, span, keys):
            yield record


def decoded(topic: str, stored: StoredRecord) -> WireRecord:
    """The record that is stored. Raises FormatError naming where."""
    return decode_at(f"topic {topic}, partition {stored.partition}, offset {stored.offset}", stored.value)


def _require_whole_windows(record: Release | CloseMarker, span: Window) -> None:
    """The question was checked against windows of the configured size; those of another epoch may have another."""
    if isinstance(record, Release):
        low, high, size = record.window.start_ms, record.window.end_ms, record.window.end_ms - record.window.start_ms
    else:
        low, high, size = record.start_ms, record.through_ms, record.window_ms
    for part, border in (("--from", span.start_ms), ("--to", span.end_ms)):
        if low < border < high and (inside := (border - low) % size):
            start, end = instant(border - inside), instant(border - inside + size)
            raise QuestionError(
                f"{instant(border)} is inside a window of epoch {record.epoch}, which begins at {start} and ends at "
                f"{end}: ask from or to one of these",
                part,
            )


def _omit(release: Release, is_copy: bool, omitted: OmittedRecords | None) -> None:
    if not is_copy and omitted is None:
        raise ConflictError(
            f"release {release.release_id.hex()} was published with two different payloads: a privacy incident. "
            "Keep the file, and do not publish it"
        )
    if omitted is not None and is_copy:
        omitted.duplicates += 1
    elif omitted is not None:
        omitted.conflicts.add(release.release_id)


def _identity(record: RollupRecord) -> bytes:
    """16 bytes that all revisions of a roll-up share. The length of its span tells its grain."""
    return release_id(record.pipeline, record.epoch, record.partition, record.window, record.key)


def _is_asked_for(record: Release | RollupRecord, span: Window, keys: frozenset[bytes] | None) -> bool:
    window = record.window
    is_inside = span.start_ms <= window.start_ms and window.end_ms <= span.end_ms
    return is_inside and (keys is None or record.key in keys)
