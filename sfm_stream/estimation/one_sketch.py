"""The estimate from one sketch: composite marginal likelihood (paper, section "Cardinality Estimation").

For any p and q, and for any layout of cells (docs/accuracy.md, eq. 1 to 12).
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.few_items import FewItems, few_items
from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.score import Scores, Signal, Solution, invert, maximum
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
_ANY_CONFIDENCE = 0.95


def solve(
    layout: BitmapLayout, channel: Channel, ones: NDArray[np.int64] | NDArray[np.float64], confidence: float
) -> Solution:
    """The composite maximum-likelihood estimate, with its score interval.

    ones: shape (groups,), the noisy ones of each group of cells (of a sketch: of each level).
    """
    scores, accepted = table(layout, channel, confidence)
    sums = level_sums(layout, channel, ones)
    solution, of_few = invert(scores, accepted, sums), few(layout, channel, confidence)
    return of_few.refined(solution, sums) if of_few else solution


def most_likely(layout: BitmapLayout, channel: Channel, ones: NDArray[np.float64]) -> tuple[float, float]:
    """(the estimate, its standard error) alone. ones: as in solve."""
    scores, _ = table(layout, channel, _ANY_CONFIDENCE)
    score = scores.of(level_sums(layout, channel, ones))
    return maximum(scores.n, score, scores.spread, scores.standard_error)


def level_sums(
    layout: BitmapLayout, channel: Channel, ones: NDArray[np.int64] | NDArray[np.int32] | NDArray[np.float64]
) -> Array:
    """Z_j, of the shape of `ones`, (.., groups) (eq. 3)."""
    return np.asarray((channel.p * layout.sizes - ones) / channel.gap, np.float64)


@lru_cache(maxsize=8)
def table(layout: BitmapLayout, channel: Channel, confidence: float) -> tuple[Scores, Acceptance]:
    """What does not depend on the data: the score at every n of a grid, and which scores are accepted there."""
    signal = signal_of(layout, channel)
    scores = Scores.at(signal, signal.grid())
    return scores, Acceptance.at(scores.distance, confidence)


@lru_cache(maxsize=8)
def few(layout: BitmapLayout, channel: Channel, confidence: float) -> FewItems | None:
    """The limits of few items, where the noise is so small that they have a law of their own."""
    scores, _ = table(layout, channel, confidence)
    return few_items(layout, channel, 0.0, scores, partial(Scores.at, signal_of(layout, channel)), confidence)


def signal_of(layout: BitmapLayout, channel: Channel) -> Signal:
    """The signal z of one noisy bit in each cell (eq. 2)."""
    return Signal(layout, channel.empty_variance, np.full(len(layout.sizes), channel.set_square))
