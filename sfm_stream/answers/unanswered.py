"""What a question has no answer to, and what is published instead of it.

For that no more is read than for the question: what is published in its span under other keys, and how far is decided.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from itertools import islice

from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.asked_span import EVERYTHING
from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.published_records import close_markers, release_heads, rollup_heads
from sfm_stream.answers.question import Question
from sfm_stream.errors import NothingFound
from sfm_stream.readable import local
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS, ROLLUPS
from sfm_stream.wire.keys import decode_key

_EXAMPLES, _LOOKED_AT = 3, 1000
"""Other keys that are named, and records that are looked at for them."""


def unanswered(reader: TopicReader, pipeline: str, question: Question, answered: Set[bytes]) -> list[str]:
    """A line for each key that is asked for and has no answer; answered: canonical bytes of the keys that have one.

    Raises NothingFound, saying what is published, where nothing is answered at all.
    """
    missing = [key for key in question.keys or () if not key.encoded & answered]
    if answered and not missing:
        return []
    others = _published_keys(reader, pipeline, question)
    if not others:
        raise NothingFound(_nothing_in_span(reader, pipeline, question))
    lines = [_of_key(key, question, others) for key in missing]
    if answered:
        return lines
    raise NothingFound("; ".join(lines))


def _published_keys(reader: TopicReader, pipeline: str, question: Question) -> list[bytes]:
    """Some keys under which something is published in the span of a question, whatever keys it asks for; sorted."""
    heads_of = rollup_heads if question.topic == ROLLUPS else release_heads
    found = set[bytes]()
    for stored, _ in islice(heads_of(reader, pipeline, replace(question, keys=None)), _LOOKED_AT):
        found.add(stored.key)
        if len(found) == _EXAMPLES:
            break
    return sorted(found)


def _nothing_in_span(reader: TopicReader, pipeline: str, question: Question) -> str:
    if question.topic == ROLLUPS and _published_keys(reader, pipeline, replace(question, grain="window")):
        what = f"{question.grain}s are" if question.grain else "roll-ups are"
        otherwise = "or --last" if question.last is None else f"or --last {question.last.text} without --by"
        where = "yet" if question.span == EVERYTHING else "in this span"
        instead = f"ask --by window, week or month, {otherwise}"
        return f"pipeline {pipeline}: no {what} published {where}, only windows: {instead}"
    if question.span == EVERYTHING or (decided := _decided(reader, pipeline)) is None:
        return f"pipeline {pipeline} has published nothing yet: no window of it is closed, or every key was withheld"
    asked = "this span"
    if question.last is not None:
        low, high = _written(question.span, question.zone)
        asked = f"--last {question.last.text}, which is {low} to {high}"
    low, high = _written(decided, question.zone)
    return f"nothing is published for {asked}; what there is lies between {low} and {high} ({question.zone})"


def _decided(reader: TopicReader, pipeline: str) -> Window | None:
    """From the start of the first window to the end of the last one that are decided; None where none is."""
    ends = [marker for time_ms in (0, FOREVER_MS) for marker in close_markers(reader, pipeline, time_ms, time_ms)]
    if not ends:
        return None
    return Window(min(marker.start_ms for marker in ends), max(marker.through_ms for marker in ends))


def _written(window: Window, zone: str) -> tuple[str, str]:
    return local(window.start_ms, zone), local(window.end_ms, zone)


def _of_key(key: AskedKey, question: Question, others: list[bytes]) -> str:
    where = "this key" if question.span == EVERYTHING else "it in this span"
    examples = ", ".join(key_text(decode_key(other)) for other in others)
    return f"--key {key.text}: nothing is published for {where}; there are others, such as {examples}"
