"""How many distinct items: the one entry for sketches and tallies.

One sketch: composite marginal likelihood, score interval (likelihood.py, score.py). Several releases: union.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from sfm_stream.errors import UsageError
from sfm_stream.estimation.intervals import normal_limits
from sfm_stream.estimation.one_sketch import maximise
from sfm_stream.estimation.score import Inverted
from sfm_stream.estimation.union import union
from sfm_stream.sketch.mechanism import Channel, Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap
from sfm_stream.sketch.raw import RawBitmap
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.tally import Tally

MIN_CONFIDENCE, MAX_CONFIDENCE = 0.68, 0.999


NOTHING = Inverted(0.0, 0.0, math.inf, 0.0, math.inf)
"""What pure noise says."""


class Status(StrEnum):
    """What an estimate is worth."""

    OK = "ok"
    EMPTY = "empty"
    """The data are compatible with no item at all; `high` says how many there may be."""
    SATURATED = "saturated"
    """The data are compatible with any larger number: `low` is all they say, `high` is infinite."""
    UNINFORMATIVE = "uninformative"
    """The noise left no bound: the interval is 0 to infinity, `standard_error` infinite, `value` only a guess."""
    LOWER_BOUND = "lower_bound"
    """Part of what was asked for is not in the data: `value` is of the rest, `low` holds for all, `high` is infinite.

    Said of unions with missing windows (pipeline/rollup/coverage.py), never of a sketch or a tally itself.
    """


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of distinct items with its error. Never NaN; 0 <= low <= value <= high.

    value, standard_error, low, high: items; the interval covers the truth with probability `confidence`, and `high` may
    be infinite. unclamped: the estimate of least bias, which may be negative; sums of estimates use it, and
    standard_error is its error. docs/accuracy.md says how far each of these holds.
    """

    value: float
    standard_error: float
    low: float
    high: float
    status: Status
    confidence: float = 0.95
    unclamped: float = 0.0


def estimate(source: SfmSketch | Tally | NoisyBitmap, *, confidence: float = 0.95) -> Estimate:
    """The number of distinct items in a private sketch or bitmap, or in the union of the windows of a tally.

    A pure function of the level histogram: the order of cells and releases does not matter. confidence: 0.68 .. 0.999,
    else UsageError, as for a raw sketch.
    """
    require_confidence(confidence)
    if isinstance(source, RawBitmap):
        raise UsageError("estimate: a raw sketch is secret and has no public estimate: flip it first (sfm_stream.flip)")
    if isinstance(source, NoisyBitmap):
        return _of_bitmap(source, confidence)
    if 2 * source.k >= GRID:
        return _judged(NOTHING, confidence)
    channel = channel_of(source.k)
    if isinstance(source, SfmSketch):
        found = maximise(source.shape, channel, source.ones(), confidence)
    elif source.releases == 1:
        found = maximise(source.shape, channel, source.counts.sum(axis=1), confidence)
    else:
        found = union.solve(source.shape, channel, source.histogram(), confidence)
    return _judged(found, confidence)


def channel_of(k: int) -> Channel:
    """The channel of a sketch whose cells were flipped with probability k / 2^64."""
    return Mechanism.flipping(k).channel


def require_confidence(confidence: float) -> None:
    """Raise UsageError for a confidence outside 0.68 .. 0.999."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise UsageError(f"confidence: {confidence} is outside {MIN_CONFIDENCE}..{MAX_CONFIDENCE}")


def normal_estimate(unclamped: float, error: float, confidence: float) -> Estimate:
    """A number >= 0 of which `unclamped` is a normal estimate with this standard error; infinite: it says nothing."""
    if math.isinf(error):
        return _judged(NOTHING, confidence)
    value = max(unclamped, 0.0)
    low, high = normal_limits(unclamped, error, confidence)
    return _judged(Inverted(value, unclamped, error, min(low, value), max(high, value)), confidence)


def _of_bitmap(source: NoisyBitmap, confidence: float) -> Estimate:
    """Throws are counted, of which each item makes the same number."""
    channel = source.mechanism.channel
    if channel.gap == 0.0:
        return _judged(NOTHING, confidence)
    found, throws = maximise(source.layout, channel, source.ones(), confidence), source.layout.throws
    values = (found.value, found.unclamped, found.standard_error, found.low, found.high)
    return _judged(Inverted(*(value / throws for value in values)), confidence)


def lower_bound(found: Estimate) -> Estimate:
    """An estimate of a part, as one of the whole: no upper end, and a status that says so where it had one."""
    if math.isinf(found.high):  # saturated or uninformative: it never claimed one
        return found
    return replace(found, high=math.inf, status=Status.LOWER_BOUND)


def sum_disjoint(estimates: Iterable[Estimate]) -> Estimate:
    """The number of items in parts that have none in common: unclamped values add, standard errors in squares.

    Clamping each part at 0 first would bias the sum of many small parts upward. The interval takes the sum as normal.
    Raises UsageError for no part and for parts of unequal confidence.
    """
    parts = list(estimates)
    if len({part.confidence for part in parts}) != 1:
        raise UsageError(f"sum_disjoint: {len(parts)} estimates, needed at least one, all of one confidence")
    confidence = parts[0].confidence
    total = math.fsum(part.unclamped for part in parts)
    error = math.sqrt(math.fsum(part.standard_error**2 for part in parts))
    value = max(total, 0.0)
    if any(part.status is Status.UNINFORMATIVE for part in parts):
        return _judged(Inverted(value, total, math.inf, 0.0, math.inf), confidence)
    low, high = normal_limits(total, error, confidence)
    if any(part.status is Status.LOWER_BOUND for part in parts):
        low = min(math.fsum(part.low for part in parts), value)
        return Estimate(value, error, low, math.inf, Status.LOWER_BOUND, confidence, total)
    if any(part.status is Status.SATURATED for part in parts):
        # Each lower limit holds on its own with room to spare; their sum is no exact limit, but a modest one.
        low, high = min(math.fsum(part.low for part in parts), value), math.inf
    return _judged(Inverted(value, total, error, low, max(high, value)), confidence)


def _judged(found: Inverted, confidence: float) -> Estimate:
    if math.isinf(found.high):
        status = Status.SATURATED if found.low > 0.0 else Status.UNINFORMATIVE
    else:
        status = Status.OK if found.low > 0.0 else Status.EMPTY
    error = math.inf if status is Status.UNINFORMATIVE else found.standard_error
    return Estimate(found.value, error, found.low, found.high, status, confidence, found.unclamped)
