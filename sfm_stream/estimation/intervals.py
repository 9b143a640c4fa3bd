"""Confidence limits near a boundary: which standard scores are compatible with an n that cannot be negative.

docs/accuracy.md, eq. 11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_NORMAL = NormalDist()
_STEPS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Acceptance:
    """For each of several n, the scores that are compatible with it: -l <= score <= h (eq. 11). Shapes (points,).

    The score is standard normal at the true n, so every pair with Phi(h) - Phi(-l) = confidence covers exactly. Far
    from 0 the pair is h = l = z. Near 0 it is the pair that orders by likelihood ratio within n >= 0 (Feldman and
    Cousins, Phys. Rev. D 57, 1998): no interval is empty, and a value below 0 still gives an upper limit.

    l is infinite at n = 0, so score >= -l is kept as slope * score + lift >= 0.
    """

    above: Array
    """h."""
    slope: Array
    lift: Array

    @classmethod
    def at(cls, distance: Array, confidence: float) -> Acceptance:
        """Of normal scores. distance: shape (points,), how many standard deviations n lies above 0, >= 0."""
        grid, above = _limits_above(confidence)
        return cls.of_limits(distance, np.interp(distance, grid, above), float(grid[-1]))

    @classmethod
    def of_limits(cls, distance: Array, above: Array, z: Array | float) -> Acceptance:
        """Of scores with another law. above: h at each point. z: what h and l are far from 0, one or of each point."""
        near = np.minimum(distance, z)
        # score + l >= 0, multiplied by near / z, with l = near / 2 + h^2 / (2 near).
        return cls(above, near / z, (near**2 + above**2) / (2.0 * z))

    def beyond(self, score: Array) -> tuple[Array, Array]:
        """Shapes (points,): > 0 where n lies below the interval, and < 0 where it lies above."""
        return score - self.above, self.slope * score + self.lift


def two_sided_z(confidence: float) -> float:
    """The z with Pr(|N(0, 1)| <= z) = confidence."""
    return _NORMAL.inv_cdf(0.5 + confidence / 2.0)


@lru_cache(maxsize=16)
def _limits_above(confidence: float) -> tuple[Array, Array]:
    """Shapes (steps + 1,): distances 0 .. z, and the limit above at each."""
    z = two_sided_z(confidence)
    grid = np.linspace(0.0, z, _STEPS + 1)
    return grid, np.array([_limit_above(float(mu), z, confidence) for mu in grid])


def _limit_above(mu: float, z: float, confidence: float) -> float:
    """The h of eq. 11 for an n that lies mu standard deviations above 0, by bisection to 1e-12."""
    low, high = 0.0, z
    while high - low > 1e-12:
        h = 0.5 * (low + high)
        tail = _NORMAL.cdf(-(0.5 * mu + h * h / (2.0 * mu))) if mu > 0.0 else 0.0
        low, high = (h, high) if _NORMAL.cdf(h) - tail < confidence else (low, h)
    return high


def normal_limits(value: float, error: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a quantity >= 0. value: a normal estimate of it, with the standard error `error` > 0."""
    z, x = two_sided_z(confidence), value / error

    def beyond(mu: float) -> tuple[float, float]:
        below, above = Acceptance.at(np.array([mu]), confidence).beyond(np.array([x - mu]))
        return float(below[0]), float(above[0])

    reach = max(x, 0.0) + 2.0 * z
    low = _bisect(lambda mu: beyond(mu)[0], reach) if beyond(0.0)[0] > 0.0 else 0.0
    return low * error, _bisect(lambda mu: beyond(mu)[1], reach) * error


def _bisect(function: Callable[[float], float], reach: float) -> float:
    """The zero in 0 .. reach of a function that is positive before and negative after it."""
    low, high = 0.0, reach
    while high - low > 1e-9 * (1.0 + high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > 0.0 else (low, middle)
    return 0.5 * (low + high)


def bounded(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """What of an interval lies between two bounds, least <= most; the bounds themselves if they exclude all of it."""
    inside = max(low, least), min(high, most)
    return inside if inside[0] <= inside[1] else (least, most)
