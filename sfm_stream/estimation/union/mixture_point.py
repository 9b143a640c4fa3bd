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
_LOG_FACTORIALS = np.array([math.lgamma(r + 1) for r in range(MAX_ITEMS)])
TINY = 1e-40
_FEW_STATES = 24
"""Up to so many, squaring a matrix is cheaper than a product of a vector more."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The data and the hypothesis of each row. The rows of one tally follow one another."""

    tally: NDArray[np.int64]
    """Shape (rows,): the number of the tally."""
    rate: Array
    """Shape (rows, levels)."""
    counts: Array
    """Shape (rows, levels, columns)."""
    buckets: float
    hypotheses: OverlapHypotheses

    @classmethod
    def of(cls, rate: Array, counts: Array, buckets: float, hypotheses: OverlapHypotheses) -> Rows:
        """Every tally under every hypothesis. rate, counts: shapes (tallies, levels) and (tallies, levels, columns)."""
        tallies, each = len(rate), len(hypotheses.used)
        tally = np.repeat(np.arange(tallies), each)
        every = hypotheses.only(np.tile(np.arange(each), tallies))
        return cls(tally, rate[tally], counts[tally], buckets, every)

    def only(self, chosen: NDArray[np.bool_]) -> Rows:
        """Some of the rows. chosen: shape (rows,)."""
        kept = self.tally[chosen], self.rate[chosen], self.counts[chosen]
        return Rows(*kept, self.buckets, self.hypotheses.only(chosen))

    def best(self, of_rows: Array) -> Array:
        """Shape (rows,): the largest value among the rows of the same tally."""
        first = np.flatnonzero(np.diff(self.tally, prepend=-1))
        return np.asarray(np.maximum.reduceat(of_rows, first).repeat(np.diff(first, append=len(self.tally))))


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The fit of each row at one point. First axis of every array: rows."""

    log_items: Array
    """Shape (rows, kinds): ln of the number of items of each kind."""
    n: Array
    set_windows: Array
    """Shape (rows, items + 1, states): q_r (eq. 22)."""
    states: Array
    """Shape (rows, levels, states): the distribution of the state of a cell."""
    density: Array
    """Shape (rows, levels, columns): the distribution of its noisy count (eq. 21)."""
    height: Array
    """ln likelihood plus ln prior, the latter up to a constant."""

    @classmethod
    def at(cls, data: Rows, log_items: Array) -> Point:
        """log_items: shape (rows, kinds), any finite number for padding."""
        hypotheses = data.hypotheses
        items = np.exp(log_items) * hypotheses.used
        n = items.sum(axis=1)
        share = items / n[:, None]
        kinds, states = hypotheses.added.shape[1:3]
        one_more = (share[:, None] @ hypotheses.added.reshape(-1, kinds, states**2)).reshape(-1, states, states)
        set_windows = _after_items(one_more)
        reached = poisson(n[:, None] * data.rate) @ set_windows
        density = np.maximum(reached @ hypotheses.counts, TINY)  # eq. 21
        height = np.sum(data.counts * np.log(density), axis=(1, 2))
        # Eq. 27, both parts of the prior.
        unexpected = (log_items - hypotheses.expected_log_share) * hypotheses.used
        height -= 0.5 * np.sum(unexpected * (hypotheses.bend @ unexpected[..., None])[..., 0], axis=1)
        height += SHARE_WEIGHT * np.sum((log_items - np.log(n)[:, None]) * hypotheses.used, axis=1)
        return cls(log_items, n, set_windows, reached, density, height)

    @property
    def _fields(self) -> tuple[Array, ...]:
        return self.log_items, self.n, self.set_windows, self.states, self.density, self.height

    def only(self, chosen: NDArray[np.bool_]) -> Point:
        """Some of the rows. chosen: shape (rows,)."""
        return Point(*(field[chosen] for field in self._fields))

    def or_else(self, other: Point, better: NDArray[np.bool_]) -> Point:
        """This point for the rows that are `better`, the other point for the rest."""
        if better.all():
            return self
        pairs = zip(self._fields, other._fields, strict=True)
        return Point(*(np.where(better.reshape(-1, *[1] * (mine.ndim - 1)), mine, its) for mine, its in pairs))

    def slope(self, data: Rows) -> tuple[Array, Array]:
        """(gradient of the height by log_items, minus its second derivatives), the latter made positive definite.

        The derivative of eq. 21 by ln items of kind i is items_i rate_j (states A_i counts - density). Shapes
        (rows, kinds) and (rows, kinds, kinds).
        """
        hypotheses = data.hypotheses
        items = np.exp(self.log_items) * hypotheses.used
        change = self.states[:, None] @ hypotheses.added_counts - self.density[:, None]
        change *= (items[..., None] * data.rate[:, None])[..., None]
        flat = change.reshape(*items.shape, -1)
        of_likelihood = (flat @ (data.counts / self.density).reshape(len(items), -1, 1))[..., 0]
        scaled = (change / np.sqrt(self.density)[:, None]).reshape(flat.shape)
        share = items / self.n[:, None]
        weight = SHARE_WEIGHT * hypotheses.used.sum(axis=1, keepdims=True)
        unexpected = (self.log_items - hypotheses.expected_log_share) * hypotheses.used
        gradient = of_likelihood + SHARE_WEIGHT * hypotheses.used - weight * share
        gradient -= (hypotheses.bend @ unexpected[..., None])[..., 0]
        curvature = data.buckets * (scaled @ scaled.transpose(0, 2, 1)) + hypotheses.bend
        curvature -= (weight * share)[..., None] * share[:, None]
        # The second derivative of items = exp(log_items) adds the slope itself. For a kind with almost no items the
        # other terms vanish, and this one keeps the matrix positive definite.
        added = np.where(hypotheses.used, np.maximum(-of_likelihood, SHARE_WEIGHT) + weight * share, 1.0)
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
    """Shape (.., items + 1): Poisson probabilities of 0 .. items - 1 and of more, for each of many rates."""
    r = np.arange(MAX_ITEMS)
    exactly = np.exp(r * np.log(rate)[..., None] - rate[..., None] - _LOG_FACTORIALS)
    return np.concatenate((exactly, np.maximum(1.0 - exactly.sum(axis=-1, keepdims=True), 0.0)), axis=-1)
