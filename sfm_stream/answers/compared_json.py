"""The JSON of two spans or keys side by side."""

from __future__ import annotations

from sfm_stream.answers.compared import ComparedRow
from sfm_stream.answers.key_notation import finite, key_json
from sfm_stream.answers.row_json import row_json


def compared_json(row: ComparedRow) -> dict[str, object]:
    """first, second: rows as in row_json, null where nothing is published. difference: of the second less the first.

    value, standard_error, low, high: null where nothing is known or no limit. sign: 1, -1, or null where the interval
    leaves it open.
    """
    found = row.difference
    return {
        "key": key_json(row.key),
        "first": None if row.first is None else row_json(row.first),
        "second": None if row.second is None else row_json(row.second),
        "difference": {
            "value": found.value,
            "standard_error": finite(found.standard_error),
            "low": finite(found.low),
            "high": finite(found.high),
            "confidence": found.confidence,
            "sign": found.sign,
        },
        "change": row.change,
    }
