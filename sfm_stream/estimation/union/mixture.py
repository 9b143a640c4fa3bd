"""Several releases of one k: the likelihood of their tally, and what it says about the union of their windows.

A cell of level j holds r items with probability Poisson(r; lambda_j), lambda_j = -n ln gamma_j, so that r = 0 has
probability gamma_j^n exactly. A cell with r items is lit in m of the k windows with probability q_r(m). The q_r depend
on how items repeat over windows but *not on the level*: which level an item falls to says nothing about it. Hence

    Pr(c ones | level j) = sum_r Poisson(r; lambda_j) sum_m q_r(m) Pr(c | m)          (kernel.py)

The items of a cell come one after another, each alike: q_r = q_0 A^r, A the law of what one more item adds. A is a
mixture of the few kinds of items of a hypothesis (overlap.py). For each hypothesis n and the shares of its kinds are
fitted together at the maximum of likelihood and prior, by Newton steps on ln(items of each kind) with the expected
information as curvature, damped where they fail (Levenberg and Marquardt). Hypotheses that fall behind are dropped on
the way. The estimate is the mean of n over hypotheses, weighted by their evidence (Laplace's approximation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.overlap import SHARE, Overlaps
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
_ITEMS = 16
_FACTORIALS = np.array([math.lgamma(r + 1) for r in range(_ITEMS)])
_FEWEST, _MOST = 0.02, 4.0
"""Items per cell of the levels that are used."""
_TINY = 1e-40
_STEPS, _LONGEST, _STILL = 30, 3.0, 0.05
"""Newton steps at most; the longest, in ln items; and the promised gain in height that is no longer worth a step."""
_UNTRIED, _TRUST, _BEHIND = 2, 3.0, 10.0
"""After so many steps a hypothesis is dropped that would be behind by more than the last, did it gain _TRUST times as
much as its next step promises."""
_PASSES, _NEAR = 4, 0.7


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """n, and with it how the occupied cells are spread over m."""

    n: float
    lit: Array
    """Shape (items, states - 1): q_r(m) for r = 1, 2, .., m > 0; each row sums to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """The levels that say something about n."""

    buckets: float
    rate: Array
    """Shape (levels,): lambda for n = 1."""
    counts: Array
    """Shape (levels, columns)."""

    @classmethod
    def near(cls, shape: SketchShape, overlaps: Overlaps, histogram: NDArray[np.int64], n: float) -> _Data:
        """Neither levels that are surely full at n, nor those with a fiftieth of the items of the fullest other one."""
        rate = -np.log1p(-shape.rho)
        partial = n * rate < max(_MOST, float(n * rate.min()) * 1.001)
        used = partial & (n * rate > _FEWEST * min(1.0, float(n * rate[partial].max())))
        counts = np.add.reduceat(histogram[used], overlaps.first, axis=1).astype(np.float64)
        return cls(float(counts[0].sum()), rate[used], counts)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Where each hypothesis stands. First axis: hypotheses."""

    log_items: Array
    """Shape (hypotheses, kinds): ln of the number of items of each kind."""
    n: Array
    lit: Array
    """Shape (hypotheses, items + 1, states): q_r."""
    states: Array
    """Shape (hypotheses, levels, states): law of the state of a cell."""
    density: Array
    """Shape (hypotheses, levels, columns): law of its noisy count."""
    height: Array
    """ln of likelihood and prior, the latter up to a constant."""

    @classmethod
    def at(cls, data: _Data, overlaps: Overlaps, log_items: Array) -> _Point:
        """log_items: shape (hypotheses, kinds), any finite number for padding."""
        items = np.exp(log_items) * overlaps.used
        n = items.sum(axis=1)
        share = items / n[:, None]
        kinds, states = overlaps.added.shape[1:3]
        one = (share[:, None] @ overlaps.added.reshape(-1, kinds, states**2)).reshape(-1, states, states)
        lit = np.zeros((len(n), _ITEMS + 1, states))
        lit[:, 0, 0] = 1.0
        for r in range(_ITEMS):
            np.matmul(lit[:, r : r + 1], one, out=lit[:, r + 1 : r + 2])
        reached = _poisson(n[:, None] * data.rate) @ lit
        density = np.maximum(reached @ overlaps.shown, _TINY)
        height = np.sum(data.counts * np.log(density), axis=(1, 2))
        unlike = np.where(overlaps.used, log_items - overlaps.plain, 0.0)
        height -= 0.5 * np.sum(unlike * (overlaps.bend @ unlike[..., None])[..., 0], axis=1)
        height += SHARE * np.sum(np.where(overlaps.used, log_items - np.log(n)[:, None], 0.0), axis=1)
        return cls(log_items, n, lit, reached, density, height)

    def only(self, chosen: NDArray[np.bool_]) -> _Point:
        """Some of the hypotheses."""
        fields = (self.log_items, self.n, self.lit, self.states, self.density, self.height)
        return _Point(*(field[chosen] for field in fields))

    def or_else(self, other: _Point, better: NDArray[np.bool_]) -> _Point:
        """This for the hypotheses that are `better`, the other for the rest."""
        if better.all():
            return self
        pairs = zip(
            (self.log_items, self.n, self.lit, self.states, self.density, self.height),
            (other.log_items, other.n, other.lit, other.states, other.density, other.height),
            strict=True,
        )
        return _Point(*(np.where(better.reshape(-1, *[1] * (mine.ndim - 1)), mine, its) for mine, its in pairs))

    def slope(self, data: _Data, overlaps: Overlaps) -> tuple[Array, Array]:
        """Gradient of the height by log_items, and minus its curvature, positive definite."""
        items = np.exp(self.log_items) * overlaps.used
        change = self.states[:, None] @ overlaps.seen - self.density[:, None]
        change *= (items[..., None] * data.rate)[..., None]
        flat = change.reshape(*items.shape, -1)
        steep = (flat @ (data.counts / self.density).reshape(len(items), -1, 1))[..., 0]
        scaled = (change / np.sqrt(self.density)[:, None]).reshape(flat.shape)
        share = items / self.n[:, None]
        weight = SHARE * overlaps.used.sum(axis=1, keepdims=True)
        unlike = np.where(overlaps.used, self.log_items - overlaps.plain, 0.0)
        gradient = steep + np.where(overlaps.used, SHARE, 0.0) - weight * share
        gradient -= (overlaps.bend @ unlike[..., None])[..., 0]
        curvature = data.buckets * (scaled @ scaled.transpose(0, 2, 1)) + overlaps.bend
        curvature -= (weight * share)[..., None] * share[:, None]
        # exp makes a curve of a slope: where few items of a kind are wanted that is all the curvature there is.
        diagonal = np.where(overlaps.used, np.maximum(-steep, SHARE) + weight * share, 1.0)
        return gradient, curvature + diagonal[..., None] * np.eye(items.shape[1])


def maximise(shape: SketchShape, overlaps: Overlaps, histogram: NDArray[np.int64], start: float) -> Fitted:
    """The mean n over the hypotheses, and their mean q_r.

    histogram: shape (levels, releases + 1). start: items, where to look; the levels that are used follow from it, so
    that the fit is repeated from where it ended, should that be far away. n is at most the capacity.
    """
    for _ in range(_PASSES):
        found = _fitted(shape, _Data.near(shape, overlaps, histogram, start), overlaps, start)
        n = min(max(found.n, start * 1e-3), shape.capacity)
        if _NEAR < n / start < 1.0 / _NEAR:
            break
        start = n
    return Fitted(min(found.n, shape.capacity), found.lit)


def occupied_mean(fitted: Fitted, shape: SketchShape, value_of_m: Array) -> Array:
    """Shape (levels,): mean over the occupied cells of each level of a function of m, given at the states above 0."""
    occupied = _poisson(-fitted.n * np.log1p(-shape.rho))[:, 1:]
    total = np.maximum(occupied.sum(axis=1), _TINY)
    return np.asarray(occupied @ (fitted.lit @ value_of_m) / total)


def _fitted(shape: SketchShape, data: _Data, overlaps: Overlaps, start: float) -> Fitted:
    """The mean over the hypotheses, from `start` items, equally many of each kind."""
    kinds = overlaps.used.sum(axis=1, keepdims=True)
    at, most = math.log(start), math.log(2.0 * shape.capacity)
    point = _Point.at(data, overlaps, np.where(overlaps.used, at - np.log(kinds), 0.0))
    damping = np.full(len(kinds), 0.1)
    for step in range(_STEPS):
        gradient, curvature = point.slope(data, overlaps)
        diagonal = np.einsum("hkk->hk", curvature)
        damped = curvature + (damping[:, None] * diagonal)[..., None] * np.eye(diagonal.shape[1])
        move = np.linalg.solve(damped, gradient[..., None])[..., 0]
        gain = np.sum(move * gradient, axis=1)
        if gain.max() < _STILL:
            break
        hopeful = point.height + _TRUST * gain > point.height.max() - _BEHIND
        if step >= _UNTRIED and not hopeful.all():
            overlaps, point = overlaps.only(hopeful), point.only(hopeful)
            damping, move = damping[hopeful], move[hopeful]
        move /= np.maximum(np.abs(move).max(axis=1, keepdims=True) / _LONGEST, 1.0)
        tried = _Point.at(data, overlaps, np.clip(point.log_items + move, at - 20.0, most))
        better = tried.height > point.height
        damping = np.where(better, 0.1 * damping, 8.0 * np.maximum(damping, 1e-3))
        point = tried.or_else(point, better)
    _, curvature = point.slope(data, overlaps)
    # All is fitted in logarithms; ln n makes it a flat prior of n, or n near 0 would weigh as much as any other decade.
    evidence = point.height + overlaps.prior + np.log(point.n) - 0.5 * np.linalg.slogdet(curvature)[1]
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    return Fitted(float(weight @ point.n), np.tensordot(weight, point.lit[:, 1:, 1:], 1))


def _poisson(rate: Array) -> Array:
    """Shape (.., items + 1): Poisson probabilities of 0 .. items - 1 and of more, for each of many rates."""
    r = np.arange(_ITEMS)
    exactly = np.exp(r * np.log(rate)[..., None] - rate[..., None] - _FACTORIALS)
    return np.concatenate((exactly, np.maximum(1.0 - exactly.sum(axis=-1, keepdims=True), 0.0)), axis=-1)
