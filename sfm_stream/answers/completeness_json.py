"""The JSON of how far a pipeline has come."""

from __future__ import annotations

from sfm_stream.answers.completeness import Completeness
from sfm_stream.readable import instant


def completeness_json(found: Completeness) -> dict[str, object]:
    """Times as in row_json; null where nothing is decided."""
    return {
        "epoch": found.epoch,
        "zone": found.zone,
        "through": _time(found.through_ms or None),
        "spans": [
            {
                "span": span.name,
                "through": _time(span.through_ms),
                "last": span.last and {"from": instant(span.last.start_ms), "to": instant(span.last.end_ms)},
            }
            for span in found.spans
        ],
        "partitions": found.partitions,
        "open": [{"partition": each.partition, "through": _time(each.through_ms)} for each in found.open],
    }


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else instant(time_ms)
