"""The union of several windows by the likelihood of their tally, under hypotheses about how windows share items.

docs/accuracy.md, eq. 20 to 27. A cell of level j holds r items with probability Poisson(r; lambda_j), where lambda_j =
-n ln gamma_j. A cell with r items is set in m of the k windows with probability q_r(m), which does not depend on the
level: the level of an item says nothing about the windows it is in. Hence

    Pr(c ones | level j) = sum_r Poisson(r; lambda_j) sum_m q_r(m) Pr(c | m)                             (eq. 21)

Each item changes the state of its cell in the same way, so q_r = q_0 A^r (eq. 22); A is the mean over the kinds of
items of a hypothesis, weighted with their shares (overlap_hypotheses.py).

For each hypothesis, n and the shares of its kinds are fitted together: the maximum of likelihood and prior (eq. 27).
The variables are the ln numbers of items of each kind. The steps are Newton's, with the expected information as
curvature and with damping (Levenberg and Marquardt). Hypotheses that are far behind are dropped during the fit. The
estimate is the mean of n over the hypotheses, weighted by their evidence (Laplace's approximation, eq. 25).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.overlap_hypotheses import SHARE_WEIGHT, OverlapHypotheses
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
_MAX_ITEMS = 16
"""Numbers of items in a cell that are told apart: 0 .. 15, and 16 or more."""
_LOG_FACTORIALS = np.array([math.lgamma(r + 1) for r in range(_MAX_ITEMS)])
_FEWEST, _MOST = 0.02, 4.0
"""Levels are used that have so many items per cell."""
_TINY = 1e-40
_MAX_STEPS, _LONGEST_STEP, _LEAST_GAIN = 30, 3.0, 0.05
"""Newton steps at most; the longest step, in ln items; the fit ends when no step promises more gain than this."""
_KEPT_STEPS, _TRUSTED_GAIN, _BEHIND = 2, 3.0, 10.0
"""After _KEPT_STEPS steps a hypothesis is dropped if its height plus _TRUSTED_GAIN times the gain that its next step
promises is more than _BEHIND below the best height."""
_MAX_PASSES, _NEAR = 4, 0.7
"""The fit is repeated, at most so often, until n ends within this factor of where it started."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The histogram of the levels that hold information about n."""

    buckets: float
    rate: Array
    """Shape (levels,): lambda_j for n = 1."""
    counts: Array
    """Shape (levels, columns): cells with these counts."""

    @classmethod
    def near(cls, shape: SketchShape, hypotheses: OverlapHypotheses, histogram: NDArray[np.int64], n: float) -> Levels:
        """The levels that are not full at n, without those with less than a fiftieth of the fullest one's items."""
        rate = -np.log1p(-shape.rho)
        partial = n * rate < max(_MOST, float(n * rate.min()) * 1.001)
        used = partial & (n * rate > _FEWEST * min(1.0, float(n * rate[partial].max())))
        counts = np.add.reduceat(histogram[used], hypotheses.first_counts, axis=1).astype(np.float64)
        return cls(float(counts[0].sum()), rate[used], counts)

    def log_likelihood(self, density: Array) -> Array:
        """Shape (..,). density: shape (.., levels, columns), what a hypothesis expects in a cell."""
        return np.asarray(np.sum(self.counts * np.log(np.maximum(density, _TINY)), axis=(-2, -1)))

    def misfit(self, density: Array) -> float:
        """How far the counts are from a density, in standard deviations of what chance makes (eq. 32).

        Columns of a level in which less than one cell is expected are one column.
        """
        expected = self.buckets * density
        rare = expected < 1.0
        terms = np.where(rare, 0.0, (self.counts - expected) ** 2 / np.maximum(expected, 1.0))
        rest = np.where(rare, expected, 0.0).sum(axis=1)
        left = np.where(rare, self.counts, 0.0).sum(axis=1)
        pearson = float(terms.sum() + np.sum((left - rest) ** 2 / np.maximum(rest, 1.0)))
        freedom = max(1, expected.size - int(rare.sum()) - len(expected) + int(rare.any(axis=1).sum()))
        return (pearson - freedom) / math.sqrt(2.0 * freedom)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The mean over the hypotheses of n, of q_r and of what they expect."""

    n: float
    variance: float
    """Of n, if one of the hypotheses holds (eq. 33)."""
    set_windows: Array
    """Shape (items, states - 1): q_r(m) for r = 1, 2, .., m > 0; each row sums to 1 (eq. 22)."""
    levels: Levels
    density: Array
    """Shape (levels, columns): the distribution of the noisy count of a cell (eq. 21)."""
    log_evidence: float
    """ln of the sum of the evidence of the hypotheses (eq. 25)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """The fit of each hypothesis at one point. First axis of every array: hypotheses."""

    log_items: Array
    """Shape (hypotheses, kinds): ln of the number of items of each kind."""
    n: Array
    set_windows: Array
    """Shape (hypotheses, items + 1, states): q_r (eq. 22)."""
    states: Array
    """Shape (hypotheses, levels, states): the distribution of the state of a cell."""
    density: Array
    """Shape (hypotheses, levels, columns): the distribution of its noisy count (eq. 21)."""
    height: Array
    """ln likelihood plus ln prior, the latter up to a constant."""

    @classmethod
    def at(cls, data: Levels, hypotheses: OverlapHypotheses, log_items: Array) -> _Point:
        """log_items: shape (hypotheses, kinds), any finite number for padding."""
        items = np.exp(log_items) * hypotheses.used
        n = items.sum(axis=1)
        share = items / n[:, None]
        kinds, states = hypotheses.added.shape[1:3]
        one_more = (share[:, None] @ hypotheses.added.reshape(-1, kinds, states**2)).reshape(-1, states, states)
        set_windows = np.zeros((len(n), _MAX_ITEMS + 1, states))
        set_windows[:, 0, 0] = 1.0
        for r in range(_MAX_ITEMS):
            np.matmul(set_windows[:, r : r + 1], one_more, out=set_windows[:, r + 1 : r + 2])  # eq. 22
        reached = _poisson(n[:, None] * data.rate) @ set_windows
        density = np.maximum(reached @ hypotheses.counts, _TINY)  # eq. 21
        height = np.sum(data.counts * np.log(density), axis=(1, 2))
        # Eq. 27, both parts of the prior.
        unexpected = np.where(hypotheses.used, log_items - hypotheses.expected_log_share, 0.0)
        height -= 0.5 * np.sum(unexpected * (hypotheses.bend @ unexpected[..., None])[..., 0], axis=1)
        height += SHARE_WEIGHT * np.sum(np.where(hypotheses.used, log_items - np.log(n)[:, None], 0.0), axis=1)
        return cls(log_items, n, set_windows, reached, density, height)

    def only(self, chosen: NDArray[np.bool_]) -> _Point:
        """Some of the hypotheses. chosen: shape (hypotheses,)."""
        fields = (self.log_items, self.n, self.set_windows, self.states, self.density, self.height)
        return _Point(*(field[chosen] for field in fields))

    def or_else(self, other: _Point, better: NDArray[np.bool_]) -> _Point:
        """This point for the hypotheses that are `better`, the other point for the rest."""
        if better.all():
            return self
        pairs = zip(
            (self.log_items, self.n, self.set_windows, self.states, self.density, self.height),
            (other.log_items, other.n, other.set_windows, other.states, other.density, other.height),
            strict=True,
        )
        return _Point(*(np.where(better.reshape(-1, *[1] * (mine.ndim - 1)), mine, its) for mine, its in pairs))

    def slope(self, data: Levels, hypotheses: OverlapHypotheses) -> tuple[Array, Array]:
        """(gradient of the height by log_items, minus its second derivatives), the latter made positive definite.

        The derivative of eq. 21 by ln items of kind i is items_i rate_j (states A_i counts - density). Shapes
        (hypotheses, kinds) and (hypotheses, kinds, kinds).
        """
        items = np.exp(self.log_items) * hypotheses.used
        change = self.states[:, None] @ hypotheses.added_counts - self.density[:, None]
        change *= (items[..., None] * data.rate)[..., None]
        flat = change.reshape(*items.shape, -1)
        of_likelihood = (flat @ (data.counts / self.density).reshape(len(items), -1, 1))[..., 0]
        scaled = (change / np.sqrt(self.density)[:, None]).reshape(flat.shape)
        share = items / self.n[:, None]
        weight = SHARE_WEIGHT * hypotheses.used.sum(axis=1, keepdims=True)
        unexpected = np.where(hypotheses.used, self.log_items - hypotheses.expected_log_share, 0.0)
        gradient = of_likelihood + np.where(hypotheses.used, SHARE_WEIGHT, 0.0) - weight * share
        gradient -= (hypotheses.bend @ unexpected[..., None])[..., 0]
        curvature = data.buckets * (scaled @ scaled.transpose(0, 2, 1)) + hypotheses.bend
        curvature -= (weight * share)[..., None] * share[:, None]
        # The second derivative of items = exp(log_items) adds the slope itself. For a kind with almost no items the
        # other terms vanish, and this one keeps the matrix positive definite.
        diagonal = np.where(hypotheses.used, np.maximum(-of_likelihood, SHARE_WEIGHT) + weight * share, 1.0)
        return gradient, curvature + diagonal[..., None] * np.eye(items.shape[1])


def fit(shape: SketchShape, hypotheses: OverlapHypotheses, histogram: NDArray[np.int64], start: float) -> Mixture:
    """The mean over the hypotheses of n, which is at most the capacity, and of q_r.

    histogram: shape (levels, releases + 1). start: where to begin, in items. The levels that are used are chosen for
    `start`; if the fit ends far from there, it is repeated with the levels for where it ended.
    """
    for _ in range(_MAX_PASSES):
        mixture = _fitted(shape, Levels.near(shape, hypotheses, histogram, start), hypotheses, start)
        n = min(max(mixture.n, start * 1e-3), shape.capacity)
        if _NEAR < n / start < 1.0 / _NEAR:
            break
        start = n
    return replace(mixture, n=min(mixture.n, shape.capacity))


def mean_where_set(mixture: Mixture, shape: SketchShape, value_of_m: Array) -> Array:
    """Shape (levels,): the mean of a function of m over the cells of each level that are set in some window.

    value_of_m: the function at the states above 0, shape (states - 1,).
    """
    occupied = _poisson(-mixture.n * np.log1p(-shape.rho))[:, 1:]
    total = np.maximum(occupied.sum(axis=1), _TINY)
    return np.asarray(occupied @ (mixture.set_windows @ value_of_m) / total)


def _fitted(shape: SketchShape, data: Levels, hypotheses: OverlapHypotheses, start: float) -> Mixture:
    """The mean over the hypotheses. The fit begins at `start` items, with equally many of each kind."""
    kinds = hypotheses.used.sum(axis=1, keepdims=True)
    at, most = math.log(start), math.log(2.0 * shape.capacity)
    point = _Point.at(data, hypotheses, np.where(hypotheses.used, at - np.log(kinds), 0.0))
    damping = np.full(len(kinds), 0.1)
    for step in range(_MAX_STEPS):
        gradient, curvature = point.slope(data, hypotheses)
        diagonal = np.einsum("hkk->hk", curvature)
        damped = curvature + (damping[:, None] * diagonal)[..., None] * np.eye(diagonal.shape[1])
        move = np.linalg.solve(damped, gradient[..., None])[..., 0]
        gain = np.sum(move * gradient, axis=1)
        if gain.max() < _LEAST_GAIN:
            break
        hopeful = point.height + _TRUSTED_GAIN * gain > point.height.max() - _BEHIND
        if step >= _KEPT_STEPS and not hopeful.all():
            hypotheses, point = hypotheses.only(hopeful), point.only(hopeful)
            damping, move = damping[hopeful], move[hopeful]
        move /= np.maximum(np.abs(move).max(axis=1, keepdims=True) / _LONGEST_STEP, 1.0)
        tried = _Point.at(data, hypotheses, np.clip(point.log_items + move, at - 20.0, most))
        better = tried.height > point.height
        damping = np.where(better, 0.1 * damping, 8.0 * np.maximum(damping, 1e-3))
        point = tried.or_else(point, better)
    _, curvature = point.slope(data, hypotheses)
    # Eq. 25. The variables are logarithms; the term ln n turns this into a flat prior of n, without which n near 0
    # would have the same weight as any other factor of e.
    evidence = point.height + hypotheses.log_norm + np.log(point.n) - 0.5 * np.linalg.slogdet(curvature)[1]
    weight = np.exp(evidence - evidence.max())
    total = float(weight.sum())
    weight /= total
    n = float(weight @ point.n)
    items = np.exp(point.log_items) * hypotheses.used  # the derivatives of n by its variables
    within = np.sum(items * np.linalg.solve(curvature, items[..., None])[..., 0], axis=1)
    return Mixture(
        n,
        float(weight @ (within + (point.n - n) ** 2)),  # eq. 33
        np.tensordot(weight, point.set_windows[:, 1:, 1:], 1),
        data,
        np.tensordot(weight, point.density, 1),
        float(evidence.max()) + math.log(total),
    )


def _poisson(rate: Array) -> Array:
    """Shape (.., items + 1): Poisson probabilities of 0 .. items - 1 and of more, for each of many rates."""
    r = np.arange(_MAX_ITEMS)
    exactly = np.exp(r * np.log(rate)[..., None] - rate[..., None] - _LOG_FACTORIALS)
    return np.concatenate((exactly, np.maximum(1.0 - exactly.sum(axis=-1, keepdims=True), 0.0)), axis=-1)
