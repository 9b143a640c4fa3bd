"""A flip with a noisy count: what it costs in exact numbers, whose coins it takes, and what it refuses."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from reference.exact_exp import exp_bounds
from reference.laplace_oracle import noise_law
from support.coin_tapes import explore

from sfm_stream.errors import EpsilonError, FormatError, UsageError
from sfm_stream.estimation.estimate import estimate
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.privacy.discrete_laplace import DiscreteLaplace
from sfm_stream.privacy.epsilon import flip_threshold_of, parts_of
from sfm_stream.privacy.flip import flip, flip_bits, noisy_count
from sfm_stream.sketch.bernoulli import Word
from sfm_stream.sketch.merge import merge
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.wire.codec import decode, encode
from sfm_stream.wire.keys import encode_key
from sfm_stream.wire.records import Release

SHAPE = SketchShape(64, 8)
CELLS, WORD, EPSILON = 4, Word(3, 3), Decimal(8)
REACH = 12


def joint_laws(count_of):
    """For each bitmap of 4 cells, the exact probability of each (flipped bits, noisy count). count_of: of a bitmap."""
    threshold = flip_threshold_of(EPSILON, WORD)
    noise = DiscreteLaplace.of(EPSILON, WORD)
    law_of_noise = noise_law(noise.low, noise.more, 1 << WORD.bits, REACH + CELLS)
    laws = {}
    for x in range(1 << CELLS):
        bits, _ = explore(flip_bits, x, threshold, WORD, CELLS)
        laws[x] = {
            (output, count): chance * law_of_noise.get(count - count_of(x), 0)
            for output, chance in bits.items()
            for count in range(-REACH, REACH + 1)
        }
    return threshold, laws


def assert_joint_ratio(threshold, laws):
    """Neighbours differ in one cell: ratio of any (bits, count) at most (2^b - t) / t times e^epsilon_count."""
    low, _ = exp_bounds(EPSILON)
    bound = Fraction((1 << WORD.bits) - threshold, threshold) * low
    for x, cell in product(laws, range(CELLS)):
        for output, mine in laws[x].items():
            theirs = laws[x ^ 1 << cell][output]
            assert mine <= bound * theirs, "bits and count tell neighbours apart by more than they cost"


def test_bits_and_count_together_cost_the_sum_of_their_epsilons():
    assert_joint_ratio(*joint_laws(int.bit_count))


def test_a_count_that_an_item_changes_twice_is_caught():
    with pytest.raises(AssertionError, match="apart"):
        assert_joint_ratio(*joint_laws(lambda x: 2 * x.bit_count()))


class Recorded:
    """System coins that are kept."""

    def __init__(self):
        self.served = []

    def digits(self, count):
        drawn = SYSTEM_COINS.digits(count)
        self.served.append(drawn)
        return drawn


class Replayed:
    def __init__(self, served):
        self.served = list(served)

    def digits(self, count):
        drawn = self.served.pop(0)
        assert len(drawn) == count
        return drawn


def test_the_count_has_coins_of_its_own_behind_those_of_the_bits():
    """With the coins of a flip: the bits are those of the paper's flip, and the count takes what is left, all of it."""
    raw, coins = PcsaSketch(SHAPE).add(range(100)), Recorded()
    release = flip(raw, 2, coins, count_share=Decimal("0.25"))
    again = Replayed(coins.served)
    bits = flip_bits(raw.bits, flip_threshold_of(Decimal("1.5")), again)
    assert bits.tobytes() == release.bits
    assert again.served, "the count took no coins of its own"
    assert noisy_count(raw.bits, DiscreteLaplace.of(Decimal("0.5")), again) == release.count.value
    assert again.served == []


def test_a_share_of_0_is_the_release_of_the_paper_byte_for_byte():
    raw, coins = PcsaSketch(SHAPE).add(range(100)), Recorded()
    release = flip(raw, 2, coins)
    assert release.count is None
    assert flip(raw, 2, Replayed(coins.served), count_share=0) == release


@pytest.mark.parametrize(
    ("epsilon", "share"), [(1, "0.1"), ("0.7", "0.333"), (16, "0.5"), ("1.0000000000000000001", "0.05")]
)
def test_the_parts_are_decimals_that_add_up_to_epsilon(epsilon, share):
    for_bits, for_count = parts_of(Decimal(epsilon), Decimal(share))
    assert for_bits + for_count == Decimal(epsilon)
    assert for_count == Decimal(epsilon) * Decimal(share)


def test_no_part_exceeds_epsilon_where_a_share_has_no_end():
    share = Decimal(1) / Decimal(3)
    for_bits, for_count = parts_of(Decimal("0.1"), share)
    assert Fraction(for_bits) + Fraction(for_count) <= Fraction(1, 10)


def test_a_release_can_carry_the_epsilon_of_its_count_whatever_the_share_is():
    share = Decimal("0." + "123456789" * 30)
    for_bits, for_count = parts_of(Decimal("0.01" + 90 * "3"), share)
    assert Fraction(for_bits) + Fraction(for_count) <= Fraction(Decimal("0.01" + 90 * "3"))
    release = flip(PcsaSketch(SHAPE), Decimal("0.01" + 90 * "3"), count_share=share)
    record = Release("p", 1, 0, 1, Window(0, 60_000), encode_key("k"), "removed", release, "1m")
    assert decode(encode(record)) == record
    assert record.sketch.count.epsilon == for_count


@pytest.mark.parametrize("share", [-0.1, 1, 2, Decimal("NaN"), "0.1", True, None])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(EpsilonError, match="count_share"):
        flip(PcsaSketch(SHAPE), 1, count_share=share)


@pytest.mark.parametrize(("epsilon", "share", "part"), [(0.01, 0.05, "count"), (0.001, 0.9, "bits")])
def test_a_part_too_small_to_be_an_epsilon_is_named(epsilon, share, part):
    with pytest.raises(EpsilonError, match=f"epsilon of the {part}"):
        flip(PcsaSketch(SHAPE), epsilon, count_share=share)


def test_the_estimate_uses_the_count():
    """Twenty items: noise of the bits alone says little, the count is known to a few."""
    raw = PcsaSketch(SketchShape(4096, 24)).add(range(20))
    release = flip(raw, 2, count_share=0.5)
    found = estimate(release)
    assert found.standard_error < 3 < estimate(flip(raw, 2)).standard_error
    assert abs(found.value - 20) < 10 * found.standard_error  # the noise is Laplace: e^-14


def test_tallies_and_merges_are_of_the_bits():
    releases = [flip(PcsaSketch(SHAPE).add(range(n)), 2, count_share=0.1) for n in (10, 20)]
    plain = [SfmSketch(r.shape, r.flip_threshold, r.hash, r.bits) for r in releases]
    assert Tally.of(releases) == Tally.of(plain)
    assert merge(releases).count is None


def test_the_count_is_part_of_the_content():
    release = flip(PcsaSketch(SHAPE).add(range(100)), 2, count_share=0.1)
    other = SfmSketch(release.shape, release.flip_threshold, release.hash, release.bits)
    assert release.digest() != other.digest()
    assert release != other
    assert f"count {release.count.value}" in repr(release)


@pytest.mark.parametrize(
    ("value", "epsilon", "problem"),
    [
        (1.0, Decimal(1), "expected int"),
        (True, Decimal(1), "expected int"),
        (1 << 63, Decimal(1), "64 bits"),
        (1, 1.0, "expected Decimal"),
        (1, Decimal(0), "not above 0"),
        (1, Decimal("NaN"), "not above 0"),
    ],
)
def test_what_is_no_count_is_refused(value, epsilon, problem):
    with pytest.raises(UsageError, match=problem):
        NoisyCount(value, epsilon)


def test_a_record_of_version_1_refuses_a_count_rather_than_drop_it():
    sketch = flip(PcsaSketch(SHAPE), 1, count_share=0.5)
    with pytest.raises(FormatError, match="count"):
        Release("p", 1, 0, 1, Window(0, 60_000), encode_key("k"), "removed", sketch)


def test_the_noise_reaches_below_zero_and_is_not_cut_off():
    """Of 200 empty sketches at epsilon_count 0.1 about half have a negative count: none once in 2^200."""
    noise = DiscreteLaplace.of(Decimal("0.1"))
    counts = [noisy_count(np.zeros(8, np.uint8), noise, SYSTEM_COINS) for _ in range(200)]
    assert min(counts) < 0 < max(counts)
