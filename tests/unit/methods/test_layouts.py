"""Layouts against sets and decimals: where items fall, how likely each cell is, and what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest
from reference import bitmap_oracle as oracle

from sfm_stream.errors import IncompatibleError, ShapeError, UsageError
from sfm_stream.estimation.estimate import estimate
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.methods.layouts import BloomFilter, LinearCounting, LiquidLegions
from sfm_stream.methods.mechanisms import symmetric
from sfm_stream.methods.randomized_response import privatize
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.hashing import keyed_blake2b
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import PcsaSketch, RawBitmap
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape

LAYOUTS = [
    LinearCounting(64),
    LinearCounting(201),
    BloomFilter(777, 3),
    LiquidLegions(512, 8.0),
    LiquidLegions(511, 15.5),
    LiquidLegions(64, 1.5),
    SketchShape(16, 5),
]
LEGIONS = [LiquidLegions(64, 1.0), LiquidLegions(512, 8.0), LiquidLegions(1023, 20.0), LiquidLegions(1 << 16, 20.0)]
of_every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def cells_of(layout, numbers):
    """What the oracle says is lit."""
    if isinstance(layout, LiquidLegions):
        return oracle.legion_cells(numbers, oracle.legion_borders(layout.cells, layout.decay))
    return oracle.uniform_cells(numbers, layout.cells, layout.throws)


def lit(raw):
    return set(np.flatnonzero(np.unpackbits(raw.bits, bitorder="little")).tolist())


# Where items fall


@pytest.mark.parametrize("layout", LAYOUTS[:-1], ids=str)
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_a_bitmap_is_the_set_of_cells_of_its_items(layout, count):
    raw = RawBitmap(layout).add(range(count))
    assert lit(raw) == cells_of(layout, range(count))
    assert raw.popcount() == len(lit(raw)) <= layout.throws * count
    assert lit(raw.add(range(count))) == cells_of(layout, range(count)), "a repetition changes nothing"


@pytest.mark.parametrize("layout", LAYOUTS[:-1], ids=str)
def test_or_is_the_bitmap_of_the_union(layout):
    first, second = RawBitmap(layout).add(range(100)), RawBitmap(layout).add(range(60, 200))
    first |= second
    assert lit(first) == cells_of(layout, range(200))
    assert lit(second) == cells_of(layout, range(60, 200))


@pytest.mark.parametrize("cells", [64, 1000, 4097, (1 << 22) - 1])
def test_each_cell_of_linear_counting_has_its_share_of_the_hashes(cells):
    """The least of the top halves of a hash that lead to a cell, and the one before it: all shares differ by one."""
    at = np.arange(cells, dtype=np.uint64) if cells < 5000 else np.arange(cells - 5000, cells, dtype=np.uint64)
    least = (at * np.uint64(1 << 32) + np.uint64(cells - 1)) // np.uint64(cells)
    layout, low_bits = LinearCounting(cells), np.uint64((1 << 32) - 1)
    assert (layout.cells_of(least << np.uint64(32)) == at).all()
    assert (layout.cells_of(((least[1:] - np.uint64(1)) << np.uint64(32)) | low_bits) == at[:-1]).all()
    assert layout.cells_of(np.array([(1 << 64) - 1], np.uint64)).tolist() == [cells - 1]
    shares = np.diff(least.astype(np.int64))
    assert np.abs(shares * layout.rho[0] * cells / 2**32 * cells - 1).max() <= 2**-10


@pytest.mark.parametrize("layout", LEGIONS, ids=str)
def test_each_cell_of_liquid_legions_has_its_share_of_the_hashes(layout):
    """A uniform number a thousandth of a cell inside either border of its interval leads to the cell.

    Of the largest layout the likeliest cells are as many as the oracle has time for, and the unlikeliest.
    """
    borders = [0.0, *map(float, oracle.legion_borders(layout.cells, layout.decay))]
    chosen = np.unique(np.r_[0 : min(layout.cells, 3000), max(layout.cells - 3000, 0) : layout.cells])
    low, high = np.array(borders)[chosen], np.array(borders)[chosen + 1]
    for inside in (0.001, 0.5, 0.999):
        uniform = low + inside * (high - low)
        hashes = np.floor(uniform * 2.0**53).astype(np.uint64) << np.uint64(11)
        assert (layout.cells_of(hashes) == chosen).all()
    assert layout.cells_of(np.array([0, (1 << 64) - 1], np.uint64)).tolist() == [0, layout.cells - 1]


# How likely they are


@of_every_layout
def test_probabilities_are_those_of_a_throw(layout):
    assert layout.sizes @ layout.rho == pytest.approx(1.0, rel=1e-12)
    assert layout.sizes.sum() == layout.cells
    assert layout.nbytes == math.ceil(layout.cells / 8)
    assert float(layout.rho.max()) <= 1 / 32
    for values in (layout.sizes, layout.rho):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0


@pytest.mark.parametrize("layout", LEGIONS[:3], ids=str)
def test_probabilities_of_liquid_legions_fall_exponentially(layout):
    borders = np.array([0, *oracle.legion_borders(layout.cells, layout.decay)])
    assert layout.rho == pytest.approx(np.diff(borders).astype(float), rel=1e-9)
    assert layout.rho[1:] / layout.rho[:-1] == pytest.approx(math.exp(-layout.decay / layout.cells), rel=1e-12)


@of_every_layout
def test_at_the_capacity_half_an_empty_cell_is_expected(layout):
    assert oracle.expected_empty(layout.sizes, layout.rho, layout.capacity) == pytest.approx(0.5, rel=0.02)


@of_every_layout
@pytest.mark.parametrize("n", [0, 1, 2, 30, 300, 2000])
def test_the_variance_is_the_double_sum_over_cells(layout, n):
    """The series of rank one, against all pairs of cells; the likeliest cell allowed has 1/32."""
    rng = np.random.default_rng(1)
    groups = len(layout.sizes)
    weights, cell_variance = -rng.uniform(0.5, 2, groups), rng.uniform(0.01, 0.2, groups)
    found = Occupancy.at(layout, np.array([float(n)])).variance_of(weights[None, :], cell_variance[None, :])
    each = [np.repeat(values, layout.sizes.astype(int)).tolist() for values in (weights, cell_variance, layout.rho)]
    assert found == pytest.approx(oracle.variance_of_sum(*each, n), rel=1e-5)


# As public bitmaps


@of_every_layout
def test_ones_are_counted_by_group(layout):
    rng = np.random.default_rng(2)
    bits = rng.random(layout.cells) < rng.random()
    found = NoisyBitmap(layout, "xxh64", NoisyBits.of_array(symmetric(1), bits))
    column, wanted = bits.tolist(), []
    for size in layout.sizes.astype(int).tolist():
        wanted.append(sum(column[:size]))
        column = column[size:]
    assert found.ones().tolist() == wanted


def test_a_sketch_as_one_bitmap_among_others_has_the_same_estimate():
    sketch = flip(PcsaSketch(SketchShape(256, 12)).add(range(3000)), 2)
    bitmap = NoisyBitmap.of(sketch)
    assert bitmap.ones().tolist() == sketch.ones().tolist()
    for mine, theirs in ((estimate(bitmap), estimate(sketch)), (estimate(bitmap, confidence=0.8), estimate(sketch))):
        assert (mine.value, mine.standard_error) == pytest.approx((theirs.value, theirs.standard_error), rel=1e-9)


@pytest.mark.parametrize("k", [1, 1 << 39, 1 << 41])
def test_so_has_one_of_almost_no_noise(k):
    """A float cannot tell 1 - 2^-64 from 1."""
    sketch = SfmSketch(SketchShape(64, 8), k, "xxh64", b"\xff" + bytes(63))
    assert estimate(NoisyBitmap.of(sketch)).value == pytest.approx(estimate(sketch).value, rel=1e-9)
    assert estimate(sketch).value > 8


def test_throws_of_a_bloom_filter_are_divided_among_items():
    bits = NoisyBits.of_array(symmetric(4), np.arange(777) % 3 == 0)
    one, three = (estimate(NoisyBitmap(BloomFilter(777, hashes), "xxh64", bits)) for hashes in (1, 3))
    for name in ("value", "unclamped", "standard_error", "low", "high"):
        assert getattr(one, name) == pytest.approx(3 * getattr(three, name))
    linear = estimate(NoisyBitmap(LinearCounting(777), "xxh64", bits))
    assert linear == one


# What is refused


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearCounting(63),
        lambda: LinearCounting((1 << 22) + 1),
        lambda: LinearCounting(64.0),
        lambda: LinearCounting(True),
        lambda: BloomFilter(63, 3),
        lambda: BloomFilter(1024, 0),
        lambda: BloomFilter(1024, 17),
        lambda: BloomFilter(1024, 2.0),
        lambda: LiquidLegions(63, 1.0),
        lambda: LiquidLegions((1 << 16) + 1, 8.0),
        lambda: LiquidLegions(4096, 0.99),
        lambda: LiquidLegions(4096, 20.5),
        lambda: LiquidLegions(4096, math.nan),
        lambda: LiquidLegions(4096, "8"),
        lambda: LiquidLegions(4096, True),
        lambda: LiquidLegions(64, 2.1),
    ],
)
def test_layouts_out_of_range_are_refused(make):
    with pytest.raises(ShapeError):
        make()


def test_bounds_are_within_the_range():
    for make in (
        lambda: LinearCounting(1 << 22),
        lambda: BloomFilter(64, 16),
        lambda: LiquidLegions(64, 1.5),
        lambda: LiquidLegions(1 << 16, 20),
    ):
        assert make().cells >= 64


def test_layouts_are_values():
    assert LinearCounting(64) == LinearCounting(64)
    assert hash(LiquidLegions(512, 8)) == hash(LiquidLegions(512, 8.0))
    assert LinearCounting(64) != BloomFilter(64, 1)
    assert BloomFilter(64, 1) != BloomFilter(64, 2)


def test_raw_bitmaps_that_differ_are_not_combined():
    mine = RawBitmap(LinearCounting(64))
    for other in (
        RawBitmap(LinearCounting(65)),
        RawBitmap(BloomFilter(64, 1)),
        RawBitmap(LinearCounting(64), keyed_blake2b(bytes(16))),
    ):
        with pytest.raises(IncompatibleError):
            mine |= other
    with pytest.raises(TypeError):
        mine |= privatize(mine, 1)


@of_every_layout
def test_raw_bitmaps_are_secret(layout):
    raw = RawBitmap(layout).add(range(10))
    assert "withheld" in repr(raw)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, hash, lambda raw: raw == raw):
        with pytest.raises(TypeError):
            attempt(raw)
    with pytest.raises(ValueError, match="read-only"):
        raw.bits[0] = 0


def test_bits_of_another_length_are_refused():
    with pytest.raises(UsageError, match="bits: 65 where"):
        NoisyBitmap(LinearCounting(64), "xxh64", NoisyBits.of_array(symmetric(1), np.zeros(65, np.bool_)))
