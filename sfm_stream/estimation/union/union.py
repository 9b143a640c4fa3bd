"""The union of a tally's windows, from two estimates and from the sizes of its windows.

The moment (moment_estimate.py) is unbiased whatever items the windows share; its interval and its standard error are
reported. The mixture (mixture_estimate.py) assumes that one of several hypotheses about shared items is nearly true.
With much noise it is several times more accurate than the moment; where no hypothesis is near the truth it is biased,
and it has no standard error that could be trusted. With little noise the moment is the better of the two.

The value therefore lies between the two: it is the moment plus a weight times the difference (docs/accuracy.md, eq.
19). The weight falls where the moment is precise, and where the mixture does not fit the counts (eq. 32).

Where the tally knows what each release says of its own window, there is one more hypothesis (sized_hypothesis.py), and
the largest window and the sum of all bound the union (size_estimates.py). Moment and bounds share the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import bounded, two_sided_z
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.union import mixture_estimate, moment_estimate
from sfm_stream.estimation.union.assumed_overlap import AssumedOverlap, assumed_overlaps
from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.estimation.union.fit_start import fit_starts
from sfm_stream.estimation.union.overlap_hypotheses import overlap_hypotheses
from sfm_stream.estimation.union.size_estimates import SizeEstimates
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes

Array = NDArray[np.float64]
_SHARE_OF_BOUNDS = 0.1
"""The part of the permitted error that the bounds have; the moment has the rest."""
_MISFIT_ERROR = 0.01
"""A misfit of 1 adds the square of this share of n to the variance of the mixture."""
_NO_LIMIT = 30.0
"""An upper end this many times above the value and above the noise floor is none."""


def solve(
    shape: SketchShape,
    channel: Channel,
    histogram: NDArray[np.int64],
    confidence: float,
    window_sizes: WindowSizes | None = None,
) -> Solution:
    """As `solve_many`, of one tally."""
    return solve_many(shape, channel, [histogram], None if window_sizes is None else [window_sizes], confidence)[0]


def solve_many(
    shape: SketchShape,
    channel: Channel,
    histograms: Sequence[NDArray[np.int64]],
    window_sizes: Sequence[WindowSizes] | None,
    confidence: float,
) -> list[Solution]:
    """The estimate of each tally: its histogram, shape (levels, releases + 1), and its sizes if they are known of all.

    At least one tally; releases >= 2, and the same for all. They are estimated side by side, which is faster than one
    by one and gives the same. If the moment holds no information, the interval is that of the sizes; without sizes it
    is 0 to infinity, and the value is that of the mixture.
    """
    releases = histograms[0].shape[1] - 1
    sizes = None if window_sizes is None else SizeEstimates.of(shape, channel, window_sizes, confidence)
    informative = moment_estimate.informative(shape, channel, releases)
    starts = fit_starts(shape, channel, histograms, informative, sizes)
    mixtures = mixture_estimate.fit_many(shape, overlap_hypotheses(channel, releases), histograms, starts)
    noise = count_noise(channel, releases)
    assumed = assumed_overlaps(noise, mixtures, sizes)
    if informative:
        squares = moment_estimate.set_square(channel, releases, noise.set_windows)
        set_squares = mixture_estimate.means_where_set(mixtures, shape, squares)
        of_moment = 1.0 - (1.0 - confidence) * (1.0 - _SHARE_OF_BOUNDS) if sizes else confidence
        moments = moment_estimate.solve_many(shape, channel, histograms, set_squares, of_moment)
        # A moment that is far too low claims to be precise, as its error grows with n.
        at = np.array([each.n for each in assumed])
        there = moment_estimate.standard_errors(shape, channel, releases, set_squares, at).tolist()
        moments = [
            replace(moment, value=_between(replace(moment, standard_error=max(moment.standard_error, error)), overlap))
            for moment, error, overlap in zip(moments, there, assumed, strict=True)
        ]
    else:
        moments = [Solution(each.n, each.n, math.inf, 0.0, math.inf) for each in assumed]
    most = _NO_LIMIT * moment_estimate.noise_floor(shape, channel, releases)
    if sizes is None:
        return [_solution(moment, moment.low, moment.high, moment.value, most, confidence) for moment in moments]
    tail = 0.5 * (1.0 - confidence) * (_SHARE_OF_BOUNDS if informative else 1.0)
    bounds = zip(moments, sizes.largest_low(tail).tolist(), sizes.total_high(tail).tolist(), strict=True)
    return [_solution(moment, *_bounded(moment, *limits), most, confidence) for moment, *limits in bounds]


def _solution(moment: Solution, low: float, high: float, value: float, most: float, confidence: float) -> Solution:
    """The solution with this interval and value. most: an upper end above this may be none."""
    if high > max(_NO_LIMIT * value, most):
        high = math.inf
    error = moment.standard_error
    if math.isinf(error) and math.isfinite(high):
        error = 0.5 * (high - low) / two_sided_z(confidence)
    return Solution(value, moment.unclamped, error, min(low, value), max(high, value))


def _between(moment: Solution, assumed: AssumedOverlap) -> float:
    """The value between moment and mixture (eq. 19)."""
    trusted = assumed.variance + (_MISFIT_ERROR * assumed.n) ** 2 * max(assumed.misfit, 0.0)
    weight = moment.standard_error**2 / (moment.standard_error**2 + trusted)
    unbiased = max(moment.unclamped, 0.0)
    return unbiased + weight * (assumed.n - unbiased)


def _bounded(moment: Solution, least: float, most: float) -> tuple[float, float, float]:
    """(low, high, value): what of the interval lies between the bounds, or the bounds if they exclude all of it."""
    most = max(most, least)
    return *bounded(moment.low, moment.high, least, most), min(max(moment.value, least), most)
