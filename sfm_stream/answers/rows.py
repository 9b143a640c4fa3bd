"""The answer to a question: one row for each key and span. Reading published records costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfm_stream.answers.key_union import DecidedSpans, KeyUnion
from sfm_stream.answers.published_records import releases_and_markers, rollup_revisions
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.estimation.estimate import Estimate, estimate, lower_bound
from sfm_stream.pipeline.rollup.coverage import rollup_estimate
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart, Window
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord
from sfm_stream.wire.keys import decode_key, encode_key


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of an answer.

    estimate: of the whole span; a lower bound where windows without a release may hold something. epsilon: the most
    that an item under this key can lose over the releases in the row (basic composition), that of their bits and that
    of the selection of keys. released, windows: in how many of the windows of the span the key has a release.
    complete: nothing more can come. epoch: of several the last one.
    """

    key: tuple[KeyPart, ...]
    grain: str
    window: Window
    estimate: Estimate
    epsilon: float
    released: int
    windows: int
    complete: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Answer:
    """At least one row, and a line for each key that was asked for and has none."""

    rows: tuple[AnswerRow, ...]
    unanswered: tuple[str, ...]


def answer(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Answer:
    """The answer from what a pipeline has published.

    Raises NothingFound where nothing of it is an answer, ConflictError where a release has two payloads, QuestionError
    where the span cuts a window, and IncompatibleError where one range has sketches of different shape or hash.
    """
    rows = tuple(_rows(reader, terms, question))
    answered = {encode_key(row.key) for row in rows}
    return Answer(rows, tuple(unanswered(reader, terms.pipeline, question, answered)))


def _rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    if question.grain == "window":
        return window_rows(reader, terms, question)
    if question.grain == "range":
        return range_rows(reader, terms, question)
    return rollup_rows(reader, terms, question)


def window_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each release in the span, in order of window and key. Raises ConflictError, QuestionError."""
    records = releases_and_markers(reader, terms.pipeline, question)
    releases = (record for record in records if isinstance(record, Release))
    for release in sorted(releases, key=lambda r: (r.window, r.key, r.epoch, r.partition)):
        yield AnswerRow(
            key=decode_key(release.key),
            grain="window",
            window=release.window,
            estimate=estimate(release.sketch),
            epsilon=epsilon_of(release.sketch.flip_threshold) + terms.epsilon_selection,
            released=1,
            windows=1,
            complete=True,
            epoch=release.epoch,
        )


def rollup_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each quarter, hour or day inside the span: of several published revisions the last one."""
    newest: dict[tuple[Window, bytes, int, int], RollupRecord] = {}
    for record in rollup_revisions(reader, terms.pipeline, question):
        identity = (record.window, record.key, record.epoch, record.partition)
        known = newest.get(identity)
        if known is None or record.revision > known.revision:
            newest[identity] = record
    for _, record in sorted(newest.items()):
        yield AnswerRow(
            key=decode_key(record.key),
            grain=record.grain,
            window=record.window,
            estimate=rollup_estimate(record, terms.absence),
            epsilon=record.released * (epsilon_of(record.tally.flip_threshold) + terms.epsilon_selection),
            released=record.released,
            windows=record.windows,
            complete=record.complete,
            epoch=record.epoch,
        )


def range_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each key: distinct items over the union of all windows inside the span.

    Releases of one epsilon are tallied. Where epochs of several epsilons meet, the paper's merge combines the tallies,
    at its price in accuracy. Raises ConflictError, QuestionError where the span cuts a window, and IncompatibleError
    where epochs differ in shape or hash.
    """
    span = question.span
    unions: dict[bytes, KeyUnion] = {}
    decided: dict[int, DecidedSpans] = {}
    for record in releases_and_markers(reader, terms.pipeline, question):
        if isinstance(record, CloseMarker):
            decided.setdefault(record.epoch, DecidedSpans(record.partitions, record.window_ms)).widen(record)
        else:
            unions.setdefault(record.key, KeyUnion(record)).include(record)
    for key, union in sorted(unions.items()):
        windows, is_whole = union.coverage(span, decided, terms.absence)
        of_releases = union.estimate()
        yield AnswerRow(
            key=decode_key(key),
            grain="range",
            window=span,
            estimate=of_releases if is_whole else lower_bound(of_releases),
            epsilon=sum(
                tally.releases * (epsilon_of(threshold) + terms.epsilon_selection)
                for threshold, tally in union.tallies.items()
            ),
            released=sum(tally.releases for tally in union.tallies.values()),
            windows=windows,
            complete=union.is_complete(decided, span.end_ms),
            epoch=max(union.epochs),
        )
