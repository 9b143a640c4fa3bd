"""Estimates of sketches and tallies: laws, statuses, and the edges of what may come in."""

import dataclasses
import math
import warnings
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.occupancy import count_law

from sfm_stream.errors import UsageError
from sfm_stream.estimation.estimate import Estimate, Status, estimate, sum_disjoint
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

BIG, SMALL = SketchShape(4096, 24), SketchShape(64, 16)


def sketch_of(shape, k, ones):
    """A sketch with the given number of ones in each level, in the first buckets."""
    cells = np.arange(shape.buckets) < np.asarray(ones)[:, None]
    return SfmSketch(shape, k, "xxh64", np.packbits(cells, bitorder="little").tobytes())


def expected_ones(shape, k, n):
    q = k / GRID
    return np.rint(shape.buckets * (1 - q - (1 - 2 * q) * (1 - shape.rho) ** n)).astype(int)


def tally_of(shape, k, releases, n):
    """A tally in which all windows hold the same n items, with counts at the expected quantiles."""
    law = np.cumsum(count_law(releases, k / GRID), axis=1)
    counts = []
    for lit in np.rint(shape.buckets * (1 - (1 - shape.rho) ** n)).astype(int):
        halves = [(lit, law[releases]), (shape.buckets - lit, law[0])]
        counts.append(np.concatenate([np.searchsorted(c, (np.arange(m) + 0.5) / max(m, 1)) for m, c in halves]))
    return Tally(shape, k, "xxh64", releases, np.array(counts, np.int32))


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8, 16])
@pytest.mark.parametrize("n", [1000, 100_000, 10_000_000])
def test_expected_ones_give_back_n(epsilon, n):
    k = flip_threshold_of(epsilon)
    found = estimate(sketch_of(BIG, k, expected_ones(BIG, k, n)))
    # Rounding moves each level by half a one: a small fraction of the standard error.
    assert abs(found.value - n) < 0.25 * found.standard_error + 2
    assert found.status is Status.OK
    assert found.low < n < found.high
    assert found.unclamped == found.value


def test_pure_noise_is_empty_with_an_honest_upper_limit():
    k = flip_threshold_of(1)
    found = estimate(sketch_of(BIG, k, np.full(24, round(4096 * k / GRID))))
    floor = math.sqrt(3 * 4096) / (2 * math.sinh(0.5))
    assert found.status is Status.EMPTY
    assert found.low == 0
    assert found.standard_error == pytest.approx(floor, rel=0.01)
    assert found.high == pytest.approx(1.96 * floor, rel=0.05)


def test_fewer_ones_than_noise_stay_at_zero_with_a_positive_limit_and_a_negative_unclamped_value():
    k = flip_threshold_of(1)
    found = estimate(sketch_of(BIG, k, np.full(24, round(4096 * k / GRID) - 60)))
    assert (found.value, found.low, found.status) == (0, 0, Status.EMPTY)
    assert found.unclamped < -100
    assert found.high > 20


@pytest.mark.parametrize("shape", [BIG, SMALL, SketchShape(16, 2), SketchShape(16, 48)])
def test_all_ones_are_saturated(shape):
    found = estimate(sketch_of(shape, flip_threshold_of(8), np.full(shape.levels, shape.buckets)))
    assert found.status is Status.SATURATED
    assert math.isinf(found.high)
    assert 0 < found.low < found.value < math.inf


def alike(sketch, releases):
    """A tally of releases that all show the same, as no releases do."""
    return Tally(sketch.shape, sketch.flip_threshold, sketch.hash, releases, sketch.cells().astype(np.int32) * releases)


@pytest.mark.parametrize("releases", [0, 1, 5])
def test_half_flipped_says_nothing(releases):
    whole = sketch_of(SMALL, 1 << 63, np.full(16, 32))
    source = alike(whole, releases) if releases else whole
    found = estimate(source)
    assert found.status is Status.UNINFORMATIVE
    assert (found.low, found.high, found.standard_error) == (0, math.inf, math.inf)
    assert math.isfinite(found.value)


def test_more_noise_than_the_moment_can_bear_is_uninformative_but_has_a_value():
    found = estimate(tally_of(BIG, flip_threshold_of(1), 14, 100_000))
    assert found.status is Status.UNINFORMATIVE
    assert (found.low, found.high) == (0, math.inf)
    assert 0 < found.value < math.inf
    assert estimate(tally_of(BIG, flip_threshold_of(1), 8, 100_000)).status is Status.OK


def test_an_upper_end_that_says_nothing_is_none():
    """At 12 releases of epsilon 1 the moment is about to fade: most of its upper ends would be far in the millions."""
    rng, q = np.random.default_rng(1), flip_threshold_of(1) / GRID
    counts = [rng.binomial(12, q, (24, 4096)).astype(np.int32) for _ in range(20)]
    found = [estimate(Tally(BIG, flip_threshold_of(1), "xxh64", 12, count)) for count in counts]
    endless = [e for e in found if math.isinf(e.high)]
    assert len(endless) > 10
    assert {e.status for e in endless} <= {Status.UNINFORMATIVE, Status.SATURATED}
    # The noise floor: sqrt(a0^12 / (B / 3)) / (1 / B) items.
    floor = math.sqrt((1 + q * (1 - q) / (1 - 2 * q) ** 2) ** 12 * 3 * 4096)
    assert max(e.high for e in found if e not in endless) < 30 * floor


@pytest.mark.parametrize(("buckets", "levels"), [(16, 2), (16, 48), (64, 16), (65536, 2), (65536, 48)])
@pytest.mark.parametrize(
    "k", [1, flip_threshold_of(16), flip_threshold_of(1), flip_threshold_of(2**-10), (1 << 63) - 1]
)
@pytest.mark.parametrize("fill", [0.0, 0.3, 1.0])
def test_nothing_breaks_at_the_edges(buckets, levels, k, fill):
    shape = SketchShape(buckets, levels)
    whole = sketch_of(shape, k, np.full(levels, round(fill * buckets)))
    sources = [whole, alike(whole, 3)] if buckets < 1000 else [whole]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in sources:
            found = estimate(source)
            assert 0 <= found.low <= found.value <= found.high
            assert math.isfinite(found.value)
            assert math.isfinite(found.unclamped)
            assert found.standard_error > 0


@pytest.mark.parametrize("size", [(16, 2), (16, 48), (64, 16), (65536, 2)])
@pytest.mark.parametrize("epsilon", [2**-9, 1, 12, 16])
@pytest.mark.parametrize("count_epsilon", ["0.01", "1", "4"])
def test_nothing_breaks_at_the_edges_with_a_noisy_count(size, epsilon, count_epsilon):
    """At epsilon 12 in 16x2 the information below one item was negative once."""
    shape, k = SketchShape(*size), flip_threshold_of(epsilon)
    for fill, count in ((0, 0), (0, -99), (0.3, 10), (1, shape.cells), (1, 2**62)):
        whole = sketch_of(shape, k, np.full(shape.levels, round(fill * shape.buckets)))
        found = estimate(dataclasses.replace(whole, count=NoisyCount(count, Decimal(count_epsilon))))
        assert 0 <= found.low <= found.value <= found.high
        assert math.isfinite(found.value + found.unclamped)
        assert found.standard_error > 0


def random_ones(seed, shape, k, n):
    q = k / GRID
    return np.random.default_rng(seed).binomial(shape.buckets, 1 - q - (1 - 2 * q) * (1 - shape.rho) ** n)


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 6]), st.integers(0, 5000))
@settings(max_examples=40)
def test_one_release_makes_no_difference_between_sketch_and_tally(seed, epsilon, n):
    k = flip_threshold_of(epsilon)
    whole = sketch_of(SMALL, k, random_ones(seed, SMALL, k, n))
    assert estimate(Tally.of([whole])) == estimate(whole)


def test_nor_does_it_if_the_release_has_a_noisy_count():
    k = flip_threshold_of(2)
    whole = sketch_of(SMALL, k, random_ones(1, SMALL, k, 300))
    counted = dataclasses.replace(whole, count=NoisyCount(280, Decimal("0.2")))
    assert estimate(Tally.of([counted])) == estimate(counted) != estimate(whole)


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 8]), st.integers(0, 20_000), st.integers(0, 15))
@settings(max_examples=60)
def test_one_more_one_never_lowers_anything(seed, epsilon, n, level):
    k = flip_threshold_of(epsilon)
    ones = random_ones(seed, SMALL, k, n)
    more = np.minimum(ones + (np.arange(16) == level), 64)
    first, second = estimate(sketch_of(SMALL, k, ones)), estimate(sketch_of(SMALL, k, more))
    # The roots are interpolated; this is far below what an interpolation error could excuse in practice.
    slack = 1e-3 * first.standard_error
    assert second.value >= first.value - slack
    assert second.low >= first.low - slack
    assert second.high >= first.high - slack


@given(st.integers(0, 2**32), st.permutations(range(5)))
@settings(max_examples=15)
def test_order_of_releases_and_of_buckets_does_not_matter(seed, order):
    k = flip_threshold_of(2)
    cells = np.random.default_rng(seed).random((5, 16, 64)) < 0.4
    releases = [SfmSketch(SMALL, k, "h", np.packbits(c, bitorder="little").tobytes()) for c in cells]
    shuffled = [SfmSketch(SMALL, k, "h", np.packbits(cells[i][:, ::-1], bitorder="little").tobytes()) for i in order]
    assert estimate(Tally.of(releases)) == estimate(Tally.of(shuffled))


@pytest.mark.parametrize("releases", [1, 4])
def test_more_confidence_is_a_wider_interval(releases):
    source = tally_of(SMALL, flip_threshold_of(3), releases, 300)
    widths = [(e.low, e.high) for e in (estimate(source, confidence=c) for c in (0.68, 0.8, 0.95, 0.999))]
    assert all(wide[0] < narrow[0] and narrow[1] < wide[1] for narrow, wide in pairwise(widths))


@pytest.mark.parametrize("confidence", [0.67, 0.9991, math.nan, -1])
def test_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(UsageError, match="confidence"):
        estimate(tally_of(SMALL, flip_threshold_of(3), 1, 300), confidence=confidence)


@pytest.mark.parametrize("epsilon", [3, 4, 8])
def test_same_items_in_every_window_are_counted_once(epsilon):
    found = estimate(tally_of(BIG, flip_threshold_of(epsilon), 6, 50_000))
    assert found.status is Status.OK
    assert found.low < 50_000 < found.high
    assert found.value == pytest.approx(50_000, rel=0.02)


def part(unclamped, error, status=Status.OK, low=1.0, high=2.0):
    return Estimate(max(unclamped, 0.0), error, low, high, status, 0.95, unclamped)


def test_disjoint_parts_add_unclamped_and_errors_add_in_squares():
    found = sum_disjoint([part(1000, 30), part(500, 40), part(-20, 0.1, Status.EMPTY)])
    assert (found.value, found.unclamped, found.standard_error) == (1480, 1480, pytest.approx(50, rel=1e-5))
    assert found.low == pytest.approx(1480 - 1.959964 * 50, rel=1e-4)
    assert found.high == pytest.approx(1480 + 1.959964 * 50, rel=1e-4)
    assert found.status is Status.OK


def test_the_sum_of_empty_parts_is_empty():
    found = sum_disjoint([part(x, 10, Status.EMPTY) for x in (-12, 9, -3, 5)])
    assert (found.value, found.unclamped, found.low, found.status) == (0, -1, 0, Status.EMPTY)
    assert 20 < found.high < 2 * 20 * 1.96


def test_one_part_alone_keeps_value_and_error():
    found = estimate(tally_of(BIG, flip_threshold_of(2), 1, 5000))
    alone = sum_disjoint([found])
    assert (alone.value, alone.standard_error) == (found.value, found.standard_error)
    assert alone.low == pytest.approx(found.low, rel=0.01)


def test_a_part_without_bound_leaves_the_sum_without_bound():
    full = part(900, 30, Status.SATURATED, 800, math.inf)
    blind = part(900, math.inf, Status.UNINFORMATIVE, 0, math.inf)
    found = sum_disjoint([part(100, 3), full])
    assert (found.status, found.low, found.high) == (Status.SATURATED, 801, math.inf)
    assert sum_disjoint([full, blind]).status is Status.UNINFORMATIVE


def test_sums_need_parts_of_one_confidence():
    with pytest.raises(UsageError):
        sum_disjoint([])
    with pytest.raises(UsageError):
        sum_disjoint([part(1, 1), dataclasses.replace(part(1, 1), confidence=0.9)])


def test_a_raw_sketch_has_to_be_flipped_first():
    with pytest.raises(UsageError, match="estimate: a raw sketch is secret and has no public estimate: flip it first"):
        estimate(PcsaSketch(SketchShape(64, 8)).add(range(10)))
