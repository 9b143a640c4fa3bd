"""The paper's mechanisms: their thresholds, their bound, and randomized response with them, by exact enumeration."""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfm_stream.privacy import flip as flipping
from sfm_stream.privacy.epsilon import shared
from sfm_stream.privacy.flip import privatize, respond
from sfm_stream.privacy.mechanisms import pagh_stausholm, symmetric, xor
from sfm_stream.sketch.bernoulli import Word
from sfm_stream.sketch.bitmap import RawBitmap
from sfm_stream.sketch.layout import BloomFilter
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.sfm import GRID

EPSILONS = [Decimal(2) ** -10, Decimal("0.1"), Decimal("0.5"), 1, 2, Decimal("3.7"), 8, 16]
TWO_BITS = Word(bits=4, digit_bits=2)
KINDS = {"sym": symmetric, "xor": xor, "ps": pagh_stausholm}


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_mechanism_exceeds_its_epsilon(kind, epsilon):
    """paper, thm. dp-bit-flip, from the integers that coins are compared with."""
    found = kind(epsilon)
    p, q = Fraction(found.lit, GRID), Fraction(found.empty, GRID)
    with localcontext() as context:
        context.prec = 80
        bound = Fraction(Decimal(epsilon).exp())
    assert max(p / q, (1 - q) / (1 - p)) <= bound


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_thresholds_are_the_formulas_rounded_up(epsilon):
    with localcontext() as context:
        context.prec = 80
        power = Decimal(epsilon).exp()
        wanted = {
            "sym": (GRID / (power + 1)),
            "xor": (GRID / (2 * power)),
            "ps": (GRID / (2 + Decimal(epsilon))),
        }
        for name, kind in KINDS.items():
            assert 0 <= kind(epsilon).empty - wanted[name] < 1
            assert kind(epsilon).lit == (GRID - kind(epsilon).empty if name == "sym" else GRID // 2)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "2"])
def test_the_xor_mechanism_is_theirs_at_a_larger_epsilon(epsilon):
    """paper, cor. equivalent-eps: M_xor at epsilon is M_PS at 2 (e^epsilon - 1)."""
    with localcontext() as context:
        context.prec = 60
        larger = 2 * (Decimal(epsilon).exp() - 1)
    assert xor(Decimal(epsilon)) == pagh_stausholm(larger)


class Tape:
    """Digits of a tape, one after another; how many were asked for is kept."""

    def __init__(self, digits):
        self.digits_left, self.taken = list(digits), 0

    def digits(self, count):
        if count > len(self.digits_left):
            raise EndOfTape
        taken, self.digits_left = self.digits_left[:count], self.digits_left[count:]
        self.taken += count
        return np.array(taken, np.uint8)


class EndOfTape(Exception):
    pass


def laws(bits, mechanism, count):
    """Every tape of digits: output to its exact probability, and what each tape gave."""
    law, outcomes = Counter(), {}
    for length in range(2 * count, 4 * count + 1):
        for digits in product(range(4), repeat=length):
            tape = Tape(digits)
            try:
                shown = respond(np.array([bits], np.uint8), mechanism, tape, TWO_BITS, cells=count)
            except EndOfTape:
                continue
            if tape.taken == length:
                law[int(shown[0])] += Fraction(1, 4**length)
                outcomes[digits] = int(shown[0])
    return law, outcomes


@pytest.mark.parametrize("thresholds", [(8, 3), (13, 3), (11, 6)])
def test_randomized_response_over_all_tapes(thresholds):
    """A cell shows a one with probability lit/16 or empty/16 exactly; which tapes are used up does not depend on it."""
    mechanism = Mechanism(*thresholds)
    p, q = (Fraction(t, 16) for t in thresholds)
    used = set()
    for bits in range(2):
        law, outcomes = laws(bits, mechanism, 1)
        one = p if bits else q
        assert law == {0: 1 - one, 1: one}
        used.add(frozenset(outcomes))
    assert len(used) == 1, "how many digits are drawn depends on the bits"


def test_cells_are_independent():
    """Two cells, one of them lit; a coin is one digit of three bits."""
    law = Counter()
    for digits in product(range(8), repeat=4):
        shown = respond(np.array([0b01], np.uint8), Mechanism(5, 2), Tape(digits), Word(bits=3, digit_bits=3), cells=2)
        law[int(shown[0])] += Fraction(1, 8**4)
    one, two = {0: Fraction(3, 8), 1: Fraction(5, 8)}, {0: Fraction(6, 8), 1: Fraction(2, 8)}
    assert law == {a | b << 1: one[a] * two[b] for a, b in product((0, 1), repeat=2)}


def test_an_item_of_several_cells_divides_the_budget(monkeypatch):
    """Neighbours differ in up to h cells; the product of h ratios of one cell stays within e^epsilon."""
    layout = BloomFilter(64, 5)
    raw = RawBitmap(layout).add(["someone"])
    assert 1 <= raw.popcount() <= 5
    for kind in KINDS.values():
        found = privatize(raw, Decimal("1.3"), kind).mechanism
        p, q = Fraction(found.lit, GRID), Fraction(found.empty, GRID)
        with localcontext() as context:
            context.prec = 80
            bound = Fraction(Decimal("1.3").exp())
        assert max(p / q, (1 - q) / (1 - p)) ** 5 <= bound
    monkeypatch.setattr(flipping, "shared", lambda epsilon, parts: Decimal(epsilon))  # the planted fault
    found = privatize(raw, Decimal("1.3")).mechanism
    assert Fraction(found.lit, found.empty) ** 5 > bound


def test_shares_are_rounded_down():
    for parts in (3, 7, 16):
        assert Fraction(shared(1, parts)) * parts <= 1
        assert float(shared(1, parts)) == pytest.approx(1 / parts)
