"""The fit of mixture_estimate.py at one point: what hypotheses expect, how well that fits, and where it gets better.

docs/accuracy.md, eq. 20 to 27. A row of the arrays is one tally under one hypothesis. The arrays of one tally are
so small that most of the time would go into calling numpy; so many tallies stand side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.overlap_hypotheses import SHARE_WEIGHT, OverlapHypotheses

Array = NDArray[np.float64]
MAX_ITEMS = 16
"""Numbers of items in a cell that are told apart: 0 .. 15, and 16 or more."""
_INVERSE_FACTORIALS = np.array([1.0 / math.factorial(r) for r in range(MAX_ITEMS)])
_MANY = 1000.0
"""At this rate and above e^-rate is 0 in floating point, and so is each probability of few items."""
TINY = 1e-40
_FEW_STATES = 24
"""Up to so many, squaring a matrix is cheaper than a product of a vector more."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The data and the hypothesis of each row. The rows of one hypothesis follow one another."""

    tally: NDArray[np.int64]
    """Shape (rows,): the number of the tally."""
    hypothesis: NDArray[np.int64]
    """Shape (rows,): the number of the hypothesis, ascending."""
    rate: Array
    """Shape (rows, levels)."""
    counts: Array
    """Shape (rows, columns, levels)."""
    buckets: float
    hypotheses: OverlapHypotheses

    @classmethod
    def of(cls, rate: Array, counts: Array, buckets: float, hypotheses: OverlapHypotheses) -> Rows:
        """Every tally under every hypothesis. rate, counts: shapes (tallies, levels) and (tallies, levels, columns)."""
        tally = np.tile(np.arange(len(rate)), len(hypotheses.used))
        hypothesis = np.repeat(np.arange(len(hypotheses.used)), len(rate))
        return cls(tally, hypothesis, rate[tally], counts.transpose(0, 2, 1)[tally], buckets, hypotheses)

    def only(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the rows. chosen: shape (rows,)."""
        kept = self.tally[chosen], self.hypothesis[chosen], self.rate[chosen], self.counts[chosen]
        return Rows(*kept, self.buckets, self.hypotheses)

    def best(self, of_rows: Array) -> Array:
        """Shape (rows,): the largest value among the rows of the same tally."""
        found = np.full(int(self.tally.max(initial=0)) + 1, -np.inf)
        np.maximum.at(found, self.tally, of_rows)
        return found[self.tally]

    def of_each_hypothesis(self, factors: Array, of_rows: Array) -> Array:
        """The matrix product of the factor of each row's hypothesis with what the row has.

        factors: shape (hypotheses, m, n). of_rows: shape (rows, n, p). Gives shape (rows, m, p).
        """
        product = np.empty((len(of_rows), factors.shape[1], of_rows.shape[2]))
        ends = np.searchsorted(self.hypothesis, np.arange(len(factors)), side="right").tolist()
        first = 0
        for factor, end in zip(factors, ends, strict=True):
            if first < end:
                np.matmul(factor, of_rows[first:end], out=product[first:end])
            first = end
        return product


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The fit of each row at one point. First axis of every array: rows.

    Levels are the last axis, along which numpy has least to do for each number.
    """

    log_items: Array
    """Shape (rows, kinds): ln of the number of items of each kind."""
    n: Array
    set_windows: Array
    """Shape (rows, items + 1, states): q_r (eq. 22)."""
    states: Array
    """Shape (rows, states, levels): the distribution of the state of a cell."""
    density: Array
    """Shape (rows, columns, levels): the distribution of its noisy count (eq. 21)."""
    height: Array
    """ln likelihood plus ln prior, the latter up to a constant."""

    @classmethod
    def at(cls, data: Rows, log_items: Array) -> Point:
        """log_items: shape (rows, kinds), any finite number for padding."""
        hypotheses, row = data.hypotheses, data.hypothesis
        used = hypotheses.used[row]
        items = np.exp(log_items) * used
        n = items.sum(axis=1)
        share = items / n[:, None]
        states = hypotheses.counts.shape[0]
        one_more = data.of_each_hypothesis(hypotheses.added, share[..., None]).reshape(-1, states, states)
        set_windows = _after_items(one_more)
        reached = set_windows.transpose(0, 2, 1) @ poisson(n[:, None] * data.rate)
        density = np.maximum(hypotheses.counts.T @ reached, TINY)  # eq. 21
        height = np.sum(data.counts * np.log(density), axis=(1, 2))
        # Eq. 27, both parts of the prior.
        unexpected = (log_items - hypotheses.expected_log_share[row]) * used
        height -= 0.5 * np.sum(unexpected * (hypotheses.bend[row] @ unexpected[..., None])[..., 0], axis=1)
        height += SHARE_WEIGHT * np.sum((log_items - np.log(n)[:, None]) * used, axis=1)
        return cls(log_items, n, set_windows, reached, density, height)

    @property
    def _fields(self) -> tuple[Array, ...]:
        return self.log_items, self.n, self.set_windows, self.states, self.density, self.height

    def only(self, chosen: NDArray[np.bool_]) -> Point:
        """Some of the rows. chosen: shape (rows,)."""
        return Point(*(field[chosen] for field in self._fields))

    def or_else(self, other: Point, better: NDArray[np.bool_]) -> Point:
        """This point for the rows that are `better`, the other point for the rest."""
        if not better.all():
            worse = ~better
            for mine, its in zip(self._fields, other._fields, strict=True):
                mine[worse] = its[worse]
        return self

    def slope(self, data: Rows) -> tuple[Array, Array]:
        """(gradient of the height by log_items, minus its second derivatives), the latter made positive definite.

        The derivative of eq. 21 by ln items of kind i is items_i rate_j (states A_i counts - density). Shapes
        (rows, kinds) and (rows, kinds, kinds).
        """
        hypotheses, row = data.hypotheses, data.hypothesis
        used, bend = hypotheses.used[row], hypotheses.bend[row]
        rows, kinds = self.log_items.shape
        items = np.exp(self.log_items) * used
        change = data.of_each_hypothesis(hypotheses.added_counts, self.states).reshape(rows, kinds, -1)
        change -= self.density.reshape(rows, 1, -1)
        of_likelihood = data.counts / self.density
        of_likelihood *= data.rate[:, None]
        of_likelihood = items * (change @ of_likelihood.reshape(rows, -1, 1))[..., 0]
        precision = data.rate[:, None] ** 2 / self.density
        share = items / self.n[:, None]
        weight = SHARE_WEIGHT * used.sum(axis=1, keepdims=True)
        unexpected = (self.log_items - hypotheses.expected_log_share[row]) * used
        gradient = of_likelihood + SHARE_WEIGHT * used - weight * share
        gradient -= (bend @ unexpected[..., None])[..., 0]
        curvature = data.buckets * (change @ (change * precision.reshape(rows, 1, -1)).transpose(0, 2, 1))
        curvature *= items[..., None] * items[:, None]
        curvature += bend
        curvature -= (weight * share)[..., None] * share[:, None]
        # The second derivative of items = exp(log_items) adds the slope itself. For a kind with almost no items the
        # other terms vanish, and this one keeps the matrix positive definite.
        added = np.where(used, np.maximum(-of_likelihood, SHARE_WEIGHT) + weight * share, 1.0)
        diagonal(curvature)[:] += added
        return gradient, curvature


def _after_items(one_more: Array) -> Array:
    """Shape (rows, items + 1, states): q_r = q_0 A^r (eq. 22). one_more: A, shape (rows, states, states).

    With few states by powers of A that are squared, which takes half as many products; with many, one by one.
    """
    rows, states, _ = one_more.shape
    after = np.zeros((rows, MAX_ITEMS + 1, states))
    after[:, 0, 0] = 1.0
    known, step, power = 1, 1, one_more
    while known <= MAX_ITEMS:
        more = min(step, MAX_ITEMS + 1 - known)
        np.matmul(after[:, known - step : known - step + more], power, out=after[:, known : known + more])
        known += more
        if states <= _FEW_STATES and known == 2 * step < MAX_ITEMS:
            step, power = known, power @ power
    return after


def diagonal(matrices: Array) -> Array:
    """Shape (rows, kinds): a view of the diagonal of each of many matrices."""
    return np.asarray(np.einsum("hkk->hk", matrices))


def poisson(rate: Array) -> Array:
    """Shape (.., items + 1, levels): Poisson probabilities of 0 .. items - 1 and of more. rate: shape (.., levels)."""
    found = np.empty((MAX_ITEMS + 1, *rate.shape))  # the longest axes last, along which numpy has least to do
    rate = np.minimum(rate, _MANY)
    exactly, known, power = found[:-1], 1, rate
    np.exp(-rate, out=exactly[0])
    while known < MAX_ITEMS:
        np.multiply(exactly[:known], power, out=exactly[known : 2 * known])
        known, power = 2 * known, power * power
    exactly *= _INVERSE_FACTORIALS.reshape(-1, *[1] * rate.ndim)
    np.maximum(1.0 - exactly.sum(axis=0), 0.0, out=found[-1])
    return np.moveaxis(found, 0, -2)
