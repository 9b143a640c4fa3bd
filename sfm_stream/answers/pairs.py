"""Two sets together: what they share, and what only one of them has. Each is a key, or several as one, in one span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.asked_releases import asked_heads
from sfm_stream.answers.candidates import Candidates
from sfm_stream.answers.cover import Candidate
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.one_span import one_span
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.sketch_reading import SketchReading
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.answers.union_rows import joined_union, key_union
from sfm_stream.errors import IncompatibleError, NothingFound, QuestionError
from sfm_stream.estimation.estimate import NOTHING, Estimate, Status, judged, lower_bound
from sfm_stream.estimation.pair import PairEstimate, estimate_pair
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.transport.contract import TopicReader
from sfm_stream.wire.keys import decode_key


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """Two sets, each with its own row, and what both have in common.

    parts: of the sets as far as they are released. Where releases are missing from a set, its parts are limits on one
    side only, or nothing.
    """

    first: AnswerRow
    second: AnswerRow
    parts: PairEstimate


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two sets. places: partition and offset of each of its releases."""

    row: AnswerRow
    sketch: SfmSketch
    places: frozenset[tuple[int, int]]


def answer_pair(reader: TopicReader, terms: ReleaseTerms, first: Question, second: Question) -> PairAnswer:
    """The intersection, the differences and the union of two sets.

    Each question asks for one span, and for one key or several as one set. A set of several releases is the paper's
    merge of them, whose noise grows with every release. Raises QuestionError where the two share a release, since its
    noise is in both then; IncompatibleError where their sketches differ in shape or hash; NothingFound, and what
    answer() raises.
    """
    one, other = (_side(reader, terms, question) for question in (first, second))
    if shared := len(one.places & other.places):
        raise QuestionError(
            f"the two sets have {shared} release{'s' * (shared > 1)} in common, and so the same noise: ask for spans "
            "or keys that share none, or compare the two numbers"
        )
    try:
        parts = estimate_pair(one.sketch, other.sketch)
    except IncompatibleError as error:
        raise IncompatibleError(f"{error}: only spans that are released alike go together, see --by") from None
    return PairAnswer(one.row, other.row, _limited(parts, bool(one.row.missing), bool(other.row.missing)))


def _side(reader: TopicReader, terms: ReleaseTerms, question: Question) -> _Side:
    asked = replace(one_span(reader, terms, question), grain="range")
    if not asked.joined and (asked.keys is None or len(asked.keys) != 1):
        raise QuestionError("a pair needs one key on each side, or several as one set", "--key")
    decided = DecidedSpans(asked.zone)
    candidates = Candidates(asked, asked_heads(reader, terms.pipeline, asked, decided))
    candidates.require_no_conflict(reader, terms.pipeline)
    rows = list(candidates.rows())
    if not rows:
        unanswered(reader, terms.pipeline, asked, frozenset())
        raise NothingFound(f"pipeline {terms.pipeline}: nothing is published for this span")
    if len(rows) > 1 and not asked.joined:
        names = " and ".join(key_text(decode_key(key)) for _, key in rows)
        raise QuestionError(f"{names} are several keys: write the one that is meant as JSON", "--key")
    union, cover = (
        joined_union(asked, candidates, terms, asked.span, [key for _, key in rows])
        if asked.joined
        else key_union(candidates, terms, rows[0])
    )
    places, reading = set[tuple[int, int]](), SketchReading(reader)
    reading.add(union, _noted(cover, places))
    reading.finish()
    return _Side(union.row("range", decided, terms), union.sum.sketch(), frozenset(places))


def _noted(cover: Iterator[Sequence[Candidate]], places: set[tuple[int, int]]) -> Iterator[Sequence[Candidate]]:
    for part in cover:
        places.update(each.place for each in part)
        yield part


def _limited(parts: PairEstimate, first_lacks: bool, second_lacks: bool) -> PairEstimate:
    """What is known of the whole sets, of which releases are missing: what is shared, and both together, can only grow.

    What only the first has grows with its own releases and shrinks with those of the second.
    """
    if not first_lacks and not second_lacks:
        return parts
    return replace(
        parts,
        both=lower_bound(parts.both),
        either=lower_bound(parts.either),
        only_first=_of_one(parts.only_first, first_lacks, second_lacks),
        only_second=_of_one(parts.only_second, second_lacks, first_lacks),
    )


def _of_one(part: Estimate, it_lacks: bool, other_lacks: bool) -> Estimate:
    """What only one of the sets has: at least, at most, or nothing known where releases of both are missing."""
    if it_lacks and other_lacks:
        return judged(NOTHING, part.confidence)
    if it_lacks:
        return lower_bound(part)
    return part if part.status is Status.UNINFORMATIVE else replace(part, low=0.0, status=Status.EMPTY)
