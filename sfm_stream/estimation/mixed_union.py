"""The union of releases of several flip probabilities: tallies of one each, and what bounds their union.

Only releases of one flip probability can be tallied. Over all of them goes the paper's merge, whose noise is that of
their product: beside six days of epsilon 1, three hours of epsilon 0.25 leave nothing to be seen. So the union of each
tally is estimated by itself too, and the union of all lies between the largest of these and their sum, by limits that
hold together:

    confidence c of the answer, m tallies, share s of the permitted error 1 - c
    merge          an interval of confidence 1 - (1 - s) (1 - c)
    each tally     an interval of confidence 1 - s (1 - c) / m
    the union      the merge's interval, where it lies between the largest lower end and the sum of the upper ends

The value is the merge's, and the largest tally's with what the others have beyond it, each weighted by its precision.
How much of another tally the largest one has too is seen in their cells (shared_items.py); where noise hides it, half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfm_stream.estimation.estimate import Estimate, estimate, judged
from sfm_stream.estimation.intervals import bounded
from sfm_stream.estimation.score import Solution
from sfm_stream.estimation.shared_items import shared_part
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.tally import Tally

_SHARE_OF_BOUNDS = 0.5
"""The part of the permitted error that the limits of the tallies have. The merge is often worth little."""


def estimate_union(tallies: Sequence[Tally], *, confidence: float = 0.95) -> Estimate:
    """The number of distinct items in the union of all windows of one or more tallies.

    tallies: of one shape and hash, each of another flip probability, in any order. Raises UsageError for no tally, and
    IncompatibleError where shape or hash differ.
    """
    if len(tallies) == 1:
        return estimate(tallies[0], confidence=confidence)
    wrong = 1.0 - confidence
    merged = estimate(merge_tallies(tallies), confidence=1.0 - (1.0 - _SHARE_OF_BOUNDS) * wrong)
    each_confidence = min(1.0 - _SHARE_OF_BOUNDS * wrong / len(tallies), 0.999)
    parts = [estimate(tally, confidence=each_confidence) for tally in tallies]
    least, most = max(part.low for part in parts), math.fsum(part.high for part in parts)
    low, high = bounded(merged.low, merged.high, least, most)
    unclamped, error = _between(merged, parts, tallies)
    value = min(max(unclamped, low), high)
    return judged(Solution(value, unclamped, error, low, high), confidence)


def _between(merged: Estimate, parts: Sequence[Estimate], tallies: Sequence[Tally]) -> tuple[float, float]:
    """(value, its standard error): the merge and the largest tally with the rest, weighted by their precisions.

    What has no upper limit says how many there are at least, and not how many more.
    """
    largest = max((part.value for part in parts if part.low > 0.0 or math.isfinite(part.high)), default=0.0)
    weighted = []
    if math.isfinite(merged.high):
        weighted.append((merged.value, merged.standard_error**2))
    if all(math.isfinite(part.high) for part in parts):
        more, variance = _more(parts, tallies)
        weighted.append((largest + more, variance))
    if not weighted:
        return largest, math.inf
    precision = math.fsum(1.0 / variance for _, variance in weighted)
    return math.fsum(value / variance for value, variance in weighted) / precision, precision**-0.5


def _more(parts: Sequence[Estimate], tallies: Sequence[Tally]) -> tuple[float, float]:
    """(what the smaller ones have beyond the largest, the variance of that with the largest)."""
    *smaller, first = sorted(range(len(parts)), key=lambda place: parts[place].value)
    largest = parts[first]
    more, spread, variance = [], [], [largest.standard_error**2]
    for place in smaller:
        part = parts[place]
        items = _shrunk(part.value, part.standard_error)  # more than their noise
        if items == 0.0:
            variance.append(part.standard_error**2)
            continue
        shared = shared_part((tallies[first], tallies[place]), (largest.value, part.value))
        more.append(items * (1.0 - shared.mean))
        spread.append(items * math.sqrt(shared.variance))
        variance.append(((1.0 - shared.mean) * part.standard_error) ** 2)
    # The doubts about what is shared may all be wrong in the same direction.
    return math.fsum(more), math.fsum(spread) ** 2 + math.fsum(variance)


def _shrunk(value: float, error: float) -> float:
    """The value, drawn towards 0 by as much as it is noise."""
    return value * value**2 / (value**2 + error**2) if value > 0.0 else 0.0
