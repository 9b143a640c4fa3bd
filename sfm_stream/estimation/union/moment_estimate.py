"""The union of several windows by an unbiased moment: the signal of "this cell is empty in every window".

The moment assumes nothing about which items the windows share. Its interval is the one that is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.score import TINY, Scores, Signal, Solution, inverted, maximum, without_bias
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]


def informative(shape: SketchShape, channel: Channel, releases: int) -> bool:
    """Whether the mean of z over one level tells an empty level from a full one.

    That is so while the mean square of z in an empty cell, a0^releases (docs/accuracy.md, eq. 18), is at most the
    number of buckets.
    """
    return releases * math.log1p(channel.empty_variance) <= math.log(shape.buckets)


def noise_floor(shape: SketchShape, channel: Channel, releases: int) -> float:
    """Standard error of the moment where there is no item, infinite where it overflows (eq. 12 and 18)."""
    log_square = min(releases * math.log1p(channel.empty_variance), 700.0)
    return math.sqrt(math.expm1(log_square) / float(shape.sizes @ shape.rho**2))


def solve_many(
    shape: SketchShape,
    channel: Channel,
    histograms: Sequence[NDArray[np.int64]],
    set_squares: Array,
    confidence: float,
) -> list[Solution]:
    """The moment estimate of the number of items in the union of the windows of each tally, with its interval (eq. 17).

    histograms: at least one, of equally many releases, each of shape (levels, releases + 1), the number of cells with c
    ones. set_squares: shape (tallies, levels), the mean square of z over the cells of a level that are set in some
    window (eq. 18). No number of one tally depends on the others.
    """
    grid = _grid(shape, channel, histograms[0].shape[1] - 1)
    found, at_0 = [], []
    for histogram, set_square in zip(histograms, set_squares, strict=True):
        score, distance, spread, error = grid.scores(set_square, histogram @ grid.z)
        found.append(inverted(grid.n, score, spread, error, Acceptance.at(distance, confidence)))
        at_0.append((min(0.0, score[0] * error[0]), error[0]))
    values, (below, errors_at_0) = np.array([value for value, *_ in found]), np.array(at_0).T
    unclamped = without_bias(values, below, errors_at_0, grid.bias(set_squares, values)).tolist()
    return [
        Solution(value, unbiased, error, low, high)
        for (value, error, low, high), unbiased in zip(found, unclamped, strict=True)
    ]


def rough_value(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64]) -> float:
    """The moment estimate where nothing is known of the cells that are set: with the largest mean square of z."""
    grid, scores = _grid(shape, channel, releases := histogram.shape[1] - 1), _rough_scores(shape, channel, releases)
    return maximum(scores.n, scores.of(histogram @ grid.z), scores.spread, scores.standard_error)[0]


def standard_errors(shape: SketchShape, channel: Channel, releases: int, set_squares: Array, n: Array) -> Array:
    """Shape (tallies,): the standard error of the moment where the truth is n items (eq. 10).

    set_squares: as in solve_many. n: shape (tallies,).
    """
    signal = signal_of(shape, channel, releases, set_squares[:, None])
    return Scores.at(signal, np.minimum(n, shape.capacity)[:, None]).standard_error[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """What scores at several n need, for all tallies of one shape, channel and number of releases.

    All but `z` and `n`: shape (points, levels) unless said otherwise.
    """

    shape: SketchShape
    empty_variance: float
    z: Array
    """Shape (releases + 1,): the signal of a cell with so many ones."""
    n: Array
    """Shape (points,)."""
    cells: Occupancy
    occupied: Array
    """Probability that a cell is set in some window."""
    variance: Array
    """The variance of z in a cell but for what cells that are set add (eq. 4)."""
    slopes: Array
    """Derivative of the number of empty cells of each level by n."""
    coefficients: Array
    """Shape (points, terms); these and the next two are Occupancy.between_cells()."""
    shares: Array
    """Shape (levels, terms)."""
    within: Array

    def scores(self, set_square: Array, sums: Array) -> tuple[Array, Array, Array, Array]:
        """(score, distance, spread, standard error), as Scores has them, each of shape (points,).

        The same formulas as in Scores.at, in fewer passes over the levels: its first term of eq. 9 is the information.
        set_square, sums: shape (levels,).
        """
        variance = self.occupied * set_square
        variance += self.variance
        raw = np.divide(self.cells.slope, variance, out=variance)  # eq. 5
        sizes = self.shape.sizes
        information = np.einsum("pl,pl->p", raw, self.slopes)  # eq. 6
        of_sums, least = (raw @ np.column_stack((sums, sizes))).T
        raw *= self.cells.empty
        between = raw @ np.column_stack((self.shares, sizes))
        mean = between[:, -1]
        shared = np.einsum("pt,pt,pt->p", between[:, :-1], between[:, :-1], self.coefficients)
        raw *= raw
        square = information + shared - np.einsum("pl,pl->p", raw, self.within)  # eq. 9
        spread = np.sqrt(np.maximum(square, TINY * information))
        return (of_sums - mean) / spread, np.maximum((mean - least) / spread, 0.0), spread, spread / information

    def bias(self, set_squares: Array, values: Array) -> Array:
        """Shape (tallies,): Scores.bias of each tally, between the points of the grid. values: shape (tallies,)."""
        left = np.clip(np.searchsorted(self.n, values) - 1, 0, len(self.n) - 2)
        around = self.n[left[:, None] + (0, 1)]
        signal = Signal(self.shape, self.empty_variance, set_squares[:, None])
        low, high = Scores.at(signal, around).bias.T
        return np.asarray(low + (high - low) * (values - around[:, 0]) / (around[:, 1] - around[:, 0]))


@lru_cache(maxsize=24)
def _grid(shape: SketchShape, channel: Channel, releases: int) -> _Grid:
    ones = np.arange(releases + 1)
    z = (channel.p / channel.gap) ** (releases - ones) * (-channel.miss / channel.gap) ** ones  # eq. 17
    signal = signal_of(shape, channel, releases, np.ones(shape.levels))
    n = signal.grid()
    cells = Occupancy.at(shape, n)
    occupied = 1.0 - cells.empty
    variance = cells.empty * signal.empty_variance + occupied * cells.empty
    return _Grid(
        shape, signal.empty_variance, z, n, cells, occupied, variance, cells.slope * shape.sizes, *cells.between_cells()
    )


@lru_cache(maxsize=24)
def _rough_scores(shape: SketchShape, channel: Channel, releases: int) -> Scores:
    largest_square = np.full(shape.levels, set_square(channel, releases, np.array([1])))
    signal = signal_of(shape, channel, releases, largest_square)
    return Scores.at(signal, signal.grid())


def signal_of(shape: SketchShape, channel: Channel, releases: int, set_square: Array) -> Signal:
    """The signal z of a cell over all releases. set_square: as in Signal."""
    empty_variance = math.expm1(releases * math.log1p(channel.empty_variance))  # eq. 18: a0^k - 1
    return Signal(shape, empty_variance, set_square)


def set_square(channel: Channel, releases: int, set_windows: NDArray[np.int64]) -> Array:
    """Shape of set_windows: the mean square of z in a cell that is set in m windows, a0^(k - m) a1^m (eq. 18)."""
    return np.asarray((1.0 + channel.empty_variance) ** (releases - set_windows) * channel.set_square**set_windows)
