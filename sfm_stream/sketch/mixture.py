"""Several releases of one k: the likelihood of their tally, whatever the windows share.

A cell of level j holds r items with probability Poisson(r; lambda_j), lambda_j = -n ln gamma_j, so that r = 0 has
probability gamma_j^n exactly. A cell with r items is lit in m of the k windows with probability q_r(m); q_0 is all
on m = 0, and q_r for r >= 1 lives on m >= 1, because every item of the union is in at least one window. The q_r depend
on how items repeat over windows but *not on the level*: which level an item falls to says nothing about it. Hence

    Pr(c ones | level j) = sum_r Poisson(r; lambda_j) sum_m q_r(m) Pr(c | m)          (kernel.py)

with n and the q_r, r = 1 .. R, unknown, common to all levels and otherwise free: no assumption about the overlap of
windows, their sizes or their order. Cells with more than R items share q_R. n is found by a bracketing secant search on
the derivative of the profile likelihood; the q_r by EM steps with squared extrapolation (Varadhan and Roland, Scand.
J. Stat. 35, 2008), warm from one n to the next, and stopped where they rest or after a fixed number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.kernel import Kernel
from sfm_stream.sketch.occupancy import capacity
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
_ITEMS = 6
_FEWEST, _MOST = 1e-3, 4.0
_FACTORIALS = np.array([math.lgamma(r + 1) for r in range(_ITEMS)])
_FIRST_ROUNDS, _ROUNDS, _SEARCH = 24, 8, 16
_FLOOR, _STILL = 1e-12, 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The maximum: n, and with it how the occupied cells are spread over m."""

    n: float
    lit: Array
    """Shape (items, support): q_r(m), each row sums to 1."""


def maximise(
    shape: SketchShape, table: Kernel, histogram: NDArray[np.int64], start: float, error: float, patience: int = 1
) -> Fitted:
    """The n, and the q_r, that make the tally most likely.

    histogram: shape (levels, releases + 1). start, error: items, where to look and a guess of the standard error;
    the maximum is searched from start / e^11 to the capacity and located to error / 30. patience: multiplies the
    rounds of EM; where noise has all but drowned the data it takes several times as many to leave the uniform start.
    """
    lit = np.full((_ITEMS, len(table.lit)), 1.0 / len(table.lit))
    at, step = math.log(min(start, capacity(shape))), min(max(0.7 * error / start, 1e-3), 0.5)
    exact = max(error / start / 30.0, 1e-5)
    floor, ceiling = at - 11.0, math.log(capacity(shape))
    left: tuple[float, float] | None = None
    right: tuple[float, float] | None = None
    rounds = _FIRST_ROUNDS * patience
    for _ in range(_SEARCH):
        level = _Levels.at(shape, table, histogram, math.exp(at))
        lit = level.relaxed(lit, rounds, _STILL / patience**2)
        slope = level.slope(lit)
        rounds = _ROUNDS * patience
        left, right = ((at, slope), right) if slope > 0.0 else (left, (at, slope))
        if left and right:
            if right[0] - left[0] < exact:
                break
            share = left[1] / (left[1] - right[1])
            at = left[0] + min(max(share, 0.1), 0.9) * (right[0] - left[0])
        else:
            at = min(max(at + (step if slope > 0.0 else -step), floor), ceiling)
            step *= 2.0
    return Fitted(math.exp(at), lit)


def occupied_mean(fitted: Fitted, shape: SketchShape, value_of_m: Array) -> Array:
    """Shape (levels,): mean over the occupied cells of each level of a function of m, given at the support."""
    weights, _ = _poisson(-fitted.n * np.log1p(-shape.rho))
    occupied = weights[:, 1:]
    total = np.maximum(occupied.sum(axis=1), 1e-300)
    return np.asarray(occupied @ (fitted.lit @ value_of_m) / total)


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """The likelihood at one n, over the ten or so levels that say something about n."""

    table: Kernel
    counts: Array
    rate: Array
    weights: Array
    derivative: Array
    background: Array

    @classmethod
    def at(cls, shape: SketchShape, table: Kernel, histogram: NDArray[np.int64], n: float) -> _Levels:
        rate = -n * np.log1p(-shape.rho)
        # Neither levels that are surely full, nor those with a thousandth of the items of the fullest other one.
        partial = rate < max(_MOST, float(rate.min()) * 1.001)
        used = partial & (rate > _FEWEST * min(1.0, float(rate[partial].max())))
        weights, derivative = _poisson(rate[used])
        background = weights[:, :1] * table.empty
        return cls(table, histogram[used].astype(np.float64), rate[used], weights, derivative, background)

    def relaxed(self, lit: Array, rounds: int, still: float) -> Array:
        """The q_r after some rounds of three EM steps each, the third from an extrapolation of the first two."""
        for _ in range(rounds):
            first = self._step(lit)
            second = self._step(first)
            change = first - lit
            if np.abs(change).max() < still:
                return second
            bend = second - first - change
            size = np.sqrt(np.sum(change**2, axis=1) / np.maximum(np.sum(bend**2, axis=1), 1e-30))
            size = np.clip(size, 1.0, 50.0)[:, None]
            leap = lit + 2.0 * size * change + size**2 * bend
            # A leap out of the simplex would be a wrong sign of a probability: that row takes the plain step.
            lit = self._step(np.where(leap.min(axis=1, keepdims=True) > 0.0, leap, second))
        return lit

    def slope(self, lit: Array) -> float:
        """Derivative of the log-likelihood by ln n, the q_r held fixed (at their maximum: of the profile, too)."""
        shown = lit @ self.table.lit
        density = self.background + self.weights[:, 1:] @ shown
        change = self.derivative[:, :1] * self.table.empty + self.derivative[:, 1:] @ shown
        ratio = np.sum(self.counts * change / np.maximum(density, 1e-300), axis=1)
        return float(np.sum(ratio * self.rate))

    def _step(self, lit: Array) -> Array:
        occupied = self.weights[:, 1:]
        density = self.background + occupied @ (lit @ self.table.lit)
        share = occupied.T @ (self.counts / np.maximum(density, 1e-300))
        grown = lit * (share @ self.table.lit.T) + _FLOOR
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def _poisson(rate: Array) -> tuple[Array, Array]:
    """Shapes (levels, items + 1): Poisson probabilities of 0 .. items - 1 and of more, and derivatives by rate."""
    r = np.arange(_ITEMS)
    exactly = np.exp(r * np.log(rate)[:, None] - rate[:, None] - _FACTORIALS)
    more = np.maximum(1.0 - exactly.sum(axis=1, keepdims=True), 0.0)
    change = np.concatenate((-exactly[:, :1], exactly[:, :-1] - exactly[:, 1:], exactly[:, -1:]), axis=1)
    return np.concatenate((exactly, more), axis=1), change
