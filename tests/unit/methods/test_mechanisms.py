"""The paper's mechanisms: their thresholds, their bound, and randomized response with them, by exact enumeration.

The enumeration runs the real `respond` over all coin tapes of small words and counts in fractions: no tolerance, no
false alarms. The mutants below are wrong responses that the same functions must catch.
"""

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from reference.exact_exp import exp_bounds
from support.coin_tapes import assert_draws, explore

from sfm_stream.errors import EpsilonError
from sfm_stream.methods import randomized_response
from sfm_stream.methods.layouts import BloomFilter, LinearCounting
from sfm_stream.methods.mechanisms import pagh_stausholm, symmetric, xor
from sfm_stream.methods.randomized_response import privatize, respond
from sfm_stream.privacy.epsilon import MAX_EPSILON, MIN_EPSILON, flip_threshold_of, shared
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.bernoulli import Word
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.raw import PcsaSketch, RawBitmap
from sfm_stream.sketch.sfm import GRID
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.varied_coins import draw

EPSILONS = [
    MIN_EPSILON, Decimal("0.01"), 0.1, Decimal("0.5"), 1, 2, Decimal("3.7"), 8, Decimal("15.99999999999999999999"),
    MAX_EPSILON,
]  # fmt: skip
KINDS = {"sym": symmetric, "xor": xor, "ps": pagh_stausholm}
TWO_DIGITS, TWO_BITS = Word(4, 2), Word(2, 2)


def q_and_p(mechanism):
    """Thresholds of a one, of an unset and of a set bit."""
    return mechanism.q_threshold, mechanism.p_threshold


def ratio(mechanism):
    """max(p/q, (1-q)/(1-p)), of which e^epsilon is the bound (paper, thm. dp-bit-flip)."""
    p, q = Fraction(mechanism.p_threshold, GRID), Fraction(mechanism.q_threshold, GRID)
    return max(p / q, (1 - q) / (1 - p))


def exact(epsilon):
    return Decimal(str(epsilon))


# Thresholds


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_no_mechanism_exceeds_its_epsilon(kind, epsilon):
    """In rationals, from the integers that coins are compared with."""
    below, _ = exp_bounds(exact(epsilon))
    assert ratio(kind(epsilon)) <= below


@pytest.mark.parametrize("kind", [symmetric, xor])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_one_unit_less_noise_would_exceed_it(kind, epsilon):
    found = kind(epsilon)
    _, above = exp_bounds(exact(epsilon))
    assert ratio(Mechanism(found.p_threshold + (kind is symmetric), found.q_threshold - 1)) > above


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_thresholds_are_the_formulas_rounded_up(epsilon):
    with localcontext() as context:
        context.prec = 90
        power = exact(epsilon).exp()
        wanted = {"sym": GRID / (power + 1), "xor": GRID / (2 * power), "ps": GRID / (2 + exact(epsilon))}
        for name, kind in KINDS.items():
            found = kind(epsilon)
            assert 0 <= found.q_threshold - wanted[name] < 1
            assert found.p_threshold == (GRID - found.q_threshold if name == "sym" else GRID // 2)


@pytest.mark.parametrize("digits", [40, 60, 80, 120])
def test_an_epsilon_made_to_lie_next_to_an_integer_is_not_exceeded(digits):
    """Epsilons just below the one at which a threshold would be the integer k: with k it would be exceeded."""
    for number in range(20):
        k = (GRID >> 3) + 1_000_003**2 * (number + 1)
        for kind, of_grid in ((symmetric, lambda k: Decimal(GRID) / k - 1), (xor, lambda k: Decimal(GRID // 2) / k)):
            with localcontext() as context:
                context.prec = 200
                epsilon = of_grid(k).ln().quantize(Decimal(10) ** -digits, rounding=ROUND_FLOOR)
                found = kind(epsilon)
                assert found.q_threshold == k + 1
                assert Decimal(found.p_threshold) / found.q_threshold <= epsilon.exp()


@pytest.mark.parametrize("epsilon", [MIN_EPSILON, "0.01", "0.5", "1", "2"])
def test_the_xor_mechanism_is_theirs_at_a_larger_epsilon(epsilon):
    """paper, cor. equivalent-eps: M_xor at epsilon is M_PS at 2 (e^epsilon - 1)."""
    with localcontext() as context:
        context.prec = 60
        larger = 2 * (Decimal(epsilon).exp() - 1)
    assert xor(Decimal(epsilon)) == pagh_stausholm(larger)
    assert xor(Decimal(epsilon)) != pagh_stausholm(larger * (1 + Decimal(2) ** -48))


# Randomized response, over all tapes


def response_law(bits, mechanism, size, cells):
    """F_{p,q} in each cell, independently, as the paper defines it."""
    law = {}
    for output in range(1 << cells):
        chance = Fraction(1)
        for cell in range(cells):
            one = Fraction(mechanism.p_threshold if bits >> cell & 1 else mechanism.q_threshold, size)
            chance *= one if output >> cell & 1 else 1 - one
        law[output] = chance
    return law


def assert_response(function, mechanism, word, cells):
    found = {bits: explore(function, bits, mechanism, word, cells) for bits in range(1 << cells)}
    for bits, (law, _) in found.items():
        wanted = response_law(bits, mechanism, 1 << word.bits, cells)
        assert {output: law.get(output, 0) for output in {*law, *wanted}} == wanted, "law: not F_{p,q} in each cell"
    assert_draws({bits: requests for bits, (_, requests) in found.items()})


@pytest.mark.parametrize("thresholds", [(13, 3), (11, 6), (9, 9)])
def test_two_cells_over_all_tapes_of_two_digits(thresholds):
    """Both digits of every threshold, ties included."""
    assert_response(respond, Mechanism(*thresholds), TWO_DIGITS, 2)


def test_three_cells_over_all_tapes():
    assert_response(respond, Mechanism(2, 1), TWO_BITS, 3)


def reused_coin(bits, mechanism, coins, word, cells):
    """The first cell's coin decides for the last cell, too."""
    rows = [draw(cells, threshold, coins.digits, word) for threshold in q_and_p(mechanism)]
    for row in rows:
        row[-1] = row[0]
    return chosen(bits, *rows)


def looks_first(bits, mechanism, coins, word, cells):
    """The right law, but a cell gets only the coin that its bit asks for."""
    q, p = q_and_p(mechanism)
    thresholds = np.where(np.unpackbits(bits, count=cells, bitorder="little"), p, q)
    return np.packbits(draw(cells, thresholds.astype(np.uint64), coins.digits, word), bitorder="little")


def lit_cells_first(bits, mechanism, coins, word, cells):
    """The right law and the right total, but lit and empty cells ask apart."""
    shown, lit = np.zeros(cells, np.bool_), np.unpackbits(bits, count=cells, bitorder="little").view(np.bool_)
    for where, threshold in ((lit, mechanism.p_threshold), (~lit, mechanism.q_threshold)):
        shown[where] = draw(int(where.sum()), threshold, coins.digits, word)
    return np.packbits(shown, bitorder="little")


def swapped(bits, mechanism, coins, word, cells):
    return respond(~bits & np.uint8((1 << cells) - 1), mechanism, coins, word, cells)


def at_most(bits, mechanism, coins, word, cells):
    """<= for <."""
    return chosen(bits, *(coins.digits(cells) <= threshold for threshold in q_and_p(mechanism)))


def first_digit(bits, mechanism, coins, word, cells):
    """Decides on the first digit alone."""
    shift = word.bits - word.digit_bits
    return chosen(
        bits,
        *(coins.digits(cells) < threshold >> shift for threshold in q_and_p(mechanism)),
    )


def or_of_both(bits, mechanism, coins, word, cells):
    """A lit cell shows a one if either of its coins does."""
    rows = [draw(cells, threshold, coins.digits, word) for threshold in q_and_p(mechanism)]
    return chosen(bits, rows[0], rows[0] | rows[1])


def chosen(bits, empty, lit):
    empty, lit = (np.packbits(row, bitorder="little") for row in (empty, lit))
    return (empty & ~bits) | (lit & bits)


@pytest.mark.parametrize(
    ("mutant", "word", "thresholds", "problem"),
    [
        (reused_coin, TWO_BITS, (2, 1), "law"),
        (swapped, TWO_BITS, (2, 1), "law"),
        (at_most, TWO_BITS, (2, 1), "law"),
        (first_digit, TWO_DIGITS, (13, 6), "law"),
        (or_of_both, TWO_BITS, (2, 1), "law"),
        (looks_first, TWO_DIGITS, (13, 6), "draws"),
        (lit_cells_first, TWO_BITS, (2, 1), "draws"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_response_is_caught(mutant, word, thresholds, problem):
    with pytest.raises(AssertionError, match=f"^{problem}: "):
        assert_response(mutant, Mechanism(*thresholds), word, 2)


def packed(coins):
    return np.packbits(coins, bitorder="little")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_privatize_draws_with_the_thresholds_that_it_states(kind, monkeypatch):
    """Every coin shows the same 64-bit word, on either side of both thresholds; cells are no whole number of bytes."""
    raw = RawBitmap(LinearCounting(201)).add(range(50))
    lit = np.unpackbits(raw.bits, count=201, bitorder="little").view(np.bool_)
    mechanism = kind(1)
    q, p = q_and_p(mechanism)
    for shown in (0, q - 1, q, p - 1, p, GRID - 1):
        coins = partial(lambda shown, count, threshold, *_: packed(np.full(count, shown < threshold)), shown)
        monkeypatch.setattr(randomized_response, "draw", coins)
        found = privatize(raw, 1, kind)
        assert found.mechanism == mechanism
        assert (found.noisy_bits.array() == np.where(lit, shown < p, shown < q)).all()


def test_of_a_sketch_it_is_the_flip():
    shape = SketchShape(64, 8)
    raw = PcsaSketch(shape).add(range(20))
    found, flipped = privatize(raw, 2), flip(raw, 2)
    assert found.mechanism == Mechanism(GRID - flipped.flip_threshold, flipped.flip_threshold)
    assert (found.layout, found.hash) == (flipped.shape, flipped.hash)


# Items of several cells


def whole_bitmap_ratio(mechanism, cells, hashes):
    """The largest ratio of probabilities of a whole bitmap, over all sets and all items that light up to h cells."""
    laws = [response_law(bits, mechanism, GRID, cells) for bits in range(1 << cells)]
    items = [sum(1 << cell for cell in lit) for h in range(1, hashes + 1) for lit in combinations(range(cells), h)]
    worst = Fraction(1)
    for bits, item in product(range(1 << cells), items):
        with_item, without = laws[bits | item], laws[bits]
        for output in range(1 << cells):
            found = with_item[output] / without[output]
            worst = max(worst, found, 1 / found)
    return worst


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("epsilon", [Decimal("0.3"), Decimal("1.3"), 16])
def test_an_item_of_several_cells_stays_within_the_whole_budget(kind, epsilon, monkeypatch):
    """Three cells of a Bloom filter of three hashes, every set, item and output."""
    raw = RawBitmap(BloomFilter(64, 3)).add(["someone"])
    below, above = exp_bounds(epsilon)
    mechanism = privatize(raw, epsilon, kind).mechanism
    worst = whole_bitmap_ratio(mechanism, 3, 3)
    assert worst == ratio(mechanism) ** 3 <= below
    monkeypatch.setattr(randomized_response, "shared", lambda epsilon, parts: Decimal(epsilon))  # the planted fault
    greedy = privatize(raw, epsilon, symmetric).mechanism
    assert whole_bitmap_ratio(greedy, 3, 3) > above


def test_an_item_lights_no_more_cells_than_the_budget_is_divided_by():
    for hashes in (1, 2, 5, 16):
        layout = BloomFilter(64, hashes)
        lit = [RawBitmap(layout).add([item]).popcount() for item in range(300)]
        assert max(lit) == hashes == layout.throws


def test_shares_are_rounded_down():
    for parts, epsilon in product((1, 3, 7, 13, 16), (1, Decimal("0.1"), 16)):
        share = shared(epsilon, parts)
        assert 0 <= Fraction(epsilon) - Fraction(share) * parts < Fraction(1, 10**57)


def test_shares_rounded_to_the_nearest_would_exceed_the_budget():
    """The planted fault: arithmetic as decimals have it."""
    with localcontext() as context:
        context.prec = 60
        assert any(Fraction(Decimal(1) / parts) * parts > 1 for parts in range(3, 17))


def test_a_share_below_the_smallest_epsilon_is_refused():
    raw = RawBitmap(BloomFilter(64, 3)).add(["someone"])
    with pytest.raises(EpsilonError):
        privatize(raw, 2 * MIN_EPSILON)
    assert privatize(raw, 4 * MIN_EPSILON).mechanism.q_threshold == flip_threshold_of(shared(4 * MIN_EPSILON, 3))
