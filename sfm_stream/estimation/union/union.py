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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.intervals import two_sided_z
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.union import mixture_estimate, moment_estimate, sized_hypothesis
from sfm_stream.estimation.union.count_noise import MAX_SET_WINDOWS, count_noise
from sfm_stream.estimation.union.mixture_estimate import Mixture
from sfm_stream.estimation.union.overlap_hypotheses import overlap_hypotheses
from sfm_stream.estimation.union.size_estimates import SizeEstimates
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes

Array = NDArray[np.float64]
_SHARE_OF_BOUNDS = 0.1
"""The part of the permitted error that the bounds have; the moment has the rest."""
_LIKELY, _STEEPNESS = 1.5, 3.0
"""The sized hypothesis counts in full while its ln likelihood is less than _LIKELY below the mixture's (eq. 37)."""
_MISFIT_ERROR = 0.01
"""A misfit of 1 adds the square of this share of n to the variance of the mixture."""
_NO_LIMIT = 30.0
"""An upper end this many times above the value and above the noise floor is none."""


@dataclass(frozen=True, slots=True)
class _Assumed:
    """What hypotheses about overlap say: n, its variance if one of them holds, and how badly they fit (eq. 32)."""

    n: float
    variance: float
    misfit: float


def solve(
    shape: SketchShape,
    channel: Channel,
    histogram: NDArray[np.int64],
    confidence: float,
    window_sizes: WindowSizes | None = None,
) -> Solution:
    """The estimate from the histogram of a tally, shape (levels, releases + 1), releases >= 2.

    If the moment holds no information, the interval is that of the sizes; without sizes it is 0 to infinity, and the
    value is that of the mixture.
    """
    releases = histogram.shape[1] - 1
    sizes = None if window_sizes is None else SizeEstimates.of(shape, channel, window_sizes, confidence)
    informative = moment_estimate.informative(shape, channel, releases)
    of_moment = 1.0 - (1.0 - confidence) * (1.0 - _SHARE_OF_BOUNDS) if sizes else confidence
    smallest = _mean_window(shape, channel, histogram)
    start = smallest * math.sqrt(releases)
    if informative:
        # A first moment estimate, with the largest possible mean square, says where to begin the fit.
        largest_square = np.full(shape.levels, moment_estimate.set_square(channel, releases, np.array([1])))
        rough = moment_estimate.solve(shape, channel, histogram, largest_square, of_moment)
        start = min(max(rough.value, smallest), 100.0 * releases * smallest)
    if sizes:
        start = min(max(start, float(sizes.values.max()), 0.5), max(sizes.total, smallest))
    mixture = mixture_estimate.fit(shape, overlap_hypotheses(channel, releases), histogram, start)
    assumed = _assumed(channel, mixture, sizes)
    if not informative:
        moment = Solution(assumed.n, assumed.n, math.inf, 0.0, math.inf)
    else:
        squares = moment_estimate.set_square(channel, releases, count_noise(channel, releases).set_windows)
        set_square = mixture_estimate.mean_where_set(mixture, shape, squares)
        moment = moment_estimate.solve(shape, channel, histogram, set_square, of_moment)
        moment = replace(moment, value=_between(moment, assumed))
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


def _assumed(channel: Channel, mixture: Mixture, sizes: SizeEstimates | None) -> _Assumed:
    """The mixture, and the sized hypothesis with the share that its evidence and its likelihood give it."""
    levels, releases = mixture.levels, 0 if sizes is None else len(sizes.values)
    alone = _Assumed(mixture.n, mixture.variance, levels.misfit(mixture.density))
    if sizes is None or releases > MAX_SET_WINDOWS:
        return alone
    noise = count_noise(channel, releases)
    sized = sized_hypothesis.fit(levels, sizes, np.vstack((noise.never_set, noise.when_set)))
    if sized is None:
        return alone
    behind = float(levels.log_likelihood(mixture.density) - levels.log_likelihood(sized.density))
    # Eq. 37: where it claims more than the others, it has to fit the counts as well as they do.
    share = _logistic(sized.log_evidence - mixture.log_evidence) * _logistic(_STEEPNESS * (_LIKELY - behind))
    rest, apart = 1.0 - share, sized.n - mixture.n
    variance = share * sized.variance + rest * mixture.variance + share * rest * apart**2
    misfit = levels.misfit(share * sized.density + rest * mixture.density)
    return _Assumed(share * sized.n + rest * mixture.n, variance, misfit)


def _between(moment: Solution, assumed: _Assumed) -> float:
    """The value between moment and mixture (eq. 19)."""
    trusted = assumed.variance + (_MISFIT_ERROR * assumed.n) ** 2 * max(assumed.misfit, 0.0)
    weight = moment.standard_error**2 / (moment.standard_error**2 + trusted)
    return moment.value + weight * (assumed.n - moment.value)


def _bounded(moment: Solution, least: float, most: float) -> tuple[float, float, float]:
    """(low, high, value): what of the interval lies between the bounds, or the bounds if they exclude all of it."""
    most = max(most, least)
    low, high = max(moment.low, least), min(moment.high, most)
    if low > high:
        low, high = least, most
    return low, high, min(max(moment.value, least), most)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -500.0), 500.0)))


def _mean_window(shape: SketchShape, channel: Channel, histogram: NDArray[np.int64]) -> float:
    """A rough lower bound of the union: the estimate from the mean of the windows' level counts, at least 0.5."""
    releases = histogram.shape[1] - 1
    mean = one_sketch.solve(shape, channel, histogram @ (np.arange(releases + 1) / releases), 0.95)
    return max(mean.value, 0.5 * mean.standard_error, 0.5)
