"""The rows of a question that asks for one span: one row a key, or one for all keys together."""

from __future__ import annotations

from dataclasses import replace

from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.answers.settled import settled
from sfm_stream.errors import QuestionError
from sfm_stream.readable import local
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import CALENDAR_UNITS, FOREVER_MS
from sfm_stream.windows.grid import HOUR, grid_of

_REMEDY = "ask for one: --from with --to, or --last, without --by"


def one_span(reader: TopicReader, terms: ReleaseTerms, question: Question) -> Question:
    """The question with its span settled. Raises QuestionError where it asks for several spans, NothingFound."""
    if question.span.end_ms >= FOREVER_MS and question.last is None:
        raise QuestionError(f"the span has no end, and one span is asked about here: {_REMEDY}")
    settled_question = settled(reader, terms.pipeline, question)
    span, grain = settled_question.span, str(question.grain)
    if grain == HOUR or grain in CALENDAR_UNITS:
        grid = grid_of(grain, question.zone)
        if grid.end(grid.floor(span.start_ms)) != span.end_ms or grid.floor(span.start_ms) != span.start_ms:
            raise QuestionError(f"--by {grain} asks for several spans, and one is asked about here: {_REMEDY}")
    return settled_question


def one_span_rows(reader: TopicReader, terms: ReleaseTerms, question: Question) -> AnswerRows:
    """One row for each key in the span of a question from one_span(), in the order of their canonical bytes.

    Where several partitions or epochs have released a key in it, they are answered as one union.
    """
    rows = rows_of(reader, terms, question)
    for row in rows:
        if row.window != question.span:
            start, end = local(row.window.start_ms, question.zone), local(row.window.end_ms, question.zone)
            raise QuestionError(f"a row of {start} to {end} is not of the whole span, which is asked about: {_REMEDY}")
    if question.joined or len(rows) == len(rows.keys):
        return rows
    return rows_of(reader, terms, replace(question, grain="range"))
