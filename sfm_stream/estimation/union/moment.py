"""Several releases of one k: the unbiased moment of "cell empty in all windows", for the interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.score import Inverted, Scores, Signal, invert
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]


def informative(shape: SketchShape, channel: Channel, releases: int) -> bool:
    """Whether one level's mean of z tells empty from full: its variance in empty cells, a0^releases, <= buckets."""
    return releases * math.log1p(channel.empty_variance) <= math.log(shape.buckets)


def solve(
    shape: SketchShape, channel: Channel, histogram: NDArray[np.int64], lit: Array, confidence: float
) -> Inverted:
    """The moment estimate of the union of the windows and its interval.

    z = (p/d)^(k-c) (-(1 - p)/d)^c, d = p - q, has mean 1 in a cell that is empty in all windows and 0 in any other,
    whatever the windows share. histogram: shape (levels, releases + 1). lit: shape (levels,), the mean square of z in
    the lit cells of each level; in an empty one it is a0^k, a0 = 1 + empty_variance.
    """
    releases = histogram.shape[1] - 1
    ones = np.arange(releases + 1)
    z = (channel.p / channel.gap) ** (releases - ones) * (-channel.miss / channel.gap) ** ones
    signal = Signal(shape, math.expm1(releases * math.log1p(channel.empty_variance)), lit)
    scores = Scores.at(signal, signal.grid())
    return invert(scores, Acceptance.at(scores.distance, confidence), histogram @ z)


def lit_square(channel: Channel, releases: int, set_bits: NDArray[np.int64]) -> Array:
    """Mean square of z in a cell lit in m windows, a0^(k-m) a1^m, for each m of `set_bits`; a1 = channel.lit_square."""
    return np.asarray((1.0 + channel.empty_variance) ** (releases - set_bits) * channel.lit_square**set_bits)
