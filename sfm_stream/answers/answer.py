"""The answer to a question: one row for each key and span. Reading published records costs no privacy."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.answers.settled import settled
from sfm_stream.answers.unanswered import unanswered
from sfm_stream.transport.contract import TopicReader


@dataclass(frozen=True, slots=True)
class Answer:
    """At least one row, in order of time and key, and a line for each key that was asked for and has none."""

    rows: AnswerRows
    unanswered: tuple[str, ...]


def answer(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Answer:
    """The answer from what a pipeline has published.

    Raises NothingFound where nothing of it is an answer, ConflictError where a release has two payloads, QuestionError
    where the span cuts a window, and IncompatibleError where one row has sketches of different shape or hash.
    """
    question = settled(reader, terms.pipeline, question)
    rows = rows_of(reader, terms, question)
    return Answer(rows, tuple(unanswered(reader, terms.pipeline, question, rows.keys)))
