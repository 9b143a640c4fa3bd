"""Which merges need no coins (paper, thm. unique-deterministic-merge and its corollaries), by search.

All 16 functions of two bits, over a grid of mechanisms F_{p,q} with p != q, both strictly between 0 and 1. For one
function the condition is a polynomial of degree one in each of p1, q1, p2, q2; eighths are more points than it could
vanish on without vanishing along a whole line, which the grid would show.
"""

from fractions import Fraction
from itertools import product

BITS = (0, 1)
EIGHTHS = [Fraction(i, 8) for i in range(1, 8)]
MECHANISMS = [(p, q) for p in EIGHTHS for q in EIGHTHS if p != q]
FUNCTIONS = list(product(BITS, repeat=4))
"""Values at (0, 0), (0, 1), (1, 0), (1, 1)."""
XOR, XNOR = (0, 1, 1, 0), (1, 0, 0, 1)
HALF = Fraction(1, 2)


def chance(function, first, second, x, y):
    """Pr(f(F_1(x), F_2(y)) = 1); a mechanism is (p, q)."""
    one, other = first[0] if x else first[1], second[0] if y else second[1]
    weights = ((1 - one) * (1 - other), (1 - one) * other, one * (1 - other), one * other)
    return sum(weight for weight, value in zip(weights, function, strict=True) if value)


def merges(truth):
    """(function, mechanism, mechanism) for which the outcome depends on truth(x, y) alone, and does depend on it."""
    found = set()
    for function, first, second in product(FUNCTIONS, MECHANISMS, MECHANISMS):
        by_truth = {0: set(), 1: set()}
        for x, y in product(BITS, repeat=2):
            by_truth[truth(x, y)].add(chance(function, first, second, x, y))
        if len(by_truth[0]) == len(by_truth[1]) == 1 and by_truth[0] != by_truth[1]:
            found.add((function, first, second))
    return found


OR = merges(lambda x, y: x | y)
AND = merges(lambda x, y: x & y)


def test_an_or_without_coins_is_an_xor_of_bits_with_p_one_half():
    assert {function for function, _, _ in OR} == {XOR, XNOR}
    assert {mechanism[0] for _, *both in OR for mechanism in both} == {HALF}
    assert len(OR) == 2 * (len(EIGHTHS) - 1) ** 2  # every such pair of mechanisms, with xor and its negation


def test_an_and_without_coins_is_an_xor_of_bits_with_q_one_half():
    assert {function for function, _, _ in AND} == {XOR, XNOR}
    assert {mechanism[1] for _, *both in AND for mechanism in both} == {HALF}


def test_no_mechanism_has_both():
    assert not {(a, b) for _, a, b in OR} & {(a, b) for _, a, b in AND}
