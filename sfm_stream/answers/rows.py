"""The rows of an answer: which published records are read for a question, and what becomes of them."""

from __future__ import annotations

from sfm_stream.answers.answer_rows import AnswerRows
from sfm_stream.answers.asked_releases import asked_heads, asked_releases
from sfm_stream.answers.asked_rollups import newest_rollups
from sfm_stream.answers.candidates import Candidates
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.omitted_records import OmittedRecords
from sfm_stream.answers.question import Question
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rollup_rows import rollup_rows
from sfm_stream.answers.union_rows import union_rows
from sfm_stream.answers.window_rows import window_rows
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import ROLLUPS


def rows_of(reader: TopicReader, terms: ReleaseTerms, question: Question) -> AnswerRows:
    """The rows for a question whose span is known, in order of time and key; none where nothing of it is published.

    Raises ConflictError where a release has two payloads, QuestionError where the span cuts a base window, and
    IncompatibleError where epochs differ in shape or hash.
    """
    if question.topic == ROLLUPS:
        rollups = newest_rollups(reader, terms.pipeline, question, OmittedRecords())
        return rollup_rows(rollups, terms)
    decided = DecidedSpans(question.zone)
    if question.grain == "window" and not question.joined:
        return window_rows(asked_releases(reader, terms.pipeline, question, decided), decided, terms)
    candidates = Candidates(question, asked_heads(reader, terms.pipeline, question, decided))
    candidates.require_no_conflict(reader, terms.pipeline)
    return union_rows(question, candidates, reader, decided, terms)
