"""Unions of windows whose sizes are known, simulated: coverage, and errors where exchangeable windows are far off.

Seeds are fixed. Coverage bounds are 4.5 standard deviations of the Monte-Carlo error: with a new seed a right interval
would fail one assertion in 300,000 (one-sided). Bounds of root mean square errors: the sum of 24 squared normal errors
is at most 2.13 times its mean in all but 1 of 1000 trials.
"""

import math

import numpy as np
import pytest

from benchmarks.union_patterns import lit, tally, without_sizes
from sfm_stream.estimation.estimate import Status, estimate
from sfm_stream.sketch.shape import SketchShape

SMALL, BIG = SketchShape(256, 16), SketchShape(4096, 24)


def simulated(shape, pattern, releases, epsilon, n, trials, count_share=0.0):
    """(tally, cells set) of each trial."""
    rng = np.random.default_rng([shape.buckets, releases, round(10 * epsilon), n, len(pattern)])
    for _ in range(trials):
        yield tally(rng, shape, lit(rng, shape, pattern, n, releases), epsilon, count_share)


@pytest.mark.parametrize("count_share", [0.0, 0.1])
@pytest.mark.parametrize("pattern", ["disjoint", "identical", "huge", "nested", "weekly"])
def test_intervals_cover_whatever_the_sizes(pattern, count_share):
    n, trials = 3000, 120
    found = [estimate(each) for each in simulated(SMALL, pattern, 8, 2, n, trials, count_share)]
    covered = sum(each.low <= n <= each.high for each in found) / trials
    assert covered > 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / trials)


@pytest.mark.parametrize("pattern", ["disjoint", "identical", "huge", "nested"])
def test_where_the_moment_fades_the_sizes_still_bound_the_union(pattern):
    """28 windows of epsilon 1; without sizes the interval is 0 to infinity."""
    n, trials = 3000, 60
    for each in simulated(SMALL, pattern, 28, 1, n, 1):
        assert estimate(without_sizes(each)).status is Status.UNINFORMATIVE
    found = [estimate(each) for each in simulated(SMALL, pattern, 28, 1, n, trials)]
    assert sum(each.low <= n <= each.high for each in found) / trials > 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / trials)
    assert all(math.isfinite(each.high) and math.isfinite(each.standard_error) for each in found)


@pytest.mark.parametrize(
    ("releases", "epsilon", "pattern", "largest"),
    [(8, 1, "huge", 7), (8, 1, "nested", 7), (8, 1, "disjoint", 4), (24, 2, "huge", 4), (24, 2, "disjoint", 3)],
)
def test_errors_are_those_of_the_sizes(releases, epsilon, pattern, largest):
    """`largest`: a root mean square error in %. Without the sizes one huge window makes 19 to 26 %."""
    n, trials = 100_000, 24
    found = [estimate(each).value / n - 1 for each in simulated(BIG, pattern, releases, epsilon, n, trials)]
    assert 1e4 * np.mean(np.square(found)) < 2.13 * largest**2


def test_an_interval_is_narrower_with_sizes_where_they_bound_it():
    n = 100_000
    for each in simulated(BIG, "huge", 8, 1, n, 4):
        wide, narrow = estimate(without_sizes(each)), estimate(each)
        assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)


def test_fixed_cohorts_fall_back_to_the_moment():
    """Half of the items in every window of the first half, the others in the rest: no hypothesis says that."""
    n = 100_000
    for each in simulated(BIG, "day_and_night", 24, 4, n, 4):
        found = estimate(each)
        assert abs(found.value - found.unclamped) < 0.01 * n
