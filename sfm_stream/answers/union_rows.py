"""Answers over unions of releases: for a whole span, or for each week or month in it.

The topic is read twice. The first reading holds of each release its window and a digest, and says which of them cover
what is asked; the second adds up the sketches of those, and a row is made and its sums are let go as soon as the last
release of its cover is in. So a question by week holds the sums of the weeks that a topic in order of time has open,
however many weeks it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.cover import Candidate, length_ms
from sfm_stream.answers.decided_spans import DecidedSpans, span_name
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.published_records import all_releases, releases_and_markers
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import StateError
from sfm_stream.estimation.estimate import lower_bound
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.windows.grid import grid_of
from sfm_stream.wire.codec import Release
from sfm_stream.wire.keys import decode_key


def union_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Iterator[AnswerRow]:
    """A row for each key, and each week or month where the question asks by these, in order of both.

    A row is the union of the coarsest releases inside it that are disjoint in time. Releases of one epsilon are
    tallied; where several epsilons meet, the tallies and the paper's merge bound their union. Raises
    ConflictError, QuestionError where the span cuts a base window, and IncompatibleError where epochs differ in shape
    or hash.
    """
    row_of = _row_windows(question)
    unions, decided = _planned(reader, terms, question, row_of)
    rows: list[tuple[Window, bytes, AnswerRow]] = []
    for release in all_releases(reader, terms.pipeline, question):
        place = row_of(release.window), release.key
        union = unions.get(place) if place[0] else None
        if union is None:
            continue
        union.include(release)
        if not union.waiting:
            del unions[place]
            rows.append((union.span, release.key, _row(question.grain, release, union, decided, terms)))
    if unions:
        raise StateError("releases went out of the sketch topic while it was read for an answer: ask again")
    yield from (row for _, _, row in sorted(rows, key=lambda each: each[:2]))


def _row_windows(question: Question) -> Callable[[Window], Window | None]:
    """Window of a release -> the span of the row that it belongs to; None where it is inside none."""
    if question.grain == "range":
        return lambda window: question.span
    grid = grid_of(str(question.grain), question.zone)

    def row_of(window: Window) -> Window | None:
        start_ms = grid.floor(window.start_ms)
        end_ms = grid.end(start_ms)
        return Window(start_ms, end_ms) if window.end_ms <= end_ms else None

    return row_of


def _planned(
    reader: TopicReader, terms: ReleaseTerms, question: Question, row_of: Callable[[Window], Window | None]
) -> tuple[dict[tuple[Window | None, bytes], KeyUnion], DecidedSpans]:
    """What each row will be made of, and what is decided."""
    decided = DecidedSpans(question.zone)
    candidates: dict[tuple[Window, bytes], list[Candidate]] = {}
    alike: dict[Candidate, Candidate] = {}  # keys share their candidates: each takes a pointer a release
    for record in releases_and_markers(reader, terms.pipeline, question):
        decided.note(record)
        if isinstance(record, Release) and (row := row_of(record.window)):
            sketch = record.sketch
            found = Candidate(
                record.window, record.epoch, record.partition, span_name(record), sketch.shape, sketch.hash
            )
            candidates.setdefault((row, record.key), []).append(alike.setdefault(found, found))
    unions: dict[tuple[Window | None, bytes], KeyUnion] = {}
    while candidates:
        (row, key), of_key = candidates.popitem()
        unions[row, key] = KeyUnion.of(terms.pipeline, row, of_key)
    return unions, decided


def _row(grain: str | None, release: Release, union: KeyUnion, decided: DecidedSpans, terms: ReleaseTerms) -> AnswerRow:
    of_releases, missing = union.estimate(), union.missing(decided, terms)
    return AnswerRow(
        key=decode_key(release.key),
        grain=str(grain),
        window=union.span,
        estimate=lower_bound(of_releases) if missing else of_releases,
        epsilon=union.epsilon(terms),
        origin="raw" if union.is_one_release else "merged",
        releases=union.releases,
        windows=union.windows(decided),
        complete=union.is_one_release or decided.is_complete(union.partitions, union.span.end_ms),
        missing_ms=sum(length_ms(part) for part in missing),
        missing=missing,
        epoch=max(each.epoch for each in union.cover),
    )
