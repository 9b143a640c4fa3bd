"""The answer to a question: one row for each key and span. Reading published records costs no privacy."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.answers.settled import settled
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.transport.contract import TopicReader
from sfm_stream.wire.keys import encode_key


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
    rows = rows_of(reader, terms, question)
    answered = {encode_key(row.key) for row in rows}
    return Answer(tuple(rows), tuple(unanswered(reader, terms.pipeline, question, answered)))
