"""The union of a tally's windows: value by mixture likelihood, interval by moment, one reconciled with the other.

The mixture (mixture.py) weighs hypotheses about how windows share items; where noise is heavy this makes it several
times more accurate than the unbiased moment (moment.py), and biased where items are shared in a way that none of the
hypotheses comes near, so no honest standard error comes with it. The interval and the standard error therefore are the
moment's, whose coverage holds for every overlap. Without noise the moment is as good as it gets and the mixture only
adds its bias; so the value moves from the one to the other with the square of the share 1 - a0^-k of the variance of z
that noise makes (0.3 at 24 releases of epsilon 4, 0.99 at 8 of 1), and stays within the interval.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.one_sketch import maximise as maximise_one
from sfm_stream.estimation.score import Inverted
from sfm_stream.estimation.union import mixture, moment
from sfm_stream.estimation.union.kernel import kernel
from sfm_stream.estimation.union.overlap import overlaps
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape


def solve(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64], confidence: float) -> Inverted:
    """The estimate from a tally's histogram, shape (levels, releases + 1), releases >= 2.

    Where the moment holds no information the interval is 0 to infinity and only the value is left.
    """
    releases = histogram.shape[1] - 1
    hypotheses = overlaps(channel, releases)
    smallest = _mean_window(shape, channel, histogram)
    if not moment.informative(shape, channel, releases):
        value = mixture.maximise(shape, hypotheses, histogram, smallest * math.sqrt(releases)).n
        return Inverted(value, value, math.inf, 0.0, math.inf)
    worst = np.full(shape.levels, moment.lit_square(channel, releases, np.array([1])))
    rough = moment.solve(shape, channel, histogram, worst, confidence)
    start = min(max(rough.value, smallest), 100.0 * releases * smallest)
    fitted = mixture.maximise(shape, hypotheses, histogram, start)
    squares = moment.lit_square(channel, releases, kernel(channel, releases).set_bits)
    lit = mixture.occupied_mean(fitted, shape, squares)
    found = moment.solve(shape, channel, histogram, lit, confidence)
    noise = -math.expm1(-releases * math.log1p(channel.empty_variance))
    value = found.value + noise**2 * (fitted.n - found.value)
    return replace(found, value=min(max(value, found.low), found.high))


def _mean_window(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64]) -> float:
    """A rough lower bound of the union: the mean of the windows' counts, which unequal windows make smaller still."""
    releases = histogram.shape[1] - 1
    mean = maximise_one(shape, channel, histogram @ (np.arange(releases + 1) / releases), 0.95)
    return max(mean.value, 0.5 * mean.standard_error, 0.5)
