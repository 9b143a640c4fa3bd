"""One sketch: composite marginal likelihood (paper, section "Cardinality Estimation"), for general p and q."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.score import Inverted, Scores, Signal, invert
from sfm_stream.sketch.layout import Layout
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]


def maximise(
    layout: Layout, channel: Channel, ones: NDArray[np.int64] | NDArray[np.float64], confidence: float
) -> Inverted:
    """The composite maximum-likelihood estimate from the noisy ones of each level, with exact score interval.

    ones: shape (groups,), one number for each group of cells. The root of the score is found by safeguarded Newton in
    the bracket of the global maximum.
    """
    scores, accepted = _table(layout, channel, confidence)
    empty = np.asarray((channel.p * layout.sizes - ones) / channel.gap, np.float64)
    return invert(scores, accepted, empty)


def standard_errors(layout: Layout, channel: Channel, n: float) -> tuple[float, float]:
    """(paper's, sandwich) standard error of the estimate where the truth is n > 0, in items.

    The paper's (eq. fisher-error) believes that cells are independent. It is right for n much larger than the number
    of buckets and several times too large for small n with little noise; estimates carry the sandwich.
    """
    cells = Occupancy.at(layout, np.array([n]))
    zero = channel.miss + channel.gap * cells.empty
    information = np.sum(((channel.gap * cells.slope) ** 2 / (zero * (1.0 - zero))) @ layout.sizes)
    return float(information**-0.5), float(Scores.at(_signal(layout, channel), np.array([n])).standard_error[0])


@lru_cache(maxsize=8)
def _table(layout: Layout, channel: Channel, confidence: float) -> tuple[Scores, Acceptance]:
    signal = _signal(layout, channel)
    scores = Scores.at(signal, signal.grid())
    return scores, Acceptance.at(scores.distance, confidence)


def _signal(layout: Layout, channel: Channel) -> Signal:
    return Signal(layout, channel.empty_variance, np.full(len(layout.sizes), channel.lit_square))
