"""Which merges need no coins (paper, thm. unique-deterministic-merge and its corollaries), by search.

All 16 functions of two bits, over a grid of mechanisms F_{p,q} with p != q, both strictly between 0 and 1, p < q
included. A grid is enough: with f the function, turning the first bit on beside a second one that shows ones with
probability s changes Pr(out = 1) by (p1 - q1) (slope + bend s), where slope = f(1, 0) - f(0, 0) is in -1..1 and bend =
f(1, 1) - f(1, 0) - f(0, 1) + f(0, 0) in -2..2. A merge asks this to be 0 at s = p2 (or) or at s = q2 (and); as
p1 != q1, that is a root of slope + bend s. Inside (0, 1) the only root that any function has is 1/2, and it is in the
grid; a function for which all is 0 ignores a bit, which any two points of the grid show. Probabilities are counted in
eighths, those of pairs in 64ths: integers all along.
"""

from fractions import Fraction
from itertools import product

import pytest

BITS = (0, 1)
ONE, HALF = 8, 4
EIGHTHS = range(1, ONE)
MECHANISMS = [(p, q) for p in EIGHTHS for q in EIGHTHS if p != q]
FUNCTIONS = list(product(BITS, repeat=4))
"""Values at (0, 0), (0, 1), (1, 0), (1, 1)."""
XOR, XNOR = (0, 1, 1, 0), (1, 0, 0, 1)


def disjunction(x, y):
    return x | y


def conjunction(x, y):
    return x & y


def chance(function, first, second, x, y):
    """64 Pr(f(F_1(x), F_2(y)) = 1); a mechanism is (p, q)."""
    one, other = first[0] if x else first[1], second[0] if y else second[1]
    none, right, left, both = function
    return (ONE - one) * ((ONE - other) * none + other * right) + one * ((ONE - other) * left + other * both)


def is_merge(truth, function, first, second):
    """Whether the outcome depends on truth(x, y) alone, and does depend on it."""
    by_truth = {0: set(), 1: set()}
    for x, y in product(BITS, repeat=2):
        by_truth[truth(x, y)].add(chance(function, first, second, x, y))
    return len(by_truth[0]) == len(by_truth[1]) == 1 and by_truth[0] != by_truth[1]


def merges(truth, mechanisms=MECHANISMS):
    """All (function, mechanism, mechanism) that are one."""
    cases = product(FUNCTIONS, mechanisms, mechanisms)
    return {case for case in cases if is_merge(truth, *case)}


@pytest.fixture(scope="module")
def found():
    return {truth: merges(truth) for truth in (disjunction, conjunction)}


def test_an_or_without_coins_is_an_xor_of_bits_with_p_one_half(found):
    ors = found[disjunction]
    assert {function for function, _, _ in ors} == {XOR, XNOR}
    assert {mechanism[0] for _, *both in ors for mechanism in both} == {HALF}
    assert len(ors) == 2 * (len(EIGHTHS) - 1) ** 2, "every such pair of mechanisms, with xor and its negation"


def test_an_and_without_coins_is_an_xor_of_bits_with_q_one_half(found):
    ands = found[conjunction]
    assert {function for function, _, _ in ands} == {XOR, XNOR}
    assert {mechanism[1] for _, *both in ands for mechanism in both} == {HALF}
    assert len(ands) == 2 * (len(EIGHTHS) - 1) ** 2


def test_no_mechanism_has_both(found):
    """paper, cor. impossible-deterministic-and-or."""
    either = [{(first, second) for _, first, second in found[truth]} for truth in (disjunction, conjunction)]
    assert not either[0] & either[1]


def test_the_grid_misses_nothing():
    """The identity and the roots of which the first lines of this file speak."""
    for function in FUNCTIONS:
        none, second, first, both = function
        slope, bend = first - none, both - first - second + none
        for one, other in product(MECHANISMS, repeat=2):
            for y, shown in ((1, other[0]), (0, other[1])):
                change = chance(function, one, other, 1, y) - chance(function, one, other, 0, y)
                assert change == (one[0] - one[1]) * (ONE * slope + bend * shown)
        roots = {Fraction(-slope, bend)} if bend else set()
        assert {root for root in roots if 0 < root < 1} <= {Fraction(HALF, ONE)}
        assert bend or slope or (none, second) == (first, both), "all is 0 only if the first bit is ignored"


def test_without_privacy_there_are_others():
    """The search can find more than xor: bits that are never flipped, or flipped in one direction only."""
    clear = (ONE, 0)
    assert {function for function, _, _ in merges(disjunction, [clear])} == {(0, 1, 1, 1), (1, 0, 0, 0)}
    assert {function for function, _, _ in merges(conjunction, [clear])} == {(0, 0, 0, 1), (1, 1, 1, 0)}
    one_sided = (ONE, 2)
    assert (0, 1, 1, 1) in {function for function, _, _ in merges(disjunction, [one_sided])}


def test_mechanisms_that_say_nothing_are_no_merges():
    blank = [(p, p) for p in EIGHTHS]
    assert not merges(disjunction, blank)
    assert not merges(conjunction, blank)
