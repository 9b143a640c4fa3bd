"""The keys with the largest numbers in one span, and which ranks their intervals leave open."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.one_span import one_span, one_span_rows
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.errors import QuestionError
from sfm_stream.estimation.ranks import rank_ranges
from sfm_stream.transport.contract import TopicReader


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A key with the ranks that are left open, the largest first.

    rank_low, rank_high: with its number as its interval allows; both are the place of the row where nothing else is
    possible. All ranges of an answer hold at once, with the confidence of its rows. published: how many keys are
    ranked. others_withheld: whether keys that were withheld may stand anywhere among them, which no rank says.
    """

    row: AnswerRow
    rank_low: int
    rank_high: int
    published: int
    others_withheld: bool

    @property
    def tied(self) -> bool:
        """Whether its rank is left open."""
        return self.rank_low < self.rank_high


def top_keys(reader: TopicReader, terms: ReleaseTerms, question: Question, count: int) -> tuple[RankedRow, ...]:
    """The `count` keys with the largest estimates in the one span of a question, of all keys that it asks for.

    Those of equal estimates in the order of their canonical bytes. Raises QuestionError for a count below 1, for a
    union of keys, and where several spans are asked for; NothingFound, and what answer() raises.
    """
    if count < 1:
        raise QuestionError(f"the top {count} keys: ask for at least one", "limit")
    if question.joined:
        raise QuestionError("the union of several keys has no rank: ask for the keys one by one", "joined")
    asked = one_span(reader, terms, question)
    rows = one_span_rows(reader, terms, asked)
    if not len(rows):
        unanswered(reader, terms.pipeline, asked, frozenset())  # raises NothingFound
    estimates = [row.estimate for row in rows]
    ranges = rank_ranges(estimates)
    places = sorted(range(len(ranges)), key=lambda place: -estimates[place].value)[:count]
    chosen = set(places)
    shown = {place: row for place, row in enumerate(rows) if place in chosen}
    withheld = terms.absence.empty_in is None and question.keys is None
    return tuple(
        RankedRow(shown[place], ranges[place].low, ranges[place].high, len(ranges), withheld) for place in places
    )
