"""How much a pipeline has published, and from when to when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.published_records import releases_and_markers, rollup_revisions
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import Release, RollupRecord


@dataclass(slots=True)
class PublishedExtent:
    """The span that releases or roll-ups lie in, None where there are none, and their keys in canonical bytes."""

    span: Window | None = None
    keys: set[bytes] = field(default_factory=set)


def published_extent(reader: TopicReader, pipeline: str, topic: str, grain: str | None = None) -> PublishedExtent:
    """Where the releases of a pipeline lie, or its roll-ups of this grain; None: of all grains."""
    records: Iterator[Release | RollupRecord]
    if topic == SKETCHES:
        records = (record for record, _ in releases_and_markers(reader, pipeline) if isinstance(record, Release))
    else:
        records = (record for record in rollup_revisions(reader, pipeline) if grain in (None, record.grain))
    extent = PublishedExtent()
    for record in records:
        low, high = record.window.start_ms, record.window.end_ms
        known = extent.span
        extent.span = Window(min(low, known.start_ms), max(high, known.end_ms)) if known else Window(low, high)
        extent.keys.add(record.key)
    return extent
