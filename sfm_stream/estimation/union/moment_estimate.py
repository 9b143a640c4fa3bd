"""The union of several windows by an unbiased moment: the signal of "this cell is empty in every window".

The moment assumes nothing about which items the windows share. Its interval is the one that is reported.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.score import Scores, Signal, Solution, invert
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


def solve(
    shape: SketchShape, channel: Channel, histogram: NDArray[np.int64], set_square: Array, confidence: float
) -> Solution:
    """The moment estimate of the number of items in the union of the windows, with its interval (eq. 17).

    histogram: shape (levels, releases + 1), the number of cells with c ones. set_square: shape (levels,), the mean
    square of z over the cells of a level that are set in some window (eq. 18).
    """
    releases = histogram.shape[1] - 1
    ones = np.arange(releases + 1)
    z = (channel.p / channel.gap) ** (releases - ones) * (-channel.miss / channel.gap) ** ones  # eq. 17
    signal = signal_of(shape, channel, releases, set_square)
    scores = Scores.at(signal, signal.grid())
    return invert(scores, Acceptance.at(scores.distance, confidence), histogram @ z)


def standard_error(shape: SketchShape, channel: Channel, releases: int, set_square: Array, n: float) -> float:
    """The standard error of the moment where the truth is n items (eq. 10). set_square: as in solve."""
    signal = signal_of(shape, channel, releases, set_square)
    return float(Scores.at(signal, np.array([min(n, shape.capacity)])).standard_error[0])


def signal_of(shape: SketchShape, channel: Channel, releases: int, set_square: Array) -> Signal:
    """The signal z of a cell over all releases. set_square: as in solve."""
    empty_variance = math.expm1(releases * math.log1p(channel.empty_variance))  # eq. 18: a0^k - 1
    return Signal(shape, empty_variance, set_square)


def set_square(channel: Channel, releases: int, set_windows: NDArray[np.int64]) -> Array:
    """Shape of set_windows: the mean square of z in a cell that is set in m windows, a0^(k - m) a1^m (eq. 18)."""
    return np.asarray((1.0 + channel.empty_variance) ** (releases - set_windows) * channel.set_square**set_windows)
