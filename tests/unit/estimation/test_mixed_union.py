"""Unions of releases of several epsilons."""

import math

import numpy as np
import pytest
from support.seeded_coins import SeededCoins

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.estimation.estimate import Status, estimate
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

SHAPE = SketchShape(1024, 16)
ITEMS = np.random.default_rng(1).permutation(1 << 20)
"""Items of all tests, each once."""


def tally_of(parts, epsilon, seed, shape=SHAPE, count_share=0.1):
    coins = SeededCoins(seed)
    return Tally.of(
        flip(PcsaSketch(shape).add(part.tolist()), epsilon, coins, count_share=count_share) for part in parts
    )


def slices(count, size, step, start=0):
    return [ITEMS[start + number * step : start + number * step + size] for number in range(count)]


NESTED = slices(3, 8000, 2000), slices(4, 500, 500)
DISJOINT = slices(3, 4000, 4000), slices(4, 500, 500, 500_000)
"""Days and hours: the hours in the first day, or of other items altogether."""


def truth(days, hours):
    return len(np.unique(np.concatenate([*days, *hours])))


def test_one_tally_is_estimated_as_it_is():
    tally = tally_of(NESTED[0], 2, 1)
    assert estimate_union([tally]) == estimate(tally)
    assert estimate_union([tally], confidence=0.8) == estimate(tally, confidence=0.8)


@pytest.mark.parametrize("given", [NESTED, DISJOINT], ids=["nested", "disjoint"])
def test_hours_of_a_small_epsilon_take_nothing_from_days_of_a_larger_one(given):
    """Ten draws: the merge of most says nothing, and the union is as far off as its days are."""
    days, hours = given
    exact, far, covered = truth(*given), [], 0
    for seed in range(10):
        tallies = [tally_of(days, 2, seed), tally_of(hours, 0.5, 100 + seed)]
        found, of_days = estimate_union(tallies), estimate(tallies[0])
        assert 0 <= found.low <= found.value <= found.high
        assert found.low >= 0.75 * of_days.low, "no more than the limits cost that hold together"
        covered += found.low <= exact <= found.high
        far.append(found.value / exact - 1)
    assert covered >= 8, "of 95 %: fewer in 1 % of all sets of draws"
    assert np.sqrt(np.mean(np.square(far))) < 0.25


def test_where_the_merge_is_good_it_narrows_the_limits():
    """Epochs of epsilon 4 and 3: what both share is seen in their bits only."""
    tallies = [tally_of(slices(2, 6000, 0), 4, 3), tally_of(slices(2, 6000, 0, 3000), 3, 4)]
    found, merged = estimate_union(tallies), estimate(merge_tallies(tallies))
    assert abs(found.value - 9000) < 5 * merged.standard_error
    assert found.high - found.low < 1.3 * (merged.high - merged.low)
    assert sum(estimate(each).high for each in tallies) > 11_000


@pytest.mark.parametrize(("apart", "exact"), [(0, 8000), (8000, 16_000)], ids=["the same", "others"])
def test_with_little_noise_both_ends_are_met(apart, exact):
    """Epsilon 8 and 7: the union of the same items is the largest tally, that of others the sum."""
    tallies = [tally_of(slices(2, 8000, 0), 8, 5), tally_of(slices(2, 8000, 0, apart), 7, 6)]
    found = estimate_union(tallies)
    assert found.low <= exact <= found.high
    assert abs(found.value - exact) < 0.1 * exact
    assert found.high - found.low < 0.25 * exact


def test_the_order_of_tallies_changes_nothing():
    tallies = [tally_of(NESTED[0], 2, 1), tally_of(NESTED[1], 0.5, 2), tally_of(NESTED[1], 4, 3)]
    assert estimate_union(tallies) == estimate_union(tallies[::-1])
    assert estimate_union(tallies).confidence == 0.95


def test_a_tally_that_says_nothing_leaves_the_lower_limit():
    tallies = [tally_of(NESTED[0], 4, 1), tally_of(slices(40, 20, 20), 2**-6, 2, count_share=0)]
    found = estimate_union(tallies)
    assert (found.status, found.high) == (Status.SATURATED, math.inf)
    assert found.low > 0.8 * 12_000
    assert found.low <= found.value < 1.2 * 12_000


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(UsageError, match="no sketches"):
        estimate_union([])
    other = tally_of(NESTED[1], 1, 2, SketchShape(512, 16))
    with pytest.raises(IncompatibleError):
        estimate_union([tally_of(NESTED[0], 2, 1), other])
