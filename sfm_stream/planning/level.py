"""How well a number of items will be known: from one release, or from the union of several releases of one span.

The formulas are those of the estimators (docs/accuracy.md, eq. 10, 12, 18 and 30) at numbers that somebody assumes
instead of data. Nothing here is drawn or simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import one_sketch, with_count
from sfm_stream.estimation.estimate import channel_of
from sfm_stream.estimation.score import Scores, Signal
from sfm_stream.estimation.union import moment_estimate
from sfm_stream.privacy.epsilon import flip_threshold_of, parts_of
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
KNOWN = 0.2
"""A number of items is called known where its relative standard error is at most this."""
NOISE = 0.5
"""Above this relative standard error a 95 % interval reaches from nothing to twice the number."""
_POINTS = 96
_MOST_NOISE = 100.0
"""ln of the largest mean square of the signal that is reckoned with: beyond it the error is infinite."""


@dataclass(frozen=True, slots=True)
class Level:
    """What an answer is computed from: `releases` releases of one shape, of the same epsilon.

    One release is estimated from its bits and its noisy count. Several are a union, estimated from the bits alone; its
    error is that of the moment where no item is in two releases, which is the largest that an overlap can give, and the
    one that its interval has. count_epsilon: 0 for releases without a count.
    """

    shape: SketchShape
    channel: Channel
    count_epsilon: float
    releases: int = 1

    @classmethod
    def of(cls, shape: SketchShape, epsilon: Decimal, count_share: Decimal, releases: int = 1) -> Level:
        """The level of releases that cost `epsilon` each, of which the count has `count_share`."""
        for_bits, for_count = parts_of(epsilon, count_share)
        return cls(shape, channel_of(flip_threshold_of(for_bits)), float(for_count), releases)

    def standard_errors(self, n: Array) -> Array:
        """Standard error in items at each number n > 0 of items, shape (points,); infinite where noise is all there is.

        n: at most the capacity of the shape.
        """
        if self.releases == 1 and self.count_epsilon:
            return with_count.standard_errors(self.shape, self.channel, self.count_epsilon, n)
        if self.releases * math.log1p(self.channel.empty_variance) > _MOST_NOISE:
            return np.full(len(n), math.inf)
        return Scores.at(self._signal(), n).standard_error

    def relative_error(self, n: float) -> float:
        """Standard error as a share of n > 0 items."""
        if n > self.shape.capacity:
            return math.inf
        return float(self.standard_errors(np.array([n]))[0]) / n

    def least_error(self) -> float:
        """The relative standard error at the number of items that is known best."""
        n = self._numbers()
        return float(np.min(self.standard_errors(n) / n))

    def smallest_known(self, error: float = KNOWN) -> float:
        """The smallest number of items, at least 1, whose relative standard error is at most `error`; inf: none is."""
        n = self._numbers()
        enough = np.flatnonzero(self.standard_errors(n) / n <= error)
        if not len(enough):
            return math.inf
        if not enough[0]:
            return 1.0
        low, high = float(n[enough[0] - 1]), float(n[enough[0]])
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.relative_error(middle) <= error else (middle, high)
        return high

    @property
    def is_noise(self) -> bool:
        """Whether no number of items has a relative standard error of NOISE or less."""
        return all(self.relative_error(float(n)) > NOISE for n in self._numbers()[::-1])

    def _signal(self) -> Signal:
        if self.releases == 1:
            return one_sketch.signal_of(self.shape, self.channel)
        in_one = moment_estimate.set_square(self.channel, self.releases, np.array([1]))
        squares = np.full(self.shape.levels, float(in_one[0]))
        return moment_estimate.signal_of(self.shape, self.channel, self.releases, squares)

    def _numbers(self) -> Array:
        return np.geomspace(1.0, self.shape.capacity / 4.0, _POINTS)


def noise_factor(count_share: Decimal, epsilon: Decimal, releases: int) -> float:
    """How much larger the noise of a union is than without a count: the ratio of the standard deviations of z.

    z is the moment's signal in an empty cell (eq. 18).
    """
    with_share, without = (
        math.expm1(releases * math.log1p(channel_of(flip_threshold_of(parts_of(epsilon, share)[0])).empty_variance))
        for share in (count_share, Decimal(0))
    )
    return math.sqrt(with_share / without)


def most_releases(shape: SketchShape, channel: Channel) -> int:
    """The largest number of releases whose union the moment tells from noise."""
    low, high = 1, 2
    while moment_estimate.informative(shape, channel, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if moment_estimate.informative(shape, channel, middle) else (low, middle)
    return low
