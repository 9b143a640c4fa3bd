"""The releases that a question asks for: of its keys, inside its span, each once; and what markers say beside them."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.answers.cut_windows import CutWindows
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.known_records import KnownRecords
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.published_records import close_markers, release_heads, release_of
from sfm_stream.answers.question import Question
from sfm_stream.errors import ConflictError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import StoredRecord
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import Release
from sfm_stream.wire.heads import ReleaseHead
from sfm_stream.wire.records import release_id


def asked_releases(
    reader: TopicReader,
    pipeline: str,
    question: Question,
    decided: DecidedSpans,
    omitted: OmittedRecords | None = None,
) -> Iterator[Release]:
    """Each release that is asked for once, as it is looked up; of two payloads for one id the first, as in a roll-up.

    decided: as for asked_heads. A second payload for a known release is counted in `omitted`; where that is None it
    raises ConflictError.
    """
    known = KnownRecords()
    for stored, head in asked_heads(reader, pipeline, question, decided):
        first = known.first((head.epoch, head.partition, head.window, stored.key), stored)
        if first is None:
            yield release_of(stored)
        elif omitted is None:
            require_copy(reader, pipeline, stored, head, first)
        elif is_copy(reader, stored, first):
            omitted.duplicates += 1
        else:
            omitted.conflicts.add(release_of(stored).release_id)


def asked_heads(
    reader: TopicReader, pipeline: str, question: Question, decided: DecidedSpans
) -> Iterator[tuple[StoredRecord, ReleaseHead]]:
    """The records of the releases that are asked for, copies too, each with its head.

    decided: takes what markers say of the span before the first of them, and each of them. Raises QuestionError
    where the span cuts a base window that a marker has decided.
    """
    cut = CutWindows(question.span)
    for marker in close_markers(reader, pipeline, question.span.start_ms, question.span.end_ms):
        decided.note(marker)
        cut.note(marker)
    cut.require_none_of_base(decided)
    for stored, head in release_heads(reader, pipeline, question):
        decided.note(head)
        yield stored, head


def is_copy(reader: TopicReader, stored: StoredRecord, first: tuple[int, int]) -> bool:
    """Whether a record has the bytes of the one at this partition and offset."""
    partition, offset = first
    return all(stored.value == each.value for each in reader.at(SKETCHES, partition, [offset]))


def require_copy(
    reader: TopicReader, pipeline: str, stored: StoredRecord, head: ReleaseHead, first: tuple[int, int]
) -> None:
    """Raise ConflictError where a release has other bytes than the first of its id, at this partition and offset."""
    if not is_copy(reader, stored, first):
        identity = release_id(pipeline, head.epoch, head.partition, head.window, stored.key)
        raise ConflictError(
            f"release {identity.hex()} was published with two different payloads: a privacy incident. "
            "Keep the file, and do not publish it"
        )
