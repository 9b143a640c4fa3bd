"""The sizes of the windows of a tally, from the bits and the noisy count of each release, and what bounds their union.

The union has at least as many items as the largest window, and at most as many as all windows together.
docs/accuracy.md, eq. 34 to 36.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import normal_laplace, one_sketch, with_count
from sfm_stream.estimation.score import Scores, unclamped_of_many
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes

Array = NDArray[np.float64]
_ROUNDS = 4
"""Rounds in which the limit and the errors there are found from each other."""
_STEP_OF_SHARES = 1 / 8


@dataclass(frozen=True, slots=True, eq=False)
class SizeEstimates:
    """The estimate of each window's items, which may be negative, with its standard error. Shapes (windows,)."""

    values: Array
    errors: Array
    laplace_share: Array
    """The part of the variance that is the noise of a noisy count."""
    jumps: Array
    """What a single flipped bit changes at most, in items."""
    capacity_score: float
    """The largest score of a window at the capacity, in standard deviations; below 0 where n is known to be smaller."""
    tables: tuple[tuple[NDArray[np.int64], Scores], ...]
    """The windows whose releases have a noisy count of the same epsilon, and their standard errors at every n."""

    @classmethod
    def of(cls, shape: SketchShape, channel: Channel, sizes: WindowSizes, confidence: float) -> SizeEstimates:
        """confidence: whatever the caller estimates with; tables are cached by it."""
        sums = one_sketch.level_sums(shape, channel, sizes.ones)
        budgets = np.array([0.0 if count is None else float(count.epsilon) for count in sizes.counts])
        noisy = np.array([0 if count is None else count.value for count in sizes.counts], np.int64)
        values, errors, share, jumps, at_capacity = (np.zeros(len(sums)) for _ in range(5))
        tables = []
        for epsilon in np.unique(budgets):
            rows = np.flatnonzero(budgets == epsilon)
            if epsilon:
                variance = with_count.count_variance(float(epsilon))
                scores, _ = with_count.table(shape, channel, float(epsilon), confidence)
                data = with_count.with_rest(shape, sums[rows], noisy[rows])
                of_bits, of_count = scores.weights[:, :-1] - scores.weights[:, -1:], scores.weights[:, -1]
            else:
                scores, _ = one_sketch.table(shape, channel, confidence)
                variance, data, of_bits, of_count = 0.0, sums[rows], scores.weights, np.zeros(len(scores.n))
            values[rows], errors[rows] = unclamped_of_many(scores, data)
            at_capacity[rows] = data @ scores.weights[-1] - scores.offset[-1]
            share[rows] = np.interp(values[rows], scores.n, np.minimum(of_count**2 * variance, 1.0))
            by_one_bit = np.abs(of_bits).max(axis=1) / channel.gap * scores.standard_error
            jumps[rows] = np.interp(values[rows], scores.n, by_one_bit)
            tables.append((rows, scores))
        return cls(values, errors, share, jumps, float(at_capacity.max()), tuple(tables))

    @property
    def total(self) -> float:
        """All windows together: items, counted once for each window that they are in."""
        return float(self.values.sum())

    @property
    def total_error(self) -> float:
        return math.sqrt(float(np.sum(self.errors**2)))

    def evened(self) -> Array:
        """Shape (windows,), >= 0: the values drawn towards their mean by as much as their differences are noise.

        Eq. 34. They are all equal where they differ no more than chance lets them in 39 of 40 cases.
        """
        mean, noise = float(self.values.mean()), float(np.mean(self.errors**2))
        scatter = float(np.mean((self.values - mean) ** 2))
        chance = noise * (1.0 + 2.0 * math.sqrt(2.0 / len(self.values)))
        kept = 1.0 - noise / scatter if scatter > chance else 0.0
        return np.maximum(mean + kept * (self.values - mean), 0.0)

    def largest_low(self, tail: float) -> float:
        """A number that the largest window is below with probability `tail` at most, >= 0 (eq. 35)."""
        reach = limit(tail / len(self.values), float(self.laplace_share.max()))
        return max(0.0, float(np.max(self.values - reach * self.errors - _skew(reach) * self.jumps)))

    def total_high(self, tail: float) -> float:
        """A number that the total is above with probability `tail`, > 0 (eq. 36).

        The errors are those where the limit is the truth: they grow with n. Infinite where a window may be at its
        capacity.
        """
        share = float(np.sum(self.laplace_share * self.errors**2)) / self.total_error**2
        reach, base = limit(tail, share), max(self.total, 0.0)
        if self.capacity_score > -reach:
            return math.inf
        part, high = self.errors**2 / self.total_error**2, base + reach * self.total_error
        for _ in range(_ROUNDS):
            high = base + reach * self._error_at(np.maximum(self.values, 0.0) + (high - base) * part)
        return high + _skew(reach) * float(self.jumps.max())

    def _error_at(self, values: Array) -> float:
        """The standard error of the total where the windows have these sizes."""
        squares = [
            float(np.sum(np.interp(values[rows], scores.n, scores.standard_error) ** 2)) for rows, scores in self.tables
        ]
        return math.sqrt(sum(squares))


def _skew(reach: float) -> float:
    """How many jumps a limit moves outwards where the noise is a few large jumps (Cornish and Fisher; eq. 35)."""
    return max(reach**2 - 1.0, 0.0) / 6.0


def limit(tail: float, laplace_share: float) -> float:
    """How many standard deviations a normal plus a Laplace variable exceed with this probability at most.

    The share is rounded up to an eighth, as far out more Laplace is more.
    """
    return max(_limit(tail, math.ceil(laplace_share / _STEP_OF_SHARES) * _STEP_OF_SHARES), _limit(tail, 0.0))


@lru_cache(maxsize=256)
def _limit(tail: float, share: float) -> float:
    low, high = 0.0, 40.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        above = float(normal_laplace.cdf(np.array([-middle]), np.array([share]))[0])
        low, high = (middle, high) if above > tail else (low, middle)
    return high
