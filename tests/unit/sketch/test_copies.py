"""A release and its copy have one noise: whatever takes noise for independent has to refuse the two."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfm_stream import PcsaSketch, SfmSketch, SketchShape, estimate, estimate_pair, flip
from sfm_stream.errors import UsageError
from sfm_stream.methods.logic import bit_and, bit_or, bit_xor, or_by_xor
from sfm_stream.methods.mechanisms import pagh_stausholm, symmetric, xor
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.merge import merge, merge_tallies
from sfm_stream.sketch.noisy_bits import NoisyBits
from sfm_stream.sketch.sfm import GRID
from sfm_stream.sketch.tally import Tally
from sfm_stream.wire import presto

SHAPE = SketchShape(256, 16)
MONDAY, TUESDAY = (flip(PcsaSketch(SHAPE).add(range(day, day + 500)), epsilon=1) for day in (0, 250))
BITS = [NoisyBits.of(sketch) for sketch in (MONDAY, TUESDAY)]
WHAT = {
    "tally": lambda a, b: Tally.of([a, TUESDAY, b]),
    "merge": lambda a, b: merge([a, TUESDAY, b]),
    "pair": estimate_pair,
    "or": lambda a, b: bit_or([NoisyBits.of(a), BITS[1], NoisyBits.of(b)]),
    "and": lambda a, b: bit_and([NoisyBits.of(a), NoisyBits.of(b)]),
    "xor": lambda a, b: bit_xor(NoisyBits.of(a), NoisyBits.of(b)),
}


@pytest.mark.parametrize("what", WHAT)
def test_a_copy_is_refused_and_another_draw_is_not(what):
    again = flip(PcsaSketch(SHAPE).add(range(500)), epsilon=1)
    WHAT[what](MONDAY, again)
    read_again = SfmSketch(SHAPE, MONDAY.flip_threshold, MONDAY.hash, bytes(bytearray(MONDAY.bits)))
    with pytest.raises(UsageError, match="one release is there twice, with one and the same noise"):
        WHAT[what](MONDAY, read_again)


@pytest.mark.parametrize("what", [name for name in WHAT if name != "tally"])
def test_a_copy_that_came_back_from_presto_is_refused(what):
    """Its flip probability is rounded to a float64, so its k is another one."""
    back = presto.decode(presto.encode(MONDAY))
    assert back.flip_threshold != MONDAY.flip_threshold
    assert back.bits == MONDAY.bits
    for pair in ((MONDAY, back), (back, MONDAY)):
        with pytest.raises(UsageError, match="there twice"):
            WHAT[what](*pair)


def read_again(tally):
    """The same tally as a reader has it: nothing is known of its releases."""
    return Tally(tally.shape, tally.flip_threshold, tally.hash, tally.releases, tally.counts.copy())


def test_tallies_that_share_a_release_are_not_added():
    """As far as it can be known: of two that were read, only if they are the same."""
    third = flip(PcsaSketch(SHAPE).add(range(500)), epsilon=1)
    one, two, both = Tally.of([MONDAY]), Tally.of([TUESDAY, third]), Tally.of([MONDAY, TUESDAY])
    assert (one + two).releases == 3
    assert one + two == two + one == Tally.of([MONDAY, TUESDAY, third])
    wrong = [(one, one), (both, one), (one + two, both), (one + two, one)]
    wrong += [(read_again(both), both), (read_again(one), read_again(one))]
    for left, right in wrong:
        with pytest.raises(UsageError, match="tally: one release is there twice"):
            left + right
    assert (read_again(both) + read_again(one)).releases == 3, "cannot be known"


def test_merged_tallies_of_two_k_share_no_release_either():
    back = presto.decode(presto.encode(MONDAY))
    with pytest.raises(UsageError, match="merge: one release is there twice"):
        merge_tallies([Tally.of([MONDAY, TUESDAY]), Tally.of([back])])
    with pytest.raises(UsageError, match="merge: one release is there twice"):
        merge_tallies([read_again(Tally.of([MONDAY])), read_again(Tally.of([back]))])


def test_sums_of_independent_draws_agree_no_more_often_than_single_ones():
    """The bound of require_disjoint, in rationals: the squares of a distribution shrink when it is convolved."""
    for share in (Fraction(1, 100), Fraction(1, 4), Fraction(1, 2)):
        single = total = [1 - share, share]
        for _ in range(6):
            longer = [a * (1 - share) + b * share for a, b in zip([*total, 0], [0, *total], strict=True)]
            assert sum(p * p for p in longer) <= sum(p * p for p in total) <= sum(p * p for p in single)
            total = longer


def test_a_merge_and_the_same_merge_are_copies():
    with pytest.raises(UsageError, match="there twice"):
        merge([merge([MONDAY, TUESDAY]), merge([TUESDAY, MONDAY])])


def test_xor_merges_refuse_copies_too():
    raw = np.zeros(4096, bool)
    bits = NoisyBits.of_array(xor(2), raw)
    with pytest.raises(UsageError, match="there twice"):
        or_by_xor([bits, bits])


def test_what_independent_noise_may_show_too_is_taken():
    """Small, or nearly without noise: two draws of one set often agree there."""
    small = flip(PcsaSketch(SketchShape(16, 2)).add(range(5)), epsilon=1)
    faint = SfmSketch(SHAPE, 1 << 20, "xxh64", PcsaSketch(SHAPE).add(range(500)).bits.tobytes())
    for sketch in (small, faint):
        assert merge([sketch, sketch]).flip_threshold >= sketch.flip_threshold
        assert (Tally.of([sketch]) + Tally.of([sketch])).releases == 2
    assert estimate(Tally.of([faint, faint])).value == pytest.approx(500, rel=0.2)


@pytest.mark.parametrize("kind", [symmetric, xor, pagh_stausholm])
@pytest.mark.parametrize("epsilon", [0.25, 1, 4, 8])
def test_copies_are_told_where_chance_is_below_2_to_the_minus_64(kind, epsilon):
    """The chance in rationals, for the set of bits under which two draws agree most often."""
    mechanism = kind(epsilon)
    assert isinstance(mechanism, Mechanism)
    shares = [Fraction(k, GRID) for k in (mechanism.p_threshold, mechanism.q_threshold)]
    agree = max(share**2 + (1 - share) ** 2 for share in shares)
    least = next(n for n in range(1, 10**6) if float(agree) ** n <= 2.0**-64)
    assert not mechanism.tells_copies(least - 1)
    assert mechanism.tells_copies(least)
    assert least == math.ceil(64 * math.log(2) / -math.log(float(agree)))
