"""`estimate`: the number of distinct items in a sketch, a bitmap or a tally.

one_sketch.py estimates from one sketch, union/union.py from several releases of one flip probability. This module
chooses between them, and says with a Status what the result is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.estimation import one_sketch, with_count
from sfm_stream.estimation.intervals import normal_limits
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.union import union
from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.mechanism import Channel, Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap
from sfm_stream.sketch.raw import RawBitmap
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_histogram import TallyHistogram

MIN_CONFIDENCE, MAX_CONFIDENCE = 0.68, 0.999


NOTHING = Solution(0.0, 0.0, math.inf, 0.0, math.inf)
"""The estimate from pure noise."""


class Status(StrEnum):
    """What an estimate is worth."""

    OK = "ok"
    EMPTY = "empty"
    """The data are compatible with no item at all; `high` is the largest number that they are compatible with."""
    SATURATED = "saturated"
    """The data are compatible with any larger number: `low` holds, `high` is infinite."""
    UNINFORMATIVE = "uninformative"
    """The noise is too large for a bound: the interval is 0 to infinity, `standard_error` infinite, `value` a guess."""
    LOWER_BOUND = "lower_bound"
    """Some windows of the question are not in the data. `value` counts the others, `low` holds for all of them, and
    `high` is infinite. Only unions with missing windows have this status (pipeline/rollup/coverage.py)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of distinct items with its error. Never NaN; 0 <= low <= value <= high.

    value, standard_error, low, high: items. The interval covers the truth with probability `confidence`; `high` may be
    infinite. unclamped: the estimate of least bias, to which standard_error belongs. It may be negative, and is what
    sums of estimates add. docs/accuracy.md has measurements of all of these.
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

    confidence: 0.68 .. 0.999. The order of cells within a level and of releases does not matter. Raises UsageError for
    another confidence and for a raw sketch.
    """
    require_confidence(confidence)
    if isinstance(source, RawBitmap):
        raise UsageError("estimate: a raw sketch is secret and has no public estimate: flip it first (sfm_stream.flip)")
    if isinstance(source, NoisyBitmap):
        return _of_bitmap(source, confidence)
    if 2 * source.flip_threshold >= GRID:
        return judged(NOTHING, confidence)
    if isinstance(source, SfmSketch):
        solution = _of_release(source, source.ones(), source.count, confidence)
    elif source.releases == 1:
        count = None if source.sizes is None else source.sizes.counts[0]
        solution = _of_release(source, source.counts.sum(axis=1), count, confidence)
    else:
        channel = channel_of(source.flip_threshold)
        solution = union.solve(source.shape, channel, source.histogram(), confidence, source.sizes)
    return judged(solution, confidence)


def estimate_many(tallies: Sequence[TallyHistogram], *, confidence: float = 0.95) -> list[Estimate]:
    """What `estimate` gives for each of these tallies, in their order.

    Those of one shape, flip threshold and number of releases are estimated together, which is faster. Raises UsageError
    for a confidence outside 0.68 .. 0.999.
    """
    require_confidence(confidence)
    found: dict[int, Estimate] = {}
    alike: dict[tuple[SketchShape, int, int, bool], list[int]] = {}
    for number, tally in enumerate(tallies):
        if 2 * tally.flip_threshold >= GRID:
            found[number] = judged(NOTHING, confidence)
        elif tally.releases == 1:
            count = None if tally.sizes is None else tally.sizes.counts[0]
            found[number] = judged(_of_release(tally, tally.cells[:, 1], count, confidence), confidence)
        else:
            kind = (tally.shape, tally.flip_threshold, tally.releases, tally.sizes is None)
            alike.setdefault(kind, []).append(number)
    for (shape, flip_threshold, *_), numbers in alike.items():
        histograms = [tallies[number].cells for number in numbers]
        sizes = [known for number in numbers if (known := tallies[number].sizes) is not None] or None
        solutions = union.solve_many(shape, channel_of(flip_threshold), histograms, sizes, confidence)
        found |= {number: judged(each, confidence) for number, each in zip(numbers, solutions, strict=True)}
    return [found[number] for number in range(len(tallies))]


def _of_release(source: Combinable, ones: NDArray[np.int64], count: NoisyCount | None, confidence: float) -> Solution:
    """The estimate from one sketch, and from the noisy count beside it where there is one."""
    channel = channel_of(source.flip_threshold)
    if count is None:
        return _without_bias(one_sketch.solve(source.shape, channel, ones, confidence))
    epsilon = float(count.epsilon)
    return _without_bias(with_count.solve(source.shape, channel, ones, count.value, epsilon, confidence))


def _without_bias(solution: Solution) -> Solution:
    """The solution of one sketch with the value that is right on average in place of the most likely one."""
    value = max(solution.unclamped, 0.0)
    return replace(solution, value=value, low=min(solution.low, value), high=max(solution.high, value))


def channel_of(flip_threshold: int) -> Channel:
    """The channel of a sketch whose cells were flipped with probability flip_threshold / 2^64."""
    return Mechanism.flipping(flip_threshold).channel


def require_confidence(confidence: float) -> None:
    """Raise UsageError for a confidence outside 0.68 .. 0.999."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise UsageError(f"confidence: {confidence} is outside {MIN_CONFIDENCE}..{MAX_CONFIDENCE}")


def normal_estimate(unclamped: float, error: float, confidence: float) -> Estimate:
    """The estimate of a number >= 0. unclamped: a normally distributed estimate of it, which may be negative.

    error: the standard error of `unclamped`; infinite if there are no data.
    """
    if math.isinf(error):
        return judged(NOTHING, confidence)
    value = max(unclamped, 0.0)
    low, high = normal_limits(unclamped, error, confidence)
    return judged(Solution(value, unclamped, error, min(low, value), max(high, value)), confidence)


def _of_bitmap(source: NoisyBitmap, confidence: float) -> Estimate:
    """The estimate from a bitmap: the estimated number of throws, divided by the throws that each item makes."""
    channel = source.mechanism.channel
    if channel.gap == 0.0:
        return judged(NOTHING, confidence)
    thrown, throws = one_sketch.solve(source.layout, channel, source.ones(), confidence), source.layout.throws
    thrown = _without_bias(thrown)
    values = (thrown.value, thrown.unclamped, thrown.standard_error, thrown.low, thrown.high)
    return judged(Solution(*(value / throws for value in values)), confidence)


def lower_bound(part: Estimate) -> Estimate:
    """The estimate of a union of which only `part` is known: the same `low`, `high` infinite, status LOWER_BOUND."""
    if math.isinf(part.high):  # saturated or uninformative: nothing has to change
        return part
    return replace(part, high=math.inf, status=Status.LOWER_BOUND)


def sum_disjoint(estimates: Iterable[Estimate]) -> Estimate:
    """The number of items in parts that have none in common.

    Unclamped values add, and standard errors add in squares: the sum of many small parts that were each moved up to 0
    would be too high. The interval takes the sum as normal. Raises UsageError for no part and for parts of unequal
    confidence.
    """
    parts = list(estimates)
    if len({part.confidence for part in parts}) != 1:
        raise UsageError(f"sum_disjoint: {len(parts)} estimates, needed at least one, all of one confidence")
    confidence = parts[0].confidence
    total = math.fsum(part.unclamped for part in parts)
    error = math.sqrt(math.fsum(part.standard_error**2 for part in parts))
    value = max(total, 0.0)
    if any(part.status is Status.UNINFORMATIVE for part in parts):
        return judged(Solution(value, total, math.inf, 0.0, math.inf), confidence)
    low, high = normal_limits(total, error, confidence)
    if any(part.status is Status.LOWER_BOUND for part in parts):
        low = min(math.fsum(part.low for part in parts), value)
        return Estimate(value, error, low, math.inf, Status.LOWER_BOUND, confidence, total)
    if any(part.status is Status.SATURATED for part in parts):
        # A limit of at least this confidence: the sum of the lower limits lies below the exact lower limit of the sum.
        low, high = min(math.fsum(part.low for part in parts), value), math.inf
    return judged(Solution(value, total, error, low, max(high, value)), confidence)


def judged(solution: Solution, confidence: float) -> Estimate:
    """The solution as an Estimate. Its status follows from the limits."""
    low, high = solution.low, solution.high
    if math.isinf(high):
        status = Status.SATURATED if low > 0.0 else Status.UNINFORMATIVE
    else:
        status = Status.OK if low > 0.0 else Status.EMPTY
    error = math.inf if status is Status.UNINFORMATIVE else solution.standard_error
    return Estimate(solution.value, error, low, high, status, confidence, solution.unclamped)
