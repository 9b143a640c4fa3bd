"""TallySum: whatever the order and grouping, it is the tally of all releases; and what merge_tally makes of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.sketch.merge import merge, merge_tally
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_sum import TallySum

SHAPE = SketchShape(16, 3)
K = GRID // 5


def sketches(count, seed=0, ones=0.5, shape=SHAPE):
    rng = np.random.default_rng(seed)
    rows = rng.random((count, shape.cells)) < ones
    return [SfmSketch(shape, K, "xxh64", np.packbits(row, bitorder="little").tobytes()) for row in rows]


def empty(shape=SHAPE):
    return TallySum(shape, K, "xxh64")


def sum_of(parts):
    total = empty()
    for part in parts:
        total.add(part)
    return total


@pytest.mark.parametrize("ones", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("releases", [1, 2, 3, 4, 7, 8, 9, 60, 255, 256, 257, 300])
def test_it_is_the_tally_of_its_releases(releases, ones):
    parts = sketches(releases, seed=releases, ones=ones)
    assert sum_of(parts).tally() == Tally.of(parts)


def test_it_is_the_tally_after_every_single_release():
    parts, total = sketches(300, ones=0.7), empty()
    counts = np.zeros(SHAPE.cells, np.int32)
    for number, part in enumerate(parts, start=1):
        total.add(part)
        counts += np.unpackbits(np.frombuffer(part.bits, np.uint8), bitorder="little")
        assert total.releases == number
        assert total.tally() == Tally(SHAPE, K, "xxh64", number, counts.reshape(3, 16).copy())


@pytest.mark.parametrize("ones", [0.0, 0.3, 1.0])
def test_it_holds_no_more_than_the_digits_of_its_count(ones):
    total = empty()
    assert total.nbytes == 0
    for part in sketches(300, ones=ones):
        total.add(part)
        assert total.nbytes <= total.releases.bit_length() * SHAPE.nbytes
    assert total.nbytes == {0.0: 0, 0.3: 7, 1.0: 9}[ones] * SHAPE.nbytes


@st.composite
def groupings(draw):
    """Releases, in an arbitrary order, cut into groups that are added as sketches, as tallies or as sums."""
    parts = draw(st.permutations(sketches(draw(st.integers(1, 40)), draw(st.integers(0, 99)), draw(st.floats(0, 1)))))
    cuts = sorted(draw(st.sets(st.integers(1, len(parts)))) | {0, len(parts)})
    groups = [parts[low:high] for low, high in pairwise(cuts)]
    return parts, [(group, draw(st.sampled_from(["sketches", "tally", "sum"]))) for group in groups]


@given(groupings())
def test_order_and_grouping_do_not_matter(grouping):
    parts, groups = grouping
    total = empty()
    added = Tally.of(groups[0][0])
    for number, (group, how) in enumerate(groups):
        if how == "tally":
            total.add_tally(Tally.of(group))
        elif how == "sum":
            total.add_sum(sum_of(group))
        else:
            for part in group:
                total.add(part)
        added = added + Tally.of(group) if number else added
    assert total.tally() == Tally.of(parts) == added
    assert total.releases == len(parts)
    assert total.nbytes <= total.releases.bit_length() * SHAPE.nbytes


def test_large_counts_of_other_tallies_keep_every_digit():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 1 << 30, (3, 16), dtype=np.int32)
    total = empty()
    for _ in range(2):
        total.add_tally(Tally(SHAPE, K, "xxh64", (1 << 30) - 1, counts))
    assert (total.tally().counts == 2 * counts).all()
    assert total.releases == (1 << 31) - 2


def test_adding_changes_nothing_but_the_sum_itself():
    one, two = sum_of(sketches(5, 1)), sum_of(sketches(9, 2))
    before, frozen = two.tally(), one.tally()
    one.add_sum(two)
    one.add_sum(two)
    one.add(sketches(1)[0])
    assert two.tally() == before
    assert frozen == Tally.of(sketches(5, 1)), "a tally that was given out does not move"
    copy = empty()
    copy.add_sum(two)
    copy.add_sum(one)
    assert two.tally() == before, "nor does a sum share its planes with the one it was added to"


def test_like_takes_kind_but_no_content():
    for source in (sketches(1)[0], Tally.of(sketches(3)), sum_of(sketches(3))):
        other = TallySum.like(source)
        assert (other.shape, other.flip_threshold, other.hash, other.releases) == (SHAPE, K, "xxh64", 0)


def test_a_shape_that_is_no_multiple_of_words():
    shape = SketchShape(16, 5)
    parts = sketches(11, shape=shape)
    total = empty(shape)
    for part in parts:
        total.add(part)
    assert total.tally() == Tally.of(parts)


# merge_tally


@pytest.mark.parametrize("ones", [0.0, 0.4, 1.0])
def test_the_merge_of_one_release_is_the_release(ones):
    (only,) = sketches(1, ones=ones)
    assert merge_tally(Tally.of([only])) == only == merge_tally(sum_of([only]).tally())


@given(st.integers(2, 30), st.integers(0, 999), st.randoms(use_true_random=False))
def test_the_merge_asks_for_neither_order_nor_grouping(count, seed, random):
    parts = sketches(count, seed, ones=0.3)
    once = merge_tally(Tally.of(parts))
    shuffled = random.sample(parts, count)
    cut = random.randrange(1, count)
    grouped = sum_of(shuffled[:cut])
    grouped.add_tally(Tally.of(shuffled[cut:]))
    assert merge_tally(grouped.tally()) == merge_tally(Tally.of(shuffled)) == once
    assert merge(shuffled) == merge(parts) == once
    assert once.flip_threshold >= K


def test_another_release_gives_other_coins():
    parts = sketches(6, ones=0.5)
    assert merge_tally(Tally.of(parts)) != merge_tally(Tally.of(parts[:5]))
    assert merge_tally(Tally.of(parts)).bits != merge_tally(Tally.of([*parts[:5], sketches(1, seed=77)[0]])).bits


@pytest.mark.parametrize("buckets", [16, 64, 1024])
@pytest.mark.parametrize("releases", [1, 2, 3, 4, 7, 10, 31, 63, 64, 70])
def test_a_histogram_is_that_of_the_tally(buckets: int, releases: int) -> None:
    shape = SketchShape(buckets, 5)
    rng = np.random.default_rng(releases)
    total = TallySum(shape, GRID // 4, "xxh64")
    for number in range(releases):
        ones = rng.random(shape.cells) < number / releases
        total.add(SfmSketch(shape, GRID // 4, "xxh64", np.packbits(ones, bitorder="little").tobytes()))
    found = total.histogram()
    assert np.array_equal(found.cells, total.tally().histogram())
    assert (found.shape, found.flip_threshold, found.hash, found.releases) == (shape, GRID // 4, "xxh64", releases)
    assert found.sizes == total.tally().sizes


def test_a_histogram_where_no_cell_has_all_ones() -> None:
    """Planes that no count needs are not there."""
    total = TallySum(SHAPE, GRID // 4, "xxh64")
    for _ in range(9):
        total.add(SfmSketch(SHAPE, GRID // 4, "xxh64", bytes(SHAPE.nbytes)))
    assert np.array_equal(total.histogram().cells, total.tally().histogram())
    assert total.histogram().cells[:, 0].sum() == SHAPE.cells
