"""A question with its span: `--last` ends where what is published is decided."""

from __future__ import annotations

from dataclasses import replace

from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.published_records import close_markers
from sfm_stream.answers.question import Question
from sfm_stream.errors import NothingFound
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import FOREVER_MS


def settled(reader: TopicReader, pipeline: str, question: Question) -> Question:
    """The question with the span that `last` stands for, from the close markers of the pipeline; else as it is.

    Raises NothingFound where nothing is decided, QuestionError where the span begins before 1970.
    """
    if question.last is None:
        return question
    if not (through_ms := last_decided(reader, pipeline, question.zone).through_ms()):
        raise NothingFound(f"pipeline {pipeline} has published nothing yet: no window of it is closed")
    return replace(question, span=question.last.span(through_ms, question.zone))


def last_decided(reader: TopicReader, pipeline: str, zone: str) -> DecidedSpans:
    """How far the released spans of a pipeline are decided, of which the days are those of this zone.

    The last markers of the finest span are looked up, then those of the coarser spans where the last one may be.
    """
    decided = DecidedSpans(zone)
    for marker in close_markers(reader, pipeline, FOREVER_MS, FOREVER_MS):
        decided.note(marker)
    borders_ms = set().union(*(epoch.last_borders() for epoch in decided.epochs.values()))
    for border_ms in sorted(borders_ms):
        for marker in close_markers(reader, pipeline, border_ms, border_ms):
            decided.note(marker)
    return decided
