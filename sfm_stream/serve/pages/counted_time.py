"""From when to when a pipeline has counted, as its close markers say."""

from __future__ import annotations

from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.published_records import close_markers
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS


def counted_time(reader: TopicReader, pipeline: str, zone: str) -> Window | None:
    """From the first border that is known to have been counted to the last one through which a partition is decided.

    None where nothing is decided yet.
    """
    decided = DecidedSpans(zone)
    for time_ms in (0, FOREVER_MS):
        for marker in close_markers(reader, pipeline, time_ms, time_ms):
            decided.note(marker)
    spans = [window for epoch in decided.epochs.values() for of in epoch.decided.values() for window in of.values()]
    return Window(min(s.start_ms for s in spans), max(s.end_ms for s in spans)) if spans else None
