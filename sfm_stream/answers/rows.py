"""The answer to a question: one row for each key and span. Reading published records costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.decided_spans import DecidedSpans, span_name
from sfm_stream.answers.published_records import OmittedRecords, newest_rollups, releases_and_markers
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.settled import settled
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.answers.union_rows import union_rows
from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup.coverage import rollup_estimate
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.readable import duration
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS
from sfm_stream.wire.codec import Release, RollupRecord
from sfm_stream.wire.keys import decode_key, encode_key


@dataclass(frozen=True, slots=True)
class Answer:
    """At least one row, and a line for each key that was asked for and has none."""

    rows: tuple[AnswerRow, ...]
    unanswered: tuple[str, ...]


def answer(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Answer:
    """The answer from what a pipeline has published.

    Raises NothingFound where nothing of it is an answer, ConflictError where a release has two payloads, QuestionError
    where the span cuts a window, and IncompatibleError where one row has sketches of different shape or hash.
    """
    question = settled(reader, terms.pipeline, question)
    rows = tuple(_rows(reader, terms, question))
    answered = {encode_key(row.key) for row in rows}
    return Answer(rows, tuple(unanswered(reader, terms.pipeline, question, answered)))


def _rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    if question.topic == ROLLUPS:
        return rollup_rows(reader, terms, question)
    if question.grain == "window":
        return window_rows(reader, terms, question)
    return union_rows(reader, terms, question)


def window_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each release of a base window in the span, in order of window and key.

    Raises ConflictError, QuestionError.
    """
    found: list[tuple[Window, bytes, int, int, AnswerRow]] = []
    spans = DecidedSpans(question.zone)
    for record in releases_and_markers(reader, terms.pipeline, question):
        spans.note(record)
        if isinstance(record, Release):
            row = _window_row(record, terms)
            found.append((record.window, record.key, record.epoch, record.partition, row))
    for *_, epoch, _, row in sorted(found, key=lambda each: each[:4]):
        if spans.epochs[epoch].base in row.releases:
            yield row


def _window_row(release: Release, terms: ReleaseTerms) -> AnswerRow:
    count = release.sketch.count
    of_count = float(count.epsilon) if count else 0.0
    return AnswerRow(
        key=decode_key(release.key),
        grain="window",
        window=release.window,
        estimate=estimate(release.sketch),
        epsilon=epsilon_of(release.sketch.flip_threshold) + of_count + terms.epsilon_selection,
        origin="raw",
        releases={span_name(release): 1},
        windows=1,
        complete=True,
        missing_ms=0,
        missing=(),
        epoch=release.epoch,
    )


def rollup_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each quarter, hour or day inside the span: of several published revisions the last one."""
    records = newest_rollups(reader, terms.pipeline, question, OmittedRecords())
    found = [(r.window, r.key, r.epoch, r.partition, _rollup_row(r, terms)) for r in records]
    yield from (row for *_, row in sorted(found, key=lambda each: each[:4]))


def _rollup_row(record: RollupRecord, terms: ReleaseTerms) -> AnswerRow:
    of_count = 0.0 if record.count_epsilon is None else float(record.count_epsilon)
    each = epsilon_of(record.tally.flip_threshold) + of_count + terms.epsilon_selection
    window_ms = (record.window.end_ms - record.window.start_ms) // record.windows
    accounted = terms.absence.accounted(record.epoch, record.released, record.decided)
    return AnswerRow(
        key=decode_key(record.key),
        grain=record.grain,
        window=record.window,
        estimate=rollup_estimate(record, terms.absence),
        epsilon=record.released * each,
        origin=record.origin or "merged",
        releases={record.span or duration(window_ms): record.released},
        windows=record.windows,
        complete=record.complete,
        missing_ms=(record.windows - accounted) * window_ms,
        missing=() if accounted >= record.windows else None,
        epoch=record.epoch,
    )
