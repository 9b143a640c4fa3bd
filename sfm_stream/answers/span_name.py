"""What the released span of a published record is called."""

from __future__ import annotations

from sfm_stream.readable import duration
from sfm_stream.wire.codec import CloseMarker, RollupRecord, WireRecord
from sfm_stream.wire.heads import ReleaseHead


def span_name(record: WireRecord | ReleaseHead) -> str:
    """The name of the released span that a record is of, of a roll-up that of the windows it is made of.

    Records without one are of windows of a fixed length, which is the name.
    """
    if record.span is not None:
        return record.span
    if isinstance(record, CloseMarker):
        return duration(record.window_ms)
    length_ms = record.window.end_ms - record.window.start_ms
    return duration(length_ms // record.windows if isinstance(record, RollupRecord) else length_ms)
