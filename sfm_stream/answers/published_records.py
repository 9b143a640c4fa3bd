"""The published records that a question asks for: of its keys, inside its span, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.decided_spans import DecidedSpans, span_name
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

    Holds an id and a digest of each release, no sketches. Raises QuestionError where the span cuts a base window.
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
    `omitted` is None; behind the last record QuestionError where the span begins or ends inside a base window.
    """
    span, keys = question.span, question.encoded_keys
    digests: dict[bytes, bytes] = {}
    windows = _BaseWindows(span, DecidedSpans(question.zone))
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        windows.note(record)
        if isinstance(record, Release):
            if not is_asked_for(record, span, keys):
                continue
            digest = payload_digest(stored.value)
            first = digests.setdefault(record.release_id, digest)
            if first is not digest:
                _omit(record, first == digest, omitted)
                continue
        yield record
    windows.require_whole()


def close_markers(reader: TopicReader, pipeline: str) -> Iterator[CloseMarker]:
    """Every close marker of the pipeline, in order of the topic."""
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if isinstance(record, CloseMarker) and record.pipeline == pipeline:
            yield record


def all_releases(reader: TopicReader, pipeline: str, question: Question) -> Iterator[Release]:
    """Every record of a release that is asked for, copies too. What is wrong was found when they were read first."""
    span, keys = question.span, question.encoded_keys
    for stored in reader.read(SKETCHES):
        record = decoded(SKETCHES, stored)
        if isinstance(record, Release) and record.pipeline == pipeline and is_asked_for(record, span, keys):
            yield record


def rollup_revisions(reader: TopicReader, pipeline: str, question: Question) -> Iterator[RollupRecord]:
    """Every published revision of the roll-ups that are asked for."""
    span, keys = question.span, question.encoded_keys
    for stored in reader.read(ROLLUPS):
        record = decoded(ROLLUPS, stored)
        if not isinstance(record, RollupRecord) or record.pipeline != pipeline:
            continue
        if question.grain in (None, record.grain) and is_asked_for(record, span, keys):
            yield record


def decoded(topic: str, stored: StoredRecord) -> WireRecord:
    """The record that is stored. Raises FormatError naming where."""
    return decode_at(f"topic {topic}, partition {stored.partition}, offset {stored.offset}", stored.value)


def is_asked_for(record: Release | RollupRecord, span: Window, keys: frozenset[bytes] | None) -> bool:
    """Whether a record is of one of these keys (None: any) and lies wholly inside the span."""
    window = record.window
    is_inside = span.start_ms <= window.start_ms and window.end_ms <= span.end_ms
    return is_inside and (keys is None or record.key in keys)


@dataclass(slots=True)
class _BaseWindows:
    """Which windows a span cuts, and which released span is the finest of its epoch.

    The question was checked against base windows of the configured size; those of another epoch may have another. A
    coarser window that is cut is not in the answer, and the finer ones inside it are.
    """

    span: Window
    spans: DecidedSpans
    cut: dict[tuple[int, str], tuple[str, Window]] = field(default_factory=dict)
    """(epoch, name of a span) -> the border of the question that is inside one of its windows, and that window."""

    def note(self, record: Release | CloseMarker) -> None:
        """Take any record of the pipeline."""
        self.spans.note(record)
        if isinstance(record, Release):
            low, high = record.window.start_ms, record.window.end_ms
            size = high - low
        else:
            low, high, size = record.start_ms, record.through_ms, record.window_ms
        for part, border in (("--from", self.span.start_ms), ("--to", self.span.end_ms)):
            if low < border < high and (inside := (border - low) % size):
                window = Window(border - inside, border - inside + size)
                self.cut.setdefault((record.epoch, span_name(record)), (part, window))

    def require_whole(self) -> None:
        """Raise QuestionError where the span cuts a window of the finest span of an epoch."""
        for (epoch, name), (part, window) in sorted(self.cut.items()):
            if name == self.spans.epochs[epoch].base:
                border = self.span.start_ms if part == "--from" else self.span.end_ms
                start, end = instant(window.start_ms), instant(window.end_ms)
                raise QuestionError(
                    f"{instant(border)} is inside a window of epoch {epoch}, which begins at {start} and ends at "
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
