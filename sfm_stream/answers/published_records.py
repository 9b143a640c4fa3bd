"""What a pipeline has published: the records of its topics, decoded as far as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sfm_stream.answers.question import Question
from sfm_stream.errors import FormatError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord
from sfm_stream.units import CALENDAR_UNITS, ROLLUPS, SKETCHES
from sfm_stream.windows.grid import HOUR, grid_of
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord, WireRecord, decode_at
from sfm_stream.wire.heads import ReleaseHead, RollupHead, head_at
from sfm_stream.wire.rollup_form import RollupForms


def close_markers(reader: TopicReader, pipeline: str, since_ms: int, until_ms: int) -> Iterator[CloseMarker]:
    """Close markers of the pipeline that tell what is decided between two times: those of TopicReader.markers()."""
    for stored in reader.markers(SKETCHES, since_ms, until_ms):
        record = decoded(SKETCHES, stored)
        if isinstance(record, CloseMarker) and record.pipeline == pipeline:
            yield record


def heads_of_ends(reader: TopicReader, pipeline: str, since_ms: int, until_ms: int) -> Iterator[ReleaseHead]:
    """The heads of the pipeline's releases of windows that end from since_ms to until_ms, both included."""
    for stored in reader.look_up(SKETCHES, since_ms, until_ms):
        head = head_at(_place(SKETCHES, stored), stored.value)
        if isinstance(head, ReleaseHead) and head.pipeline == pipeline and since_ms <= head.window.end_ms <= until_ms:
            yield head


def release_heads(reader: TopicReader, pipeline: str, question: Question) -> Iterator[tuple[StoredRecord, ReleaseHead]]:
    """Every record of a release that a question asks for, copies too, with its head. In any order."""
    for stored, head in _asked(reader, SKETCHES, question, head_at):
        if isinstance(head, ReleaseHead) and head.pipeline == pipeline:
            yield stored, head


def rollup_heads(
    reader: TopicReader, pipeline: str, question: Question, forms: RollupForms | None = None
) -> Iterator[tuple[StoredRecord, RollupHead]]:
    """Every revision that a question asks for of a roll-up of its grain, with its head. In any order.

    forms: those that the records are to be read with after, which learn from their heads.
    """
    for stored, head in _asked(reader, ROLLUPS, question, (forms or RollupForms()).head_at):
        if isinstance(head, RollupHead) and head.pipeline == pipeline and question.grain in (None, head.grain):
            yield stored, head


def release_head(stored: StoredRecord) -> ReleaseHead | None:
    """The head of the release that is stored; None for a close marker. Raises FormatError naming where."""
    head = head_at(_place(SKETCHES, stored), stored.value)
    return head if isinstance(head, ReleaseHead) else None


def decoded(topic: str, stored: StoredRecord) -> WireRecord:
    """The record that is stored. Raises FormatError naming where."""
    return decode_at(_place(topic, stored), stored.value)


def release_of(stored: StoredRecord) -> Release:
    """The release that is stored, of which the head was read. Raises FormatError naming where."""
    record = decoded(SKETCHES, stored)
    if isinstance(record, Release) and record.key == stored.key:
        return record
    raise _not_under_its_key(SKETCHES, stored)


def rollup_of(stored: StoredRecord, forms: RollupForms) -> RollupRecord:
    """The roll-up that is stored, of which the head was read. Raises FormatError naming where."""
    record = forms.decode_at(_place(ROLLUPS, stored), stored.value)
    if isinstance(record, RollupRecord) and record.key == stored.key:
        return record
    raise _not_under_its_key(ROLLUPS, stored)


def _asked(
    reader: TopicReader,
    topic: str,
    question: Question,
    head_of: Callable[[str, bytes], ReleaseHead | RollupHead | None],
) -> Iterator[tuple[StoredRecord, ReleaseHead | RollupHead]]:
    """Records whose window lies in the span, by their stamps, which are the ends of windows, and by their keys."""
    span = question.span
    since_ms = span.start_ms + 1 if span.start_ms else 0
    for stored in reader.look_up(topic, since_ms, span.end_ms, question.encoded_keys, _stamped(question)):
        head = head_of(_place(topic, stored), stored.value)
        if head is not None and question.asks_for(head.window, stored.key):
            yield stored, head


def _stamped(question: Question) -> Callable[[int], bool] | None:
    """Whether a stamp is the end of an hour, or whatever a question by roll-ups asks for; None: it may be any."""
    if question.topic != ROLLUPS or question.grain not in (HOUR, *CALENDAR_UNITS):
        return None
    grid = grid_of(str(question.grain), question.zone)
    return lambda stamp_ms: grid.floor(stamp_ms) == stamp_ms


def _not_under_its_key(topic: str, stored: StoredRecord) -> FormatError:
    return FormatError("key", "is not the one that it was published under", _place(topic, stored))


def _place(topic: str, stored: StoredRecord) -> str:
    return f"topic {topic}, partition {stored.partition}, offset {stored.offset}"
