"""The JSON of a row of an answer: the field names that `estimate --json` prints."""

from __future__ import annotations

from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.answers.rows import AnswerRow
from sfm_stream.readable import instant


def row_json(row: AnswerRow) -> dict[str, object]:
    """A row as a JSON object; numbers are not rounded."""
    estimate = row.estimate
    return {
        "key": key_json(row.key),
        "grain": row.grain,
        "from": instant(row.window.start_ms),
        "to": instant(row.window.end_ms),
        "estimate": estimate.value,
        "standard_error": finite(estimate.standard_error),
        "low": estimate.low,
        "high": finite(estimate.high),
        "confidence": estimate.confidence,
        "status": str(estimate.status),
        "epsilon": row.epsilon,
        "released": row.released,
        "windows": row.windows,
        "complete": row.complete,
        "epoch": row.epoch,
    }
