"""From level sums to an estimate with an interval: a weighted score, its exact variance, and their inversion.

The data are sums Z_j over each level's cells of an unbiased signal z: E z = 1 in an empty cell and 0 in a lit one.
With v_j(n) the variance of z in a cell of level j, the score

    U(n) = sum_j w_j(n) (Z_j - B_j gamma_j^n),    w_j = gamma_j^n ln gamma_j / v_j    (negative: more ones, larger U)

has mean 0 and a variance in closed form at the true n (occupancy.py), for every n and without asymptotics. The interval
collects the n whose score is not too far from 0 (intervals.py): no curvature and no expansion around the estimate. For
one sketch U is the derivative of the composite likelihood (paper, section "Cardinality Estimation"), to the digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.sketch.layout import Layout

Array = NDArray[np.float64]
_STEP = 1 / 24
TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """How z varies: in an empty cell (mean 1) and, on average over the level, in a lit one (mean 0)."""

    layout: Layout
    empty: float
    """Variance in an empty cell, > 0."""
    lit: Array
    """Shape (levels,), > 0: mean square in a lit cell."""

    @property
    def noise_floor(self) -> float:
        """Standard error of the estimate at n = 0: [sum_j B_j rho_j^2 / empty]^-1/2."""
        return math.sqrt(self.empty / float(self.layout.sizes @ self.layout.rho**2))

    def grid(self) -> Array:
        """Shape (points,): 0 .. capacity, even steps of 1/24 of the noise floor near 0 and of 1/24 of n far from it."""
        largest = self.layout.capacity
        scale = min(max(self.noise_floor, 0.5), largest)
        reach = math.log1p(largest / scale)
        return scale * np.expm1(np.linspace(0.0, reach, math.ceil(reach / _STEP) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What the score is at each of several n, short of the data. Shapes (points,) unless said otherwise."""

    n: Array
    weights: Array
    """Shape (points, levels), <= 0: of Z_j, divided by the standard deviation of the score."""
    offset: Array
    """sum_j weights_j B_j gamma_j^n."""
    spread: Array
    """The standard deviation of U at a true n."""
    distance: Array
    """By how many standard deviations n lies above 0: minus the mean of the score if the truth were 0."""
    standard_error: Array
    """Of the estimate at a true n (Godambe information, "sandwich")."""

    @classmethod
    def at(cls, signal: Signal, n: Array) -> Scores:
        """n: shape (points,), ascending from 0 to at most the capacity."""
        sizes = signal.layout.sizes
        cells = Occupancy.at(signal.layout, n)
        lit = 1.0 - cells.empty
        variance = cells.empty * signal.empty + lit * signal.lit + lit * cells.empty
        raw = cells.slope / variance
        information = (raw * cells.slope) @ sizes
        # The floor is for a handful of items without noise, where the score is all but certain.
        spread = np.sqrt(np.maximum(cells.variance_of(raw, variance), TINY * information))
        weights = raw / spread[:, None]
        offset = (weights * cells.empty) @ sizes
        distance = np.maximum(offset - weights @ sizes, 0.0)
        return cls(n, weights, offset, spread, distance, spread / information)

    def of(self, sums: Array) -> Array:
        """The score in standard deviations. sums: shape (levels,), the Z_j."""
        return np.asarray(self.weights @ sums - self.offset)


@dataclass(frozen=True, slots=True)
class Inverted:
    """An estimate and its limits. `unclamped` may be negative: it is unbiased near 0, for sums of estimates."""

    value: float
    unclamped: float
    standard_error: float
    low: float
    high: float


def invert(scores: Scores, accepted: Acceptance, sums: Array) -> Inverted:
    """The global maximum of the quasi-likelihood (the integral of U) and the hull of the accepted n.

    The value is 0 or the capacity where the score keeps its sign; `high` is infinite where the capacity is accepted.
    """
    score = scores.of(sums)
    below, above = accepted.beyond(score)
    value, error = _maximum(scores, score)
    first = int(np.argmax(below <= 0.0)) if below.min() <= 0.0 else len(score) - 1
    last = len(score) - 1 - int(np.argmax(above[::-1] >= 0.0))
    low = _crossing(scores.n, below, first - 1) if first else 0.0
    high = _crossing(scores.n, above, last) if last < len(score) - 1 else math.inf
    unclamped = value if value > 0.0 else min(0.0, float(score[0] * scores.standard_error[0]))
    return Inverted(value, unclamped, error, min(low, value), max(high, value))


def _maximum(scores: Scores, score: Array) -> tuple[float, float]:
    """The global maximum and the standard error there."""
    slope = score * scores.spread
    steps = 0.5 * (slope[1:] + slope[:-1]) * np.diff(scores.n)
    peak = int(np.argmax(np.concatenate(([0.0], np.cumsum(steps)))))
    left = peak if slope[peak] > 0.0 else peak - 1
    if left < 0 or left + 1 == len(score):
        return float(scores.n[peak]), float(scores.standard_error[peak])
    value = _crossing(scores.n, score, left)
    return value, float(np.interp(value, scores.n, scores.standard_error))


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
        step = at - value / slope if slope < 0.0 else low
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - at) < 1e-10:
            break
        at = step
    return at
