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
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import bounded, two_sided_z
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.union import mixture_estimate, moment_estimate
from sfm_stream.estimation.union.assumed_overlap import AssumedOverlap, assumed_overlap
from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.estimation.union.fit_start import fit_start
from sfm_stream.estimation.union.mixture_estimate import Mixture
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
    return solve_many(shape, channel, [(histogram, window_sizes)], confidence)[0]


def solve_many(
    shape: SketchShape,
    channel: Channel,
    tallies: Sequence[tuple[NDArray[np.int64], WindowSizes | None]],
    confidence: float,
) -> list[Solution]:
    """The estimate of each tally: its histogram, shape (levels, releases + 1), and its sizes if they are known.

    releases >= 2, and the same for all. Their mixtures are fitted side by side, which is faster than one by one and
    gives the same. If the moment holds no information, the interval is that of the sizes; without sizes it is 0 to
    infinity, and the value is that of the mixture.
    """
    halves = [_solved(shape, channel, histogram, confidence, sizes) for histogram, sizes in tallies]
    hypotheses = overlap_hypotheses(channel, tallies[0][0].shape[1] - 1)
    starts = [next(half) for half in halves]
    mixtures = mixture_estimate.fit_many(shape, hypotheses, [histogram for histogram, _ in tallies], starts)
    return [_sent(half, mixture) for half, mixture in zip(halves, mixtures, strict=True)]


def _sent(half: Generator[float, Mixture, Solution], mixture: Mixture) -> Solution:
    try:
        half.send(mixture)
    except StopIteration as end:
        solution: Solution = end.value
        return solution
    raise AssertionError("a tally is fitted once")


def _solved(
    shape: SketchShape,
    channel: Channel,
    histogram: NDArray[np.int64],
    confidence: float,
    window_sizes: WindowSizes | None,
) -> Generator[float, Mixture, Solution]:
    """Gives where to begin the fit of the mixture, takes the mixture, and returns the estimate."""
    releases = histogram.shape[1] - 1
    sizes = None if window_sizes is None else SizeEstimates.of(shape, channel, window_sizes, confidence)
    informative = moment_estimate.informative(shape, channel, releases)
    of_moment = 1.0 - (1.0 - confidence) * (1.0 - _SHARE_OF_BOUNDS) if sizes else confidence
    start = fit_start(shape, channel, histogram, of_moment if informative else None, sizes)
    mixture = yield start
    noise = count_noise(channel, releases)
    assumed = assumed_overlap(noise, mixture, sizes)
    if not informative:
        moment = Solution(assumed.n, assumed.n, math.inf, 0.0, math.inf)
    else:
        squares = moment_estimate.set_square(channel, releases, noise.set_windows)
        set_square = mixture_estimate.mean_where_set(mixture, shape, squares)
        moment = moment_estimate.solve(shape, channel, histogram, set_square, of_moment)
        # A moment that is far too low claims to be precise, as its error grows with n.
        there = moment_estimate.standard_error(shape, channel, releases, set_square, assumed.n)
        uncertain = replace(moment, standard_error=max(moment.standard_error, there))
        moment = replace(moment, value=_between(uncertain, assumed))
    low, high, value = moment.low, moment.high, moment.value
    if sizes:
        tail = 0.5 * (1.0 - confidence) * (_SHARE_OF_BOUNDS if informative else 1.0)
        low, high, value = _bounded(moment, sizes.largest_low(tail), sizes.total_high(tail))
    if high > _NO_LIMIT * max(value, moment_estimate.noise_floor(shape, channel, releases)):
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
