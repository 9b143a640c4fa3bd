"""What a question has no answer to, and what is published instead of it."""

from __future__ import annotations

from collections.abc import Set

from sfm_stream.answers.asked_keys import AskedKey
from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.published_extent import PublishedExtent, published_extent
from sfm_stream.answers.question import Question
from sfm_stream.errors import NothingFound
from sfm_stream.readable import local
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.keys import decode_key


def unanswered(reader: TopicReader, pipeline: str, question: Question, answered: Set[bytes]) -> list[str]:
    """A line for each key that is asked for and has no answer; answered: canonical bytes of the keys that have one.

    Raises NothingFound, saying what is published, where nothing is answered at all.
    """
    missing = [key for key in question.keys or () if not key.encoded & answered]
    if answered and not missing:
        return []
    published = published_extent(reader, pipeline, question.topic, question.grain)
    if published.span is None:
        has_windows = question.topic == ROLLUPS and published_extent(reader, pipeline, SKETCHES).span is not None
        raise NothingFound(_nothing_at_all(pipeline, question, has_windows))
    lines = [_of_key(key, published) for key in missing]
    if answered:
        return lines
    if not lines or _are_apart(published.span, question.span):
        lines.append(_of_span(question, published.span))
    raise NothingFound("; ".join(lines))


def _nothing_at_all(pipeline: str, question: Question, has_windows: bool) -> str:
    """has_windows: whether there are releases, of which the roll-ups that are asked for could be made."""
    if not has_windows:
        return f"pipeline {pipeline} has published nothing yet: no window of it is closed, or every key was withheld"
    what = f"{question.grain}s are" if question.grain else "roll-ups are"
    otherwise = "or --last" if question.last is None else f"or --last {question.last.text} without --by"
    return f"pipeline {pipeline}: no {what} published yet, only windows: ask --by window, week or month, {otherwise}"


def _of_key(key: AskedKey, published: PublishedExtent) -> str:
    if key.encoded & published.keys:
        return f"--key {key.text}: nothing is published for it in this span"
    examples = ", ".join(key_text(decode_key(other)) for other in sorted(published.keys)[:3])
    others = f"{len(published.keys):,} others, such as {examples}"
    return f"--key {key.text}: nothing is published for this key; there are {others}"


def _are_apart(one: Window, other: Window) -> bool:
    return one.end_ms <= other.start_ms or one.start_ms >= other.end_ms


def _of_span(question: Question, published: Window) -> str:
    def written(window: Window) -> tuple[str, str]:
        return local(window.start_ms, question.zone), local(window.end_ms, question.zone)

    asked = "this span"
    if question.last is not None:
        low, high = written(question.span)
        asked = f"--last {question.last.text}, which is {low} to {high}"
    low, high = written(published)
    return f"nothing is published for {asked}; what there is lies between {low} and {high} ({question.zone})"
