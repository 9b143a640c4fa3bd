"""Two spans, or two keys, side by side: key by key, with the difference of the two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.one_span import one_span, one_span_rows
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.estimation.difference import Difference, difference
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart
from sfm_stream.wire.keys import encode_key


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """The numbers of one key in two spans. first, second: None where nothing is published there.

    key: of the first row, else of the second; () for the union of several keys. difference: the second less the first.
    change: the difference as a part of the first, 0.1 where the second is a tenth more; None where the difference has
    no value or the first may be 0.
    """

    key: tuple[KeyPart, ...]
    first: AnswerRow | None
    second: AnswerRow | None
    difference: Difference
    change: float | None


def compare(reader: TopicReader, terms: ReleaseTerms, first: Question, second: Question) -> tuple[ComparedRow, ...]:
    """A row for each key that has one in either span, in the order of their canonical bytes.

    Each question asks for one span. Where each asks for one key, or for several as one set, the two are compared
    whatever the keys. The noise of both is taken as independent, also of releases that they have in common. Raises
    NothingFound where neither has a row, and what answer() raises.
    """
    questions = [one_span(reader, terms, question) for question in (first, second)]
    sides = [list(one_span_rows(reader, terms, question)) for question in questions]
    if not any(sides):
        unanswered(reader, terms.pipeline, questions[0], frozenset())  # raises NothingFound
    if all(_asks_for_one_set(question) for question in questions) and all(len(side) <= 1 for side in sides):
        return (_compared(*(side[0] if side else None for side in sides)),)
    return tuple(_key_by_key(*sides))


def _asks_for_one_set(question: Question) -> bool:
    return question.joined or (question.keys is not None and len(question.keys) == 1)


def _key_by_key(first: Sequence[AnswerRow], second: Sequence[AnswerRow]) -> list[ComparedRow]:
    by_key = [{row.key: row for row in side} for side in (first, second)]
    keys = sorted(by_key[0].keys() | by_key[1].keys(), key=encode_key)
    return [_compared(by_key[0].get(key), by_key[1].get(key)) for key in keys]


def _compared(first: AnswerRow | None, second: AnswerRow | None) -> ComparedRow:
    shown = first or second
    found = difference(first.estimate if first else None, second.estimate if second else None)
    is_above_0 = first is not None and first.estimate.low > 0.0
    change = found.value / first.estimate.value if first and is_above_0 and found.value is not None else None
    return ComparedRow(shown.key if shown else (), first, second, found, change)
