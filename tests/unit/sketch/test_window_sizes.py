"""What a tally keeps of each release's own window: the same however it was added up, and checked against its counts."""

import dataclasses
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.errors import UsageError
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.sketch.window_sizes import WindowSizes

SHAPE, K = SketchShape(16, 3), GRID // 5


def sketches(count, seed=0):
    rng = np.random.default_rng(seed)
    noisy = [None, NoisyCount(int(rng.integers(-5, 50)), Decimal("0.1")), NoisyCount(7, Decimal("0.2"))]
    packed = [np.packbits(rng.random(SHAPE.cells) < 0.5, bitorder="little").tobytes() for _ in range(count)]
    return [SfmSketch(SHAPE, K, "xxh64", bits, noisy[i % 3]) for i, bits in enumerate(packed)]


def test_it_holds_the_ones_of_each_level_and_the_count_of_each_release():
    parts = sketches(6)
    rows = [([int(n) for n in part.cells().sum(axis=1)], part.count) for part in parts]
    found = Tally.of(parts).sizes
    assert found.ones.dtype == np.int32
    assert found.ones.tolist() == sorted(row for row, _ in rows)
    assert all((row, count) in rows for row, count in zip(found.ones.tolist(), found.counts, strict=True))
    with pytest.raises(ValueError, match="read-only"):
        found.ones[0, 0] = 0


@given(st.permutations(range(9)), st.integers(1, 8), st.integers(0, 99))
def test_order_and_grouping_do_not_matter(order, cut, seed):
    parts = sketches(9, seed)
    shuffled = [parts[i] for i in order]
    expected = Tally.of(parts).sizes
    assert expected == WindowSizes.of(parts)
    assert (Tally.of(shuffled[:cut]) + Tally.of(shuffled[cut:])).sizes == expected
    single, other = TallySum.like(parts[0]), TallySum.like(parts[0])
    for part in shuffled[:cut]:
        single.add(part)
    other.add_tally(Tally.of(shuffled[cut:]))
    single.add_sum(other)
    single.add_sum(TallySum.like(parts[0]))
    assert single.tally().sizes == expected
    assert len(other.tally().sizes.counts) == 9 - cut, "the sum that was added is as it was"


def test_what_was_added_without_sizes_leaves_none():
    whole = Tally.of(sketches(3))
    without = dataclasses.replace(whole, sizes=None, contents=frozenset())
    assert without == whole
    assert without.digest() == whole.digest()
    for first in ([without], [Tally.of(sketches(2, 5)), without]):
        total = TallySum.like(whole)
        for tally in first:
            total.add_tally(tally)
        total.add(sketches(1, 9)[0])
        other = TallySum.like(whole)
        other.add_sum(total)
        assert total.tally().sizes is None
        assert other.tally().sizes is None
    assert (without + Tally.of(sketches(2, 5))).sizes is None
    assert (Tally.of(sketches(2, 5)) + without).sizes is None


def test_equality_sees_ones_and_counts():
    ones = np.array([[1, 2, 3], [1, 2, 3]])
    one, two = NoisyCount(1, Decimal("0.1")), NoisyCount(2, Decimal("0.1"))
    assert WindowSizes(ones, (one, None)) == WindowSizes(ones, (None, one))
    others = [WindowSizes(ones, (two, None)), WindowSizes(ones, (None, None)), WindowSizes(ones + 1, (one, None))]
    assert all(other != WindowSizes(ones, (one, None)) for other in others)
    assert others[0] != 1


@pytest.mark.parametrize(
    ("ones", "counts", "problem"),
    [
        (np.zeros((2, 3), np.int32), (None,), "do not fit 1 counts"),
        (np.zeros(3, np.int32), (None, None, None), "do not fit"),
        (np.full((1, 3), -1, np.int32), (None,), "negative"),
    ],
)
def test_ones_and_counts_must_fit(ones, counts, problem):
    with pytest.raises(UsageError, match=f"sizes: .*{problem}"):
        WindowSizes(ones, counts)


@pytest.mark.parametrize(
    ("ones", "problem"),
    [
        ([[1, 0, 0]], "do not fit 2"),
        ([[1, 0], [0, 0]], "do not fit 2"),
        ([[1, 0, 0], [0, 0, 0]], "are not those that it counts"),
        ([[17, 0, 0], [0, 0, 0]], "more ones than buckets"),
    ],
)
def test_a_tally_takes_only_sizes_of_its_own(ones, problem):
    counts = np.zeros((3, 16), np.int32)
    counts[0, :2] = 1
    with pytest.raises(UsageError, match=f"tally: sizes.*{problem}"):
        Tally(SHAPE, K, "h", 2, counts, sizes=WindowSizes(np.array(ones), (None,) * len(ones)))
    Tally(SHAPE, K, "h", 2, counts, sizes=WindowSizes(np.array([[2, 0, 0], [0, 0, 0]]), (None, None)))


@pytest.mark.parametrize("buckets", [16, 128, 256, 32768, 65536])
@pytest.mark.parametrize("filled", [b"\x00", b"\xff"], ids=["no ones", "all ones"])
def test_a_sum_keeps_every_number_of_ones_that_there_is(buckets, filled):
    shape = SketchShape(buckets, 2)
    counts = [None, NoisyCount(-(2**63), Decimal(1)), NoisyCount(2**63 - 1, Decimal("0.25")), NoisyCount(0, Decimal(1))]
    parts = [SfmSketch(shape, K, "h", filled * shape.nbytes, count) for count in counts]
    total = TallySum(shape, K, "h")
    for part in parts:
        total.add(part)
    assert total.tally().sizes == WindowSizes.of(parts)
