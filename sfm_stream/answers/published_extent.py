"""How much a pipeline has published, and from when to when."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfm_stream.answers.published_records import release_heads, rollup_heads
from sfm_stream.answers.question import Question
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import SKETCHES


@dataclass(slots=True)
class PublishedExtent:
    """The span that releases or roll-ups lie in, None where there are none, and their keys in canonical bytes."""

    span: Window | None = None
    keys: set[bytes] = field(default_factory=set)


def published_extent(reader: TopicReader, pipeline: str, topic: str, grain: str | None = None) -> PublishedExtent:
    """Where the releases of a pipeline lie, or its roll-ups of this grain; None: of all grains."""
    heads_of = release_heads if topic == SKETCHES else rollup_heads
    extent = PublishedExtent()
    for stored, head in heads_of(reader, pipeline, Question(grain)):
        low, high = head.window.start_ms, head.window.end_ms
        known = extent.span
        extent.span = Window(min(low, known.start_ms), max(high, known.end_ms)) if known else Window(low, high)
        extent.keys.add(stored.key)
    return extent
