"""The sizes of the windows of a tally, from the bits and the noisy count of each release, and what bounds their union.

The union has at least as many items as the largest window, and at most as many as all windows together.
docs/accuracy.md, eq. 34 to 36.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """The estimate of the items of each window of several tallies of equally many windows, which may be negative.

    Shapes (tallies, windows). No number of one tally depends on the others.
    """

    values: Array
    errors: Array
    """Standard errors."""
    laplace_share: Array
    """The part of the variance that is the noise of a noisy count."""
    jumps: Array
    """What a single flipped bit changes at most, in items."""
    capacity_score: Array
    """The score at the capacity, in standard deviations; below 0 where n is known to be smaller."""
    tables: tuple[tuple[NDArray[np.bool_], Scores], ...]
    """The windows whose releases have a noisy count of the same epsilon, and their standard errors at every n."""

    def only(self, tallies: list[int]) -> SizeEstimates:
        """Some of the tallies."""
        return SizeEstimates(
            self.values[tallies],
            self.errors[tallies],
            self.laplace_share[tallies],
            self.jumps[tallies],
            self.capacity_score[tallies],
            tuple((chosen[tallies], scores) for chosen, scores in self.tables),
        )

    @classmethod
    def of(
        cls, shape: SketchShape, channel: Channel, tallies: Sequence[WindowSizes], confidence: float
    ) -> SizeEstimates:
        """confidence: whatever the caller estimates with; tables are cached by it."""
        sums = one_sketch.level_sums(shape, channel, np.array([sizes.ones for sizes in tallies]))
        counts = [[(0.0, 0) if c is None else (float(c.epsilon), c.value) for c in sizes.counts] for sizes in tallies]
        budgets = np.array([[epsilon for epsilon, _ in row] for row in counts])
        noisy = np.array([[value for _, value in row] for row in counts], np.int64)
        values, errors, share, jumps, at_capacity = np.zeros((5, *budgets.shape))
        tables = []
        for epsilon in np.unique(budgets).tolist():
            chosen = budgets == epsilon
            if epsilon:
                variance = with_count.count_variance(epsilon)
                scores, _ = with_count.table(shape, channel, epsilon, confidence)
                data = with_count.with_rest(shape, sums[chosen], noisy[chosen])
                of_bits, of_count = scores.weights[:, :-1] - scores.weights[:, -1:], scores.weights[:, -1]
            else:
                scores, _ = one_sketch.table(shape, channel, confidence)
                variance, data, of_bits, of_count = 0.0, sums[chosen], scores.weights, np.zeros(len(scores.n))
            value, errors[chosen] = unclamped_of_many(scores, data)
            values[chosen] = value
            at_capacity[chosen] = np.einsum("wj,j->w", data, scores.weights[-1]) - scores.offset[-1]
            share[chosen] = np.interp(value, scores.n, np.minimum(of_count**2 * variance, 1.0))
            by_one_bit = np.abs(of_bits).max(axis=1) / channel.gap * scores.standard_error
            jumps[chosen] = np.interp(value, scores.n, by_one_bit)
            tables.append((chosen, scores))
        return cls(values, errors, share, jumps, at_capacity, tuple(tables))

    @property
    def total(self) -> Array:
        """Shape (tallies,): all windows together: items, counted once for each window that they are in."""
        return np.asarray(self.values.sum(axis=1))

    @property
    def total_error(self) -> Array:
        """Shape (tallies,)."""
        return np.asarray(np.sqrt(np.sum(self.errors**2, axis=1)))

    def evened(self) -> Array:
        """Shape (tallies, windows), >= 0: the values drawn towards their mean by as much as they differ by noise.

        Eq. 34. They are all equal where they differ no more than chance lets them in 39 of 40 cases.
        """
        mean, noise = self.values.mean(axis=1, keepdims=True), np.mean(self.errors**2, axis=1, keepdims=True)
        scatter = np.mean((self.values - mean) ** 2, axis=1, keepdims=True)
        chance = noise * (1.0 + 2.0 * math.sqrt(2.0 / self.values.shape[1]))
        kept = np.where(scatter > chance, 1.0 - noise / np.maximum(scatter, chance), 0.0)
        return np.asarray(np.maximum(mean + kept * (self.values - mean), 0.0))

    def largest_low(self, tail: float) -> Array:
        """Shape (tallies,), >= 0: what the largest window is below with probability `tail` at most (eq. 35)."""
        reach = _limits(tail / self.values.shape[1], self.laplace_share.max(axis=1))[:, None]
        lows = self.values - reach * self.errors - _skew(reach) * self.jumps
        return np.asarray(np.maximum(0.0, lows.max(axis=1)))

    def total_high(self, tail: float) -> Array:
        """Shape (tallies,), > 0: what the total is above with probability `tail` (eq. 36).

        The errors are those where the limit is the truth: they grow with n. Infinite where a window may be at its
        capacity.
        """
        square = self.errors**2
        whole = np.sum(square, axis=1)
        reach = _limits(tail, np.sum(self.laplace_share * square, axis=1) / whole)
        part, base, above_0 = square / whole[:, None], np.maximum(self.total, 0.0), np.maximum(self.values, 0.0)
        high = base + reach * np.sqrt(whole)
        for _ in range(_ROUNDS):
            high = base + reach * self._error_at(above_0 + (high - base)[:, None] * part)
        high += _skew(reach) * self.jumps.max(axis=1)
        return np.where(self.capacity_score.max(axis=1) > -reach, math.inf, high)

    def _error_at(self, values: Array) -> Array:
        """Shape (tallies,): the standard error of the total where the windows have these sizes."""
        errors = np.zeros(values.shape)
        for chosen, scores in self.tables:
            errors[chosen] = np.interp(values[chosen], scores.n, scores.standard_error)
        return np.asarray(np.sqrt(np.sum(errors**2, axis=1)))


def _skew(reach: Array) -> Array:
    """How many jumps a limit moves outwards where the noise is a few large jumps (Cornish and Fisher; eq. 35)."""
    return np.maximum(reach**2 - 1.0, 0.0) / 6.0


def _limits(tail: float, laplace_shares: Array) -> Array:
    """`limit` of each of many shares."""
    return np.array([limit(tail, share) for share in laplace_shares.tolist()])


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
