"""The JSON of two sets together."""

from __future__ import annotations

from sfm_stream.answers.key_notation import finite
from sfm_stream.answers.pairs import PairAnswer
from sfm_stream.answers.row_json import row_json
from sfm_stream.estimation.estimate import Estimate


def pair_json(pair: PairAnswer) -> dict[str, object]:
    """first, second: rows as in row_json. both, only_first, only_second, either: their numbers.

    noise_epsilon: the noise of the two sketches together, the paper's epsilon*; it is no budget.
    """
    return {
        "first": row_json(pair.first),
        "second": row_json(pair.second),
        "both": _estimate_json(pair.parts.both),
        "only_first": _estimate_json(pair.parts.only_first),
        "only_second": _estimate_json(pair.parts.only_second),
        "either": _estimate_json(pair.parts.either),
        "noise_epsilon": pair.parts.epsilon,
    }


def _estimate_json(estimate: Estimate) -> dict[str, object]:
    return {
        "estimate": estimate.value,
        "standard_error": finite(estimate.standard_error),
        "low": estimate.low,
        "high": finite(estimate.high),
        "confidence": estimate.confidence,
        "status": str(estimate.status),
    }
