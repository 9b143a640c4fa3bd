"""From level sums to an estimate with an interval: a weighted score, its exact variance, and their inversion.

docs/accuracy.md, eq. 2 to 6, 10 and 11. The data are the sums Z_j, over the cells of each level, of a signal z whose
mean is 1 in an empty cell and 0 in a cell that is set. The score

    U(n) = sum_j w_j(n) (Z_j - B_j gamma_j^n),    w_j = gamma_j^n ln gamma_j / v_j                       (eq. 5)

has mean 0 at the true n. Its variance there is known in closed form for every n (occupancy.py), so the interval needs
no approximation around the estimate: it contains each n whose score is close enough to 0 (intervals.py). For one sketch
U is exactly the derivative of the composite likelihood (paper, section "Cardinality Estimation").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.sketch.layout import BitmapLayout

Array = NDArray[np.float64]
_STEP = 1 / 24
_SKETCHES = 128
"""Of so many at once the scores at all points stay near the processor."""
_MOST_BIAS = 0.25
"""A larger share of the standard error fades out: near the capacity the expansion of eq. 41 does not hold."""
TINY = 1e-9
"""Least variance of a score, as a share of its information. It matters for a handful of items and almost no noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """How z varies within one cell: where the cell is empty (mean 1), and where it is set (mean 0)."""

    layout: BitmapLayout
    empty_variance: float
    """Variance of z in an empty cell, > 0."""
    set_square: Array
    """Shape (levels,), > 0: mean square of z over the cells of a level that are set; of several signals that differ in
    nothing else, shape (signals, 1, levels)."""

    @property
    def noise_floor(self) -> float:
        """Standard error of the estimate at n = 0 (eq. 12)."""
        return math.sqrt(self.empty_variance / float(self.layout.sizes @ self.layout.rho**2))

    def grid(self) -> Array:
        """Shape (points,): numbers of items at which the score is computed."""
        return grid(self.noise_floor, self.layout.capacity)


def grid(noise_floor: float, capacity: float) -> Array:
    """Shape (points,), 0 .. capacity: steps of 1/24 of the noise floor near 0, of 1/24 of n far from 0."""
    scale = min(max(noise_floor, 0.5), capacity)
    reach = math.log1p(capacity / scale)
    return scale * np.expm1(np.linspace(0.0, reach, math.ceil(reach / _STEP) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """All of the score that does not depend on the data, at several n.

    Shapes (points,) unless said otherwise. Of several signals (signals, points); for these only `at` is meant.
    """

    n: Array
    weights: Array
    """Shape (points, levels), <= 0: the weight w_j of Z_j (eq. 5), divided by the standard deviation of the score."""
    offset: Array
    """sum_j weights_j B_j gamma_j^n: the mean of the weighted sums if n is the truth."""
    spread: Array
    """Standard deviation of U if n is the truth (eq. 9)."""
    distance: Array
    """Minus the mean of the score, in standard deviations, if the truth is 0: how far n lies above 0."""
    standard_error: Array
    """Standard error of the estimate if n is the truth (eq. 10, the "sandwich" of Godambe)."""
    bias: Array
    """How much too high the root of the score is on average if n is the truth, to second order (eq. 41)."""

    @classmethod
    def at(cls, signal: Signal, n: Array) -> Scores:
        """n: shape (points,), ascending from 0 to at most the capacity; of several signals (signals, points)."""
        sizes = signal.layout.sizes
        cells = Occupancy.at(signal.layout, n)
        occupied = 1.0 - cells.empty
        variance = cells.empty * signal.empty_variance + occupied * signal.set_square + occupied * cells.empty  # eq. 4
        raw = cells.slope / variance  # eq. 5
        information = (raw * cells.slope) @ sizes  # eq. 6
        spread = np.sqrt(np.maximum(cells.variance_of(raw, variance), TINY * information))
        weights = raw / spread[..., None]
        offset = (weights * cells.empty) @ sizes
        distance = np.maximum(offset - weights @ sizes, 0.0)
        error = spread / information
        return cls(n, weights, offset, spread, distance, error, _bias(signal, cells, variance, raw, information, error))

    def unclamped(self, root: Array, below: Array) -> Array:
        """The estimates without their mean error, in the shape of `root`. root: where the score is 0, >= 0.

        below: what continues a root of 0, linearly and so without a mean error, to numbers below 0; 0 at other roots.
        Around 0 the half of the estimates that is above it has the error: its share grows from none at one standard
        error below 0 to all of it at one above.
        """
        return without_bias(root, below, self.standard_error[0], np.interp(root, self.n, self.bias))

    def of(self, sums: Array) -> Array:
        """Shape (points,): the score in standard deviations. sums: shape (levels,), the Z_j."""
        return np.asarray(self.weights @ sums - self.offset)


@dataclass(frozen=True, slots=True)
class Solution:
    """An estimate, its standard error and its limits, in items. `unclamped` may be negative; sums use it."""

    value: float
    unclamped: float
    standard_error: float
    low: float
    high: float


def invert(scores: Scores, accepted: Acceptance, sums: Array) -> Solution:
    """The estimate, and the smallest interval that contains every accepted n.

    The estimate is the global maximum of the quasi-likelihood, which is the integral of U. It is 0 or the capacity if U
    does not change its sign. `high` is infinite if the capacity is accepted. sums: shape (levels,), the Z_j.
    """
    score = scores.of(sums)
    value, error, low, high = inverted(scores.n, score, scores.spread, scores.standard_error, accepted)
    below = np.minimum(0.0, score[0] * scores.standard_error[0])
    return Solution(value, float(scores.unclamped(np.array(value), below)), error, low, high)


def inverted(
    n: Array, score: Array, spread: Array, standard_error: Array, accepted: Acceptance
) -> tuple[float, float, float, float]:
    """(the estimate, its standard error, low, high), as in `invert`. Arrays: shape (points,), as those of Scores."""
    value, error = maximum(n, score, spread, standard_error)
    below, above = accepted.beyond(score)
    first = int(np.argmax(below <= 0.0)) if below.min() <= 0.0 else len(score) - 1
    last = len(score) - 1 - int(np.argmax(above[::-1] >= 0.0))
    low = _crossing(n, below, first - 1) if first else 0.0
    high = _crossing(n, above, last) if last < len(score) - 1 else math.inf
    return value, error, min(low, value), max(high, value)


def without_bias(root: Array, below: Array, error_at_0: Array, bias: Array) -> Array:
    """As Scores.unclamped, given the standard error at n = 0 and the bias at the root."""
    raw = np.where(root > 0.0, root, below)
    share = np.clip(0.5 + 0.5 * raw / error_at_0, 0.0, 1.0)
    return np.asarray(raw - share * bias)


def unclamped_of_many(scores: Scores, sums: Array) -> tuple[Array, Array]:
    """(estimates, their standard errors), both of shape (sketches,), from sums of shape (sketches, levels).

    The estimate is the `unclamped` of `invert`, up to a thirtieth of the standard error: roots are interpolated
    linearly here, for many sketches at once.
    """
    parts = [_unclamped(scores, sums[low : low + _SKETCHES]) for low in range(0, len(sums), _SKETCHES)]
    values, errors = (np.concatenate(several) for several in zip(*parts, strict=True))
    return values, errors


def _unclamped(scores: Scores, sums: Array) -> tuple[Array, Array]:
    score = (sums[:, None] @ scores.weights.T)[:, 0] - scores.offset  # each row by itself, however many there are
    slope = score * scores.spread
    steps = 0.5 * (slope[:, 1:] + slope[:, :-1]) * np.diff(scores.n)
    rows = np.arange(len(score))
    peak = np.concatenate((np.zeros((len(score), 1)), np.cumsum(steps, axis=1)), axis=1).argmax(axis=1)
    left = np.clip(np.where(slope[rows, peak] > 0.0, peak, peak - 1), 0, score.shape[1] - 2)
    before, after = score[rows, left], score[rows, left + 1]
    crosses = (before > 0.0) & (after <= 0.0)
    part = np.where(crosses, before / np.where(crosses, before - after, 1.0), peak - left)
    value = scores.n[left] + part * (scores.n[left + 1] - scores.n[left])
    error = np.interp(value, scores.n, scores.standard_error)
    return scores.unclamped(value, np.minimum(0.0, score[:, 0] * scores.standard_error[0])), error


def _bias(signal: Signal, cells: Occupancy, variance: Array, raw: Array, information: Array, error: Array) -> Array:
    """Shape (points,): the mean error of the root (eq. 41).

    variance: eq. 4. raw: the weights of eq. 5. error: eq. 10.
    """
    log_gamma = np.log1p(-signal.layout.rho)
    slope_of_variance = cells.slope * (signal.empty_variance - signal.set_square + 1.0 - 2.0 * cells.empty)
    change = raw * (log_gamma - slope_of_variance / variance)
    curvature = ((2.0 * change + raw * log_gamma) * cells.slope) @ signal.layout.sizes
    bias = cells.covariance_of(raw, change, variance) / information**2 - 0.5 * curvature * error**2 / information
    return believed(bias, error)


def believed(bias: Array, error: Array) -> Array:
    """Shape (points,): the bias up to _MOST_BIAS standard errors, less of it above, and none from twice that on."""
    return np.asarray(bias * np.clip(2.0 - np.abs(bias) / (_MOST_BIAS * error), 0.0, 1.0))


def maximum(n: Array, score: Array, spread: Array, standard_error: Array) -> tuple[float, float]:
    """(the global maximum of the integral of U, the standard error there). Arrays: shape (points,)."""
    slope = score * spread
    steps = 0.5 * (slope[1:] + slope[:-1]) * (n[1:] - n[:-1])
    peak = int(np.argmax(np.concatenate(([0.0], np.cumsum(steps)))))
    left = peak if slope[peak] > 0.0 else peak - 1
    if left < 0 or left + 1 == len(score):
        return float(n[peak]), float(standard_error[peak])
    value = _crossing(n, score, left)
    return value, float(np.interp(value, n, standard_error))


def _crossing(n: Array, values: Array, left: int) -> float:
    """The zero of a smooth function between grid points `left` and `left + 1`, where its sign changes.

    The function is a cubic in the grid coordinate through four neighbouring points; its error is far below 1e-4
    standard deviations. Newton's method, with bisection where a step leaves the bracket.
    """
    start = min(max(left - 1, 0), len(n) - 4)
    y0, y1, y2, y3 = values[start : start + 4].tolist()
    c1, c2, c3 = y1 - y0, (y2 - 2 * y1 + y0) / 2, (y3 - 3 * y2 + 3 * y1 - y0) / 6

    def cubic(x: float) -> tuple[float, float]:
        value = y0 + x * (c1 + (x - 1) * (c2 + (x - 2) * c3))
        return value, c1 + (2 * x - 1) * c2 + (3 * x * x - 6 * x + 2) * c3

    at = _root(cubic, float(left - start), left - start + 1.0)
    m0, m1, m2, m3 = n[start : start + 4].tolist()
    d1, d2, d3 = m1 - m0, (m2 - 2 * m1 + m0) / 2, (m3 - 3 * m2 + 3 * m1 - m0) / 6
    return float(m0 + at * (d1 + (at - 1) * (d2 + (at - 2) * d3)))


def _root(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """The zero in low..high of a function that changes sign from + to - there; it gives (value, derivative)."""
    at = 0.5 * (low + high)
    for _ in range(40):
        value, slope = function(at)
        low, high = (at, high) if value > 0.0 else (low, at)
        step = at - value / slope if slope < 0.0 else math.inf
        if abs(step - at) < 1e-10:
            break
        at = step if low < step < high else 0.5 * (low + high)
    return at
