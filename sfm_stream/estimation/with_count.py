"""One sketch and the noisy count beside it: both together say how many items there are.

docs/accuracy.md, eq. 28 to 31. The count is the number of set cells plus integer noise. Bits and count come from the
same cells, so the score weighs them with the inverse of their exact covariance: of all weights these give the least
error.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import normal_laplace, one_sketch
from sfm_stream.estimation.few_items import FewItems, few_items
from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.score import TINY, Scores, Solution, believed, grid, invert
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]


def solve(
    shape: SketchShape, channel: Channel, ones: NDArray[np.int64], count: int, epsilon: float, confidence: float
) -> Solution:
    """The estimate from the noisy ones of each level and the noisy count of set cells, with its score interval.

    ones: shape (levels,). count: any integer. epsilon: of the count, > 0.
    """
    scores, accepted = table(shape, channel, epsilon, confidence)
    sums = with_rest(shape, one_sketch.level_sums(shape, channel, ones), np.array(count))
    solution, of_few = invert(scores, accepted, sums), few(shape, channel, epsilon, confidence)
    return of_few.refined(solution, sums) if of_few else solution


def with_rest(shape: SketchShape, sums: Array, counts: NDArray[np.int64]) -> Array:
    """Shape (.., levels + 1): level sums, and behind them what the counts say beyond them (eq. 28).

    sums: shape (.., levels). counts: shape (..).
    """
    rest = (shape.cells - counts) - sums.sum(axis=-1)
    return np.concatenate((sums, rest[..., None]), axis=-1)


def count_variance(epsilon: float) -> float:
    """Variance of the discrete Laplace noise of this epsilon: 2 a / (1 - a)^2, a = e^-epsilon."""
    return 0.5 / math.sinh(0.5 * epsilon) ** 2


def standard_errors(shape: SketchShape, channel: Channel, epsilon: float, n: Array) -> Array:
    """Shape (points,): the standard error in items where the truth is n >= 0: the least of any weights (eq. 30)."""
    _, information, _ = _weights(shape, channel, count_variance(epsilon), n)
    return np.asarray(1.0 / np.sqrt(information))


@lru_cache(maxsize=8)
def table(shape: SketchShape, channel: Channel, epsilon: float, confidence: float) -> tuple[Scores, Acceptance]:
    """What does not depend on the data: the score at every n of a grid, and which scores are accepted there."""
    floor = float(standard_errors(shape, channel, epsilon, np.zeros(1))[0])
    scores = _scores_at(shape, channel, epsilon, grid(floor, shape.capacity))
    laplace_share = np.minimum(scores.weights[:, -1] ** 2 * count_variance(epsilon), 1.0)
    return scores, Acceptance.of_limits(
        scores.distance, *normal_laplace.limits_above(scores.distance, laplace_share, confidence)
    )


@lru_cache(maxsize=8)
def few(shape: SketchShape, channel: Channel, epsilon: float, confidence: float) -> FewItems | None:
    """The limits of few items, where the noise is so small that they have a law of their own."""
    scores, _ = table(shape, channel, epsilon, confidence)
    at = partial(_scores_at, shape, channel, epsilon)
    return few_items(shape, channel, epsilon, scores, at, confidence)


def _scores_at(shape: SketchShape, channel: Channel, epsilon: float, n: Array) -> Scores:
    """n: shape (points,)."""
    raw, information, means = _weights(shape, channel, count_variance(epsilon), n)
    spread = np.sqrt(information)
    weights = raw / spread[:, None]
    offset = np.sum(weights[:, :-1] * means, axis=1)
    distance = np.maximum(offset - weights[:, :-1] @ shape.sizes, 0.0)
    curvature = np.sum(raw[:, :-1] * Occupancy.at(shape, n).slope * shape.sizes * np.log1p(-shape.rho), axis=1)
    # Eq. 41: with these weights its first term and half of its second cancel.
    bias = believed(-0.5 * curvature / information**2, 1.0 / spread)
    return Scores(n, weights, offset, spread, distance, 1.0 / spread, bias)


def _weights(shape: SketchShape, channel: Channel, variance: float, n: Array) -> tuple[Array, Array, Array]:
    """(weights of the level sums and of the rest, information, means of the level sums) at each n (eq. 30).

    Shapes (points, levels + 1), (points,) and (points, levels).
    """
    cells = Occupancy.at(shape, n)
    noise = max(channel.empty_variance, TINY) * shape.sizes
    covariance = np.zeros((len(n), shape.levels + 1, shape.levels + 1))
    covariance[:, :-1, :-1] = _covariance(shape, cells) + np.diag(noise)
    covariance[:, :-1, -1] = covariance[:, -1, :-1] = -noise
    covariance[:, -1, -1] = variance + noise.sum()
    slopes = np.zeros((len(n), shape.levels + 1))
    slopes[:, :-1] = shape.sizes * cells.slope
    raw = np.linalg.solve(covariance, slopes[..., None])[..., 0]
    return np.asarray(raw), np.asarray(np.sum(raw * slopes, axis=1)), shape.sizes * cells.empty


def _covariance(shape: SketchShape, cells: Occupancy) -> Array:
    """Shape (points, levels, levels): R of eq. 30.

    Eq. 7 gives no covariance at some n between 0 and 1. There R is that of one item that is there with probability n.
    """
    found = cells.covariance()
    part = cells.n < 1.0
    n, gone = cells.n[part, None, None], shape.sizes * shape.rho
    one = Occupancy.at(shape, np.ones(1)).covariance()
    found[part] = n * one + n * (1.0 - n) * gone[:, None] * gone
    return found
