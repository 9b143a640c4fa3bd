"""The JSON of two sets together."""

from __future__ import annotations

from sfm_stream.answers.pairs import PairAnswer
from sfm_stream.answers.row_json import estimate_json, row_json


def pair_json(pair: PairAnswer) -> dict[str, object]:
    """first, second: rows as in row_json. both, only_first, only_second, either: their numbers.

    noise_epsilon: the noise of the two sketches together, the paper's epsilon*; it is no budget.
    """
    return {
        "first": row_json(pair.first),
        "second": row_json(pair.second),
        "both": estimate_json(pair.parts.both),
        "only_first": estimate_json(pair.parts.only_first),
        "only_second": estimate_json(pair.parts.only_second),
        "either": estimate_json(pair.parts.either),
        "noise_epsilon": pair.parts.epsilon,
    }
