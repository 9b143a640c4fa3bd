"""The releases that a question asks for: of its keys, inside its span, each once; and what markers say beside them."""

from __future__ import annotations

from collections.abc import Iterator

from sfm_stream.answers.cut_windows import CutWindows
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.published_records import releases_and_markers
from sfm_stream.answers.question import Question
from sfm_stream.errors import ConflictError
from sfm_stream.transport.contract import TopicReader
from sfm_stream.wire.codec import Release, payload_digest


def asked_releases(
    reader: TopicReader,
    pipeline: str,
    question: Question,
    decided: DecidedSpans,
    omitted: OmittedRecords | None = None,
) -> Iterator[Release]:
    """Each release that is asked for once, in order of the topic; of two payloads for one id the first, as in a
    roll-up.

    Holds an id and a digest of each release, no sketches. decided: takes every record of the pipeline, and is whole
    behind the last release. A second payload for a known release is counted in `omitted`; where that is None it raises
    ConflictError. Behind the last release it raises QuestionError where the span cuts a base window.
    """
    digests: dict[bytes, bytes] = {}
    cut = CutWindows(question.span)
    for record, payload in releases_and_markers(reader, pipeline):
        decided.note(record)
        cut.note(record)
        if isinstance(record, Release) and question.asks_for(record.window, record.key):
            digest = payload_digest(payload)
            first = digests.setdefault(record.release_id, digest)
            if first is digest:
                yield record
            else:
                _omit(record, first == digest, omitted)
    cut.require_none_of_base(decided)


def all_releases(reader: TopicReader, pipeline: str, question: Question) -> Iterator[Release]:
    """Every record of a release that is asked for, copies too. What is wrong was found when they were read first."""
    for record, _ in releases_and_markers(reader, pipeline):
        if isinstance(record, Release) and question.asks_for(record.window, record.key):
            yield record


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
