"""Algebraic laws of sketches over generated contents."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfm_stream.errors import IncompatibleError
from sfm_stream.sketch.merge import merge, merged_threshold
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

SHAPES = st.builds(SketchShape, st.sampled_from([16, 64]), st.integers(2, 6))
ITEMS = st.lists(st.one_of(st.integers(-50, 50), st.text("abc", max_size=3)), max_size=30)
KS = st.integers(GRID // 3000, GRID // 2 - GRID // 40)
"""Flip probabilities of epsilon 0.1 .. 8."""


@st.composite
def families(draw, least=1, most=5, same_flip_threshold=False):
    """Sketches of one shape and hash, no two of them alike: a copy is refused."""
    shape, first = draw(SHAPES), draw(KS)
    bits = st.binary(min_size=shape.nbytes, max_size=shape.nbytes)
    contents = draw(st.lists(bits, min_size=least, max_size=most, unique=True))
    return [SfmSketch(shape, first if same_flip_threshold else draw(KS), "h", content) for content in contents]


def content(raw):
    return raw.bits.tobytes()


# Raw sketches


@given(SHAPES, ITEMS, st.randoms(use_true_random=False))
def test_a_raw_sketch_is_a_function_of_the_set(shape, items, random):
    shuffled = [*items, *items]
    random.shuffle(shuffled)
    cut = random.randint(0, len(shuffled))
    batched = PcsaSketch(shape).add(shuffled[:cut]).add(shuffled[cut:])
    assert content(batched) == content(PcsaSketch(shape).add(list(set(items))))


@given(SHAPES, ITEMS, ITEMS)
def test_or_is_the_sketch_of_the_union(shape, left, right):
    union = PcsaSketch(shape).add(left)
    union |= PcsaSketch(shape).add(right)
    assert (
        content(union) == content(PcsaSketch(shape).add(left + right)) == content(PcsaSketch(shape).add(right + left))
    )


@given(SHAPES, ITEMS)
def test_more_items_never_darken_a_cell(shape, items):
    some, all_of_them = PcsaSketch(shape).add(items[::2]), PcsaSketch(shape).add(items)
    assert not (some.bits & ~all_of_them.bits).any()
    assert some.popcount() <= all_of_them.popcount() <= len(set(items))


# Tallies


@given(families(least=2, same_flip_threshold=True), st.data())
def test_adding_tallies_equals_tallying_all(sketches, data):
    cut = data.draw(st.integers(1, len(sketches) - 1))
    assert Tally.of(sketches[:cut]) + Tally.of(sketches[cut:]) == Tally.of(sketches)


@given(families(least=3, most=3, same_flip_threshold=True))
def test_tallies_commute_and_associate(sketches):
    a, b, c = (Tally.of([sketch]) for sketch in sketches)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == Tally.of(reversed(sketches))


@given(families(same_flip_threshold=True))
def test_a_histogram_holds_every_cell_once(sketches):
    tally = Tally.of(sketches)
    histogram = tally.histogram()
    assert histogram.shape == (tally.shape.levels, len(sketches) + 1)
    assert (histogram.sum(axis=1) == tally.shape.buckets).all()
    ones = histogram @ np.arange(len(sketches) + 1)
    assert (ones == sum(sketch.ones() for sketch in sketches)).all()


@given(families(least=2, most=2))
def test_tallies_of_different_noise_do_not_mix(sketches):
    assume(sketches[0].flip_threshold != sketches[1].flip_threshold)
    with pytest.raises(IncompatibleError, match="flip probability k"):
        Tally.of(sketches)
    with pytest.raises(IncompatibleError, match="flip probability k"):
        Tally.of(sketches[:1]) + Tally.of(sketches[1:])


# Merges


@given(families(most=4))
def test_merge_is_a_function_of_the_multiset(sketches):
    results = {merge(order) for order in permutations(sketches)}
    assert len(results) == 1
    (merged,) = results
    assert merged.flip_threshold == merged_threshold([sketch.flip_threshold for sketch in sketches])
    assert (merged.shape, merged.hash) == (sketches[0].shape, "h")


@given(families(least=2))
def test_a_merge_is_noisier_than_its_inputs_and_lights_no_dark_cell(sketches):
    merged = merge(sketches)
    assert max(sketch.flip_threshold for sketch in sketches) <= merged.flip_threshold <= GRID // 2
    seen = np.any([sketch.cells() for sketch in sketches], axis=0)
    assert not (merged.cells() & ~seen).any()


@given(st.lists(KS, min_size=2, max_size=6), st.data())
def test_the_noise_of_a_merge_in_steps_is_that_of_one_step(ks, data):
    cut = data.draw(st.integers(1, len(ks) - 1))
    stepwise = merged_threshold([merged_threshold(ks[:cut]), merged_threshold(ks[cut:])])
    assert 0 <= stepwise - merged_threshold(ks) <= 8  # each step rounds up once on the grid
