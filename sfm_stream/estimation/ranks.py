"""The ranks that intervals leave open: which places a set may have when several are put in order of size.

The interval of each estimate is widened until all of them hold together with the confidence of one (Bonferroni: each
end is moved away from the value as far as the quantile of the smaller error grows). Where the noise is below some two
items, an error is a whole number of them, and 95 % of them may be none: there an end is moved by as many items as a
discrete Laplace variable of this standard error may have. Then of two sets with disjoint intervals the larger one is
known, and every rank lies in its range, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.estimate import Estimate
from sfm_stream.estimation.intervals import two_sided_z

Array = NDArray[np.float64]
_LITTLE_NOISE = 2.2
"""Items: below this standard error an error is a whole number of items (as in few_items.py)."""


@dataclass(frozen=True, slots=True)
class RankRange:
    """The ranks that are left open, the largest set first: 1 <= low <= high."""

    low: int
    high: int


def rank_ranges(estimates: Sequence[Estimate]) -> list[RankRange]:
    """The ranks of sets among each other, in their order. All ranges hold at once with the confidence of the estimates.

    Equal sizes share every rank that any order of them gives. Estimates of one confidence.
    """
    if not estimates:
        return []
    lows, highs = simultaneous_limits(estimates)
    in_order_low, in_order_high = np.sort(lows), np.sort(highs)
    larger = len(lows) - np.searchsorted(in_order_low, highs, side="right")
    not_smaller = len(lows) - np.searchsorted(in_order_high, lows, side="left")
    return [RankRange(1 + int(low), max(1, int(high))) for low, high in zip(larger, not_smaller, strict=True)]


def simultaneous_limits(estimates: Sequence[Estimate]) -> tuple[Array, Array]:
    """(low, high) of each, shape (estimates,): intervals that all hold together with the confidence of one."""
    wrong = (1.0 - estimates[0].confidence) / len(estimates)
    wider = -NormalDist().inv_cdf(wrong / 2.0) / two_sided_z(estimates[0].confidence)
    value, low, high = np.array([(each.value, each.low, each.high) for each in estimates]).T
    more = np.zeros(len(estimates))
    if len(estimates) > 1:
        error = np.array([each.standard_error for each in estimates])
        little = error < _LITTLE_NOISE
        more[little] = _steps(error[little], wrong / 2.0)
    below = np.maximum(wider * (value - low), value - low + more)
    above = np.maximum(wider * (high - value), high - value + more)
    return np.maximum(value - below, 0.0), value + above


def _steps(error: Array, tail: float) -> Array:
    """The least k with Pr(X > k) <= tail, X discrete Laplace with this standard deviation.

    Its variance is v = 2 a / (1 - a)^2, and Pr(X > k) = a^(k + 1) / (1 + a).
    """
    v = np.maximum(error, 1e-6) ** 2
    a = v / (1.0 + v + np.sqrt(1.0 + 2.0 * v))
    return np.asarray(np.maximum(np.ceil(np.log(tail * (1.0 + a)) / np.log(a) - 1.0), 0.0))
