"""What a question has no answer to, and what is published instead of it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from sfm_stream.answers.key_notation import key_text
from sfm_stream.answers.published_records import decoded
from sfm_stream.answers.question import Question
from sfm_stream.errors import NothingFound
from sfm_stream.readable import local
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, RollupRecord
from sfm_stream.wire.keys import decode_key


def unanswered(reader: TopicReader, pipeline: str, question: Question, answered: Set[bytes]) -> list[str]:
    """A line for each key that is asked for and has no answer; answered: canonical bytes of the keys that have one.

    Raises NothingFound, saying what is published, where nothing is answered at all.
    """
    missing = [key for key in question.keys or () if not key.encoded & answered]
    if answered and not missing:
        return []
    grain = question.grain if question.topic == ROLLUPS else None
    published = _published_extent(reader, question.topic, pipeline, grain)
    if published.span is None:
        raise NothingFound(_nothing_at_all(reader, pipeline, question))
    lines = [
        f"--key {key.text}: "
        + (
            "nothing is published for it in this span"
            if key.encoded & published.keys
            else f"nothing is published for this key; there are {_examples(published.keys)}"
        )
        for key in missing
    ]
    if answered:
        return lines
    span = question.span
    if not lines or published.span.end_ms <= span.start_ms or published.span.start_ms >= span.end_ms:
        low, high = local(published.span.start_ms, question.zone), local(published.span.end_ms, question.zone)
        lines.append(
            f"nothing is published for {_asked(question)}; what there is lies between {low} and {high} "
            f"({question.zone})"
        )
    raise NothingFound("; ".join(lines))


def _asked(question: Question) -> str:
    if question.last is None:
        return "this span"
    low, high = local(question.span.start_ms, question.zone), local(question.span.end_ms, question.zone)
    return f"--last {question.last.text}, which is {low} to {high}"


@dataclass(slots=True)
class _PublishedExtent:
    """How much is published of one topic: the number of releases or roll-ups, the span that they lie in, their keys."""

    records: int = 0
    span: Window | None = None
    keys: set[bytes] = field(default_factory=set)


def _published_extent(reader: TopicReader, topic: str, pipeline: str, grain: str | None = None) -> _PublishedExtent:
    """What a pipeline has published in this topic, of roll-ups those of this grain; None: of all grains."""
    extent = _PublishedExtent()
    for stored in reader.read(topic):
        record = decoded(topic, stored)
        if isinstance(record, CloseMarker) or record.pipeline != pipeline:
            continue
        if isinstance(record, RollupRecord) and grain not in (None, record.grain):
            continue
        low, high = record.window.start_ms, record.window.end_ms
        known = extent.span
        extent.span = Window(min(low, known.start_ms), max(high, known.end_ms)) if known else Window(low, high)
        extent.records += 1
        extent.keys.add(record.key)
    return extent


def _nothing_at_all(reader: TopicReader, pipeline: str, question: Question) -> str:
    if question.topic == ROLLUPS and _published_extent(reader, SKETCHES, pipeline).records:
        what = f"{question.grain}s are" if question.grain else "roll-ups are"
        return f"pipeline {pipeline}: no {what} published yet, only windows: ask --by window, week or month, or --last"
    return f"pipeline {pipeline} has published nothing yet: no window of it is closed, or every key was withheld"


def _examples(keys: Set[bytes]) -> str:
    shown = ", ".join(key_text(decode_key(key)) for key in sorted(keys)[:3])
    return f"{len(keys):,} others, such as {shown}"
