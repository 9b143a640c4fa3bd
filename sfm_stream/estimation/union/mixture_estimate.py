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

Many tallies are fitted side by side (mixture_point.py). No number of one depends on the others beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.mixture_point import TINY, Point, Rows, diagonal, poisson
from sfm_stream.estimation.union.overlap_hypotheses import OverlapHypotheses
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
_FEWEST, _MOST = 0.02, 4.0
"""Levels are used that have so many items per cell."""
_MAX_STEPS, _LONGEST_STEP, _LEAST_GAIN = 30, 3.0, 0.05
"""Newton steps at most; the longest step, in ln items; the fit ends when no step promises more gain than this."""
_KEPT_STEPS, _TRUSTED_GAIN, _BEHIND = 2, 3.0, 10.0
"""After _KEPT_STEPS steps a hypothesis is dropped if its height plus _TRUSTED_GAIN times the gain that its next step
promises is more than _BEHIND below the best height."""
_BATCH_NUMBERS = 1 << 21
"""In the arrays of the rows that are fitted side by side."""
_WHOLE_LEVELS = 4
"""In the fit, levels without items and cells fill those of a tally up to a multiple of this, so that more tallies have
equally many. They add nothing to a likelihood."""
_MAX_PASSES, _NEAR = 4, 0.7
"""The fit is repeated, at most so often, until n ends within this factor of where it started."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The histograms of the levels that hold information about n, of one or more tallies with equally many of them."""

    buckets: float
    rate: Array
    """Shape (tallies, levels): lambda_j for n = 1."""
    counts: Array
    """Shape (tallies, levels, columns): cells with these counts."""

    @classmethod
    def near(cls, shape: SketchShape, hypotheses: OverlapHypotheses, histogram: NDArray[np.int64], n: float) -> Levels:
        """Of one tally: the levels that are not full at n, without those with less than a fiftieth of the items of the
        fullest one."""
        rate = -np.log1p(-shape.rho)
        partial = n * rate < max(_MOST, float(n * rate.min()) * 1.001)
        used = partial & (n * rate > _FEWEST * min(1.0, float(n * rate[partial].max())))
        counts = np.add.reduceat(histogram[used], hypotheses.first_counts, axis=1).astype(np.float64)
        return cls(float(counts[0].sum()), rate[None, used], counts[None])

    @classmethod
    def of(cls, tallies: Sequence[Levels]) -> Levels:
        """Of several tallies together."""
        rate, counts = (np.concatenate([getattr(each, name) for each in tallies]) for name in ("rate", "counts"))
        return cls(tallies[0].buckets, rate, counts)

    def log_likelihood(self, density: Array) -> Array:
        """Shape (tallies, ..). density: shape (tallies, .., levels, columns), what a hypothesis expects in a cell."""
        tallies, *each = self.counts.shape
        counts = self.counts.reshape(tallies, *[1] * (density.ndim - 3), *each)
        return np.asarray(np.sum(counts * np.log(np.maximum(density, TINY)), axis=(-2, -1)))

    def misfit(self, density: Array) -> Array:
        """Shape (tallies,): how far counts are from a density, in standard deviations of what chance makes (eq. 32).

        density: shape (tallies, levels, columns). Columns of a level in which less than one cell is expected are one.
        """
        expected = self.buckets * density
        rare = expected < 1.0
        terms = np.where(rare, 0.0, (self.counts - expected) ** 2 / np.maximum(expected, 1.0))
        rest = np.where(rare, expected, 0.0).sum(axis=2)
        left = np.where(rare, self.counts, 0.0).sum(axis=2)
        pearson = terms.sum(axis=(1, 2)) + np.sum((left - rest) ** 2 / np.maximum(rest, 1.0), axis=1)
        columns = expected[0].size - rare.sum(axis=(1, 2))
        freedom = np.maximum(1, columns - expected.shape[1] + rare.any(axis=2).sum(axis=1))
        return np.asarray((pearson - freedom) / np.sqrt(2.0 * freedom))


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


def fit(shape: SketchShape, hypotheses: OverlapHypotheses, histogram: NDArray[np.int64], start: float) -> Mixture:
    """As `fit_many`, of one tally."""
    return fit_many(shape, hypotheses, [histogram], [start])[0]


def fit_many(
    shape: SketchShape,
    hypotheses: OverlapHypotheses,
    histograms: Sequence[NDArray[np.int64]],
    starts: Sequence[float],
) -> list[Mixture]:
    """For each tally the mean over the hypotheses of n, which is at most the capacity, and of q_r.

    histograms: each of shape (levels, releases + 1). starts: where to begin, in items. The levels that are used are
    chosen for the start; if a fit ends far from there, it is repeated with the levels for where it ended.
    """
    at, found = list(starts), dict[int, Mixture]()
    again = list(range(len(at)))
    for _ in range(_MAX_PASSES):
        levels = {number: Levels.near(shape, hypotheses, histograms[number], at[number]) for number in again}
        for together in _batches(levels, hypotheses):
            begun = [at[number] for number in together]
            found.update(zip(together, _fitted(shape, [levels[n] for n in together], hypotheses, begun), strict=True))
        before = {number: at[number] for number in again}
        for number in again:
            at[number] = min(max(found[number].n, at[number] * 1e-3), shape.capacity)
        again = [number for number in again if not _NEAR < at[number] / before[number] < 1.0 / _NEAR]
        if not again:
            break
    return [replace(mixture, n=min(mixture.n, shape.capacity)) for _, mixture in sorted(found.items())]


def _batches(levels: dict[int, Levels], hypotheses: OverlapHypotheses) -> Iterator[list[int]]:
    """Tallies with equally many filled levels, as many at once as keep their arrays small."""
    by_levels: dict[int, list[int]] = {}
    for number, of_tally in levels.items():
        by_levels.setdefault(_filled(of_tally), []).append(number)
    rows, kinds = hypotheses.used.shape
    states = max(hypotheses.counts.shape)
    for filled, numbers in by_levels.items():
        most = max(1, _BATCH_NUMBERS // (rows * states * (states + 3 * kinds * filled)))
        for low in range(0, len(numbers), most):
            yield numbers[low : low + most]


def _filled(levels: Levels) -> int:
    """How many levels a tally has in the fit."""
    known: int = levels.rate.shape[1]
    return known + -known % _WHOLE_LEVELS


def means_where_set(mixtures: Sequence[Mixture], shape: SketchShape, value_of_m: Array) -> Array:
    """Shape (mixtures, levels): the mean of a function of m over the cells of each level that are set in some window.

    value_of_m: the function at the states above 0, shape (states - 1,).
    """
    n, set_windows = np.array([each.n for each in mixtures]), np.stack([each.set_windows for each in mixtures])
    occupied = poisson(n[:, None] * -np.log1p(-shape.rho))[:, 1:]
    total = np.maximum(occupied.sum(axis=1), TINY)
    return np.asarray(((set_windows @ value_of_m)[:, None] @ occupied)[:, 0] / total)


def _fitted(
    shape: SketchShape, tallies: Sequence[Levels], hypotheses: OverlapHypotheses, starts: Sequence[float]
) -> list[Mixture]:
    """The mean over the hypotheses, of each tally. A fit begins at its start, with equally many items of each kind."""
    rate = np.zeros((len(tallies), _filled(tallies[0])))
    counts = np.zeros((*rate.shape, hypotheses.counts.shape[1]))
    for number, of_tally in enumerate(tallies):
        levels = of_tally.rate.shape[1]
        rate[number, :levels], counts[number, :levels] = of_tally.rate[0], of_tally.counts[0]
    rows = Rows.of(rate, counts, tallies[0].buckets, hypotheses)
    used = hypotheses.used[rows.hypothesis]
    at, most = np.log(starts)[rows.tally, None], math.log(2.0 * shape.capacity)
    point = Point.at(rows, np.where(used, at - np.log(used.sum(axis=1, keepdims=True)), 0.0))
    damping = np.full(len(used), 0.1)
    found: dict[int, Mixture] = {}
    for step in range(_MAX_STEPS + 1):
        gradient, curvature = point.slope(rows)
        damped = curvature.copy()
        diagonal(damped)[:] += damping[:, None] * diagonal(curvature)
        move = np.linalg.solve(damped, gradient[..., None])[..., 0]
        gain = np.sum(move * gradient, axis=1)
        goes_on = rows.best(gain) >= _LEAST_GAIN if step < _MAX_STEPS else np.zeros(len(gain), np.bool_)
        if not goes_on.all():
            found.update(_means(tallies, rows.only(~goes_on), point.only(~goes_on), curvature[~goes_on]))
        if step >= _KEPT_STEPS:
            goes_on &= point.height + _TRUSTED_GAIN * gain > rows.best(point.height) - _BEHIND
        if not goes_on.all():
            rows, point, at = rows.only(goes_on), point.only(goes_on), at[goes_on]
            damping, move = damping[goes_on], move[goes_on]
        if not len(move):
            break
        move /= np.maximum(np.abs(move).max(axis=1, keepdims=True) / _LONGEST_STEP, 1.0)
        tried = Point.at(rows, np.clip(point.log_items + move, at - 20.0, most))
        better = tried.height > point.height
        damping = np.where(better, 0.1 * damping, 8.0 * np.maximum(damping, 1e-3))
        point = tried.or_else(point, better)
    return [found[number] for number in range(len(tallies))]


def _means(tallies: Sequence[Levels], rows: Rows, point: Point, curvature: Array) -> Iterator[tuple[int, Mixture]]:
    """The number of each tally and the mean over its hypotheses, where its fit has ended."""
    items = np.exp(point.log_items) * rows.hypotheses.used[rows.hypothesis]  # the derivatives of n by its variables
    within = np.sum(items * np.linalg.solve(curvature, items[..., None])[..., 0], axis=1)
    # Eq. 25. The variables are logarithms; the term ln n turns this into a flat prior of n, without which n near 0
    # would have the same weight as any other factor of e.
    evidence = point.height + rows.hypotheses.log_norm[rows.hypothesis] + np.log(point.n)
    evidence -= 0.5 * np.linalg.slogdet(curvature)[1]
    best = rows.best(evidence)
    weight = np.exp(evidence - best)
    set_windows, density = (each.reshape(len(weight), -1) for each in (point.set_windows, point.density))
    for number in np.unique(rows.tally).tolist():
        mine = np.flatnonzero(rows.tally == number)
        total = float(weight[mine].sum())
        share, several = weight[mine] / total, point.n[mine]
        n = float(share @ several)
        yield (
            number,
            Mixture(
                n,
                float(share @ (within[mine] + (several - n) ** 2)),  # eq. 33
                (share @ set_windows[mine]).reshape(point.set_windows.shape[1:])[1:, 1:],
                tallies[number],
                (share @ density[mine]).reshape(point.density.shape[1:]).T[: tallies[number].rate.shape[1]],
                float(best[mine[0]]) + math.log(total),
            ),
        )
