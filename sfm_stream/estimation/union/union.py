"""The union of a tally's windows, from two estimates: the moment and the mixture.

The moment (moment_estimate.py) is unbiased whatever items the windows share; its interval and its standard error are
reported. The mixture (mixture_estimate.py) assumes that one of several hypotheses about shared items is nearly true.
With much noise it is several times more accurate than the moment; where no hypothesis is near the truth it is biased,
and it has no standard error that could be trusted. With little noise the moment is the better of the two.

The value therefore lies between the two: it is the moment plus a weight times the difference (docs/accuracy.md, eq.
19). The weight is the square of the share of the variance of z that is due to noise. This share is 0.3 at 24 releases
of epsilon 4 and 0.99 at 8 releases of epsilon 1. The value is then moved into the interval.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.union import mixture_estimate, moment_estimate
from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.estimation.union.overlap_hypotheses import overlap_hypotheses
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape


def solve(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64], confidence: float) -> Solution:
    """The estimate from the histogram of a tally, shape (levels, releases + 1), releases >= 2.

    If the moment holds no information, the interval is 0 to infinity and the value is that of the mixture.
    """
    releases = histogram.shape[1] - 1
    hypotheses = overlap_hypotheses(channel, releases)
    smallest = _mean_window(shape, channel, histogram)
    if not moment_estimate.informative(shape, channel, releases):
        value = mixture_estimate.fit(shape, hypotheses, histogram, smallest * math.sqrt(releases)).n
        return Solution(value, value, math.inf, 0.0, math.inf)
    # A first moment estimate, with the largest possible mean square, says where to begin the fit.
    largest_square = np.full(shape.levels, moment_estimate.set_square(channel, releases, np.array([1])))
    rough = moment_estimate.solve(shape, channel, histogram, largest_square, confidence)
    start = min(max(rough.value, smallest), 100.0 * releases * smallest)
    mixture = mixture_estimate.fit(shape, hypotheses, histogram, start)
    squares = moment_estimate.set_square(channel, releases, count_noise(channel, releases).set_windows)
    set_square = mixture_estimate.mean_where_set(mixture, shape, squares)
    moment = moment_estimate.solve(shape, channel, histogram, set_square, confidence)
    noise_share = -math.expm1(-releases * math.log1p(channel.empty_variance))
    value = moment.value + noise_share**2 * (mixture.n - moment.value)  # eq. 19
    return replace(moment, value=min(max(value, moment.low), moment.high))


def _mean_window(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64]) -> float:
    """A rough lower bound of the union: the estimate from the mean of the windows' level counts, at least 0.5."""
    releases = histogram.shape[1] - 1
    mean = one_sketch.solve(shape, channel, histogram @ (np.arange(releases + 1) / releases), 0.95)
    return max(mean.value, 0.5 * mean.standard_error, 0.5)
