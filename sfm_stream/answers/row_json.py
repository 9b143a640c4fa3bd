"""The JSON of a row of an answer: the field names that `estimate --json` prints."""

from __future__ import annotations

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.estimation.estimate import Estimate
from sfm_stream.readable import instant


def row_json(row: AnswerRow) -> dict[str, object]:
    """A row as a JSON object; numbers are not rounded.

    releases: how many of which released span it is made of. missing: what of its span may hold something and is not in
    it, null where the record does not say which of its windows that are. keys: of a row for several keys together.
    """
    return {
        "key": key_json(row.key),
        "keys": [key_json(key) for key in row.keys],
        "grain": row.grain,
        "from": instant(row.window.start_ms),
        "to": instant(row.window.end_ms),
        **estimate_json(row.estimate),
        "epsilon": row.epsilon,
        "origin": row.origin,
        "releases": dict(row.releases),
        "released": row.released,
        "windows": row.windows,
        "complete": row.complete,
        "missing_ms": row.missing_ms,
        "missing": None
        if row.missing is None
        else [{"from": instant(part.start_ms), "to": instant(part.end_ms)} for part in row.missing],
        "epoch": row.epoch,
    }


def estimate_json(estimate: Estimate) -> dict[str, object]:
    """The number of a row or of a part, with its interval; null where it is infinite."""
    return {
        "estimate": estimate.value,
        "standard_error": finite(estimate.standard_error),
        "low": estimate.low,
        "high": finite(estimate.high),
        "confidence": estimate.confidence,
        "status": str(estimate.status),
    }
