"""The difference of two estimates whose noise is independent, with its interval (docs/accuracy.md, "Differences").

The two are estimates of two fixed numbers, whatever items the sets have in common, and the noise of each is drawn by
itself. So the error of the difference is that of both. Its interval is made of theirs (Zou and Donner, Statistics in
Medicine 27, 2008, the method of variance estimates recovery), so that it is as asymmetric as they are:

    low  = d - sqrt((second - second low)^2 + (first high - first)^2)
    high = d + sqrt((second high - second)^2 + (first - first low)^2)

An end without limit has none here, and where nothing is known of a set but that it is not negative, the other end
follows from the limits alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfm_stream.errors import UsageError
from sfm_stream.estimation.estimate import Estimate, Status

_WITH_VALUE = (Status.OK, Status.EMPTY)
"""The status of an estimate whose value is one of the whole set."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How many items more the second set has than the first. Never NaN; low <= value <= high.

    value, standard_error, low, high: items; negative where the second has fewer. value: None where one of the two has
    no value for the whole of its set (a lower bound, saturated, uninformative, nothing at all); standard_error is
    infinite then. low, high: infinite where nothing limits them. The interval covers the truth with probability
    `confidence`.
    """

    value: float | None
    standard_error: float
    low: float
    high: float
    confidence: float

    @property
    def sign(self) -> int | None:
        """1 where the second set has more items, -1 where it has fewer; None where the interval leaves that open."""
        return 1 if self.low > 0.0 else -1 if self.high < 0.0 else None


def difference(first: Estimate | None, second: Estimate | None) -> Difference:
    """The second less the first; None for a set of which nothing is known. Raises UsageError for unequal confidence."""
    known = [each for each in (first, second) if each is not None]
    if len({each.confidence for each in known}) != 1:
        raise UsageError("difference: needed two estimates of one confidence, or one")
    low, high = -_rise(second, first), _rise(first, second)
    if first is None or second is None or not {first.status, second.status} <= {*_WITH_VALUE}:
        return Difference(None, math.inf, low, high, known[0].confidence)
    error = math.hypot(first.standard_error, second.standard_error)
    return Difference(second.value - first.value, error, low, high, known[0].confidence)


def _rise(base: Estimate | None, risen: Estimate | None) -> float:
    """The upper limit of risen - base; infinite where there is none."""
    if risen is None:
        return math.inf
    if base is None or base.status is Status.UNINFORMATIVE:
        return risen.high  # the base is at least 0, and its value is a guess
    return risen.value - base.value + math.hypot(risen.high - risen.value, base.value - base.low)
