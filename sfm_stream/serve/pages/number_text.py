"""How numbers of items are written for people: with separators of thousands, and no digit that the noise decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfm_stream.estimation.difference import Difference
from sfm_stream.estimation.estimate import Estimate, Status

NO_LIMIT = "no upper limit"


@dataclass(frozen=True, slots=True)
class Written:
    """An estimate in words. value: "521", "at least 400", "not known". interval: "504 to 537", or why there is none.

    is_limit: the value is all that is known, and the interval says no more.
    """

    value: str
    interval: str
    is_limit: bool = False


def written(estimate: Estimate) -> Written:
    """An estimate as it may be read: rounded to two digits of half its interval, the limits outward."""
    step = _step(estimate.value, estimate.low, estimate.high)
    low, high = _whole(_down(estimate.low, step)), _whole(_up(estimate.high, step))
    if estimate.status is Status.UNINFORMATIVE:
        return Written("not known", "any number fits", True)
    if estimate.status in (Status.LOWER_BOUND, Status.SATURATED):
        return Written(f"at least {_limit(estimate.low)}", NO_LIMIT, True)
    if estimate.status is Status.EMPTY:
        return Written(f"at most {high}", f"{low} to {high}", True)
    return Written(_whole(step * round(estimate.value / step)), f"{low} to {high}")


def written_difference(difference: Difference) -> Written:
    """A difference, with its sign, rounded as `written` rounds; one without limits is not known."""
    low, high = difference.low, difference.high
    if math.isinf(low) and math.isinf(high):
        return Written("not known", "any difference fits")
    step = _step(difference.value or 0.0, low, high)
    low_text, high_text = (_whole(limit, is_signed=True) for limit in (_down(low, step), _up(high, step)))
    if math.isinf(low):
        return Written(f"at most {high_text}", "no lower limit")
    if math.isinf(high):
        return Written(f"at least {low_text}", NO_LIMIT)
    value = "not known" if difference.value is None else _whole(step * round(difference.value / step), is_signed=True)
    return Written(value, f"{low_text} to {high_text}")


def share_text(share: float) -> str:
    """A share as a percentage with two digits: 1.4 %, 23 %, 180 %; where it is above ten times, that alone."""
    if not share <= 10:
        return "more than 1,000 %"
    percent = 100 * share
    return f"{percent:.1f} %" if percent < 10 else f"{percent:,.0f} %"


def _limit(low: float) -> str:
    """A lower limit of which nothing else is known, rounded down to two digits."""
    return _whole(_down(low, 10.0 ** max(0, math.floor(math.log10(low)) - 1))) if low >= 1 else "0"


def _step(value: float, low: float, high: float) -> float:
    """What is rounded to: the power of ten of the second digit of half the interval; at least 1."""
    half = (high - low) / 2
    if not math.isfinite(half):
        limit = low if math.isfinite(low) else high
        half = abs(value - limit) or abs(limit) / 100
    return 10.0 ** max(0, math.floor(math.log10(half)) - 1) if half > 0 else 1.0


def _down(limit: float, step: float) -> float:
    """Rounded down; a small number that the step would make 0 of to its own first digit, as 0 would say something."""
    if not math.isfinite(limit):
        return limit
    if 1 <= limit < step:
        step = 10.0 ** math.floor(math.log10(limit))
    return step * math.floor(limit / step)


def _up(limit: float, step: float) -> float:
    return step * math.ceil(limit / step) if math.isfinite(limit) else limit


def _whole(value: float, is_signed: bool = False) -> str:
    if not math.isfinite(value):
        return NO_LIMIT
    text = f"{abs(value):,.0f}"
    if text == "0":
        return text
    return ("\u2212" if value < 0 else "+" if is_signed else "") + text
