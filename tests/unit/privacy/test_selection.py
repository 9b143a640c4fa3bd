"""Private selection: the table in exact rationals, and selection with flips on every tape of small words.

Nothing here is sampled, so there are no tolerances and no false alarms.
"""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from reference.exact_exp import exp_bounds

from sfm_stream.errors import EpsilonError
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip_bits
from sfm_stream.privacy.selection import MIN_DELTA, parse_delta, select, selection_table
from sfm_stream.sketch.bernoulli import WORD64, Word

GRID = 1 << 64
DEFAULT = (Decimal(1), Decimal("1e-9"))
PAIRS = [
    DEFAULT,
    (Decimal("0.1"), Decimal("1e-12")),
    (Decimal("0.5"), MIN_DELTA),
    (Decimal(2), Decimal("1e-6")),
    (Decimal(8), Decimal("0.01")),
    (Decimal(16), MIN_DELTA),
    (Decimal("0.01"), Decimal("1e-5")),
    (Decimal(2) ** -10, Decimal("0.001")),
    (Decimal(1), Decimal("0.999")),
]


# The table


def assert_private_table(table, epsilon, delta, word=WORD64):
    """For all n: pi(n) <= e^eps pi(n-1) + delta, and 1 - pi(n-1) <= e^eps (1 - pi(n)) + delta; pi(0) = 0."""
    size, (low, _) = 1 << word.bits, exp_bounds(epsilon)
    mass = Fraction(delta) * size
    pi = table.tolist()
    assert pi[0] == 0, "an empty key must never appear"
    for before, after in zip(pi, [*pi[1:], pi[-1]], strict=True):
        assert after <= low * before + mass, "appears: too likely for one more item"
        assert size - before <= low * (size - after) + mass, "withheld: too likely for one item less"
        assert before <= low * after + mass, "appears: too likely for one item less"
        assert size - after <= low * (size - before) + mass, "withheld: too likely for one more item"


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS, ids=str)
def test_the_integers_themselves_satisfy_the_bound(epsilon, delta):
    assert_private_table(selection_table(epsilon, delta), epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS, ids=str)
def test_no_entry_could_be_larger(epsilon, delta):
    """Given the one before it, each entry is the largest integer that satisfies the bound."""
    _, high = exp_bounds(epsilon)
    mass = Fraction(delta) * GRID
    pi = selection_table(epsilon, delta).tolist()
    for before, after in pairwise(pi):
        more = after + 1
        assert more == GRID or more > high * before + mass or GRID - before > high * (GRID - more) + mass


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS, ids=str)
def test_the_table_ascends_from_never_to_all_but_never_withheld(epsilon, delta):
    table = selection_table(epsilon, delta)
    assert table.dtype == np.uint64
    pi = table.tolist()
    assert pi[0] == 0
    assert pi[1] == int(delta * GRID)
    assert all(before < after for before, after in pairwise(pi))
    assert pi[-1] == GRID - 1


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS, ids=str)
def test_the_table_is_the_recursion_up_to_rounding(epsilon, delta):
    """Rounding down loses less than 1 an entry, and the loss grows no faster than the entries themselves."""
    with localcontext() as context:
        context.prec = 80
        growth, exact, pi = epsilon.exp(), Decimal(0), selection_table(epsilon, delta).tolist()
        for entry in pi[1:-1]:
            exact = min(growth * exact + delta, 1 - (1 - exact - delta) / growth, Decimal(1))
            lost = exact * GRID - entry
            assert -Decimal("1e-30") * GRID <= lost <= min(exact, 1) / delta + len(pi)


def test_at_epsilon_1_and_delta_1e_9_half_appear_at_21_items_and_all_at_41():
    table = selection_table(*DEFAULT).tolist()
    assert table[20] < GRID // 2 <= table[21]
    assert table[40] < GRID - 1 == table[41]
    assert len(table) == 42


def test_rounding_one_entry_up_is_caught():
    """The check is sharp: one unit in 2^64 is too much."""
    table = selection_table(*DEFAULT)
    for entry in (1, 7, 21, 30):
        wrong = table.copy()
        wrong[entry] += np.uint64(1)
        with pytest.raises(AssertionError, match=r"^(appears|withheld): "):
            assert_private_table(wrong, *DEFAULT)


def test_floating_point_is_caught():
    table, pi = [0], 0.0
    while table[-1] < GRID - 1 and len(table) < 60:
        pi = min(np.exp(1.0) * pi + 1e-9, 1 - np.exp(-1.0) * (1 - pi - 1e-9), 1.0)
        table.append(min(int(pi * GRID), GRID - 1))
    with pytest.raises(AssertionError, match=r"^(appears|withheld): "):
        assert_private_table(np.array(table, np.uint64), *DEFAULT)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_a_delta_below_the_grid_of_the_word_is_refused(bits):
    with pytest.raises(EpsilonError, match=f"too small for a word of {bits} bits"):
        selection_table(1, Decimal(1) / (1 << bits + 1), Word(bits, bits))
    assert len(selection_table(1, Decimal(1) / (1 << bits), Word(bits, bits))) > 2


@pytest.mark.parametrize("delta", [True, "0.1", None, 0, 1, -0.1, 2.0**-51, float("nan"), float("inf"), Decimal("NaN")])
def test_what_is_no_delta_is_refused(delta):
    with pytest.raises(EpsilonError, match="delta_selection"):
        parse_delta(delta)


def test_the_bounds_of_delta():
    assert parse_delta(MIN_DELTA) == MIN_DELTA
    assert parse_delta(0.1) == Decimal("0.1"), "what was written, not its binary neighbour"


# Selection and flips together, on every tape


class NeedsMore(Exception):
    pass


class Given:
    """Coins that serve given digits and stop when they run out."""

    def __init__(self, digits):
        self.left = digits

    def digits(self, count):
        if count > len(self.left):
            raise NeedsMore(count - len(self.left))
        served, self.left = self.left[:count], self.left[count:]
        return np.array(served, np.uint8)


def law(decide, word):
    """The exact law of decide(coins), over the tree of all tapes of this word's digits."""
    found, tapes = Counter(), [()]
    while tapes:
        digits = tapes.pop()
        try:
            outcome = decide(Given(digits))
        except NeedsMore as more:
            tapes.extend(digits + rest for rest in product(range(1 << word.digit_bits), repeat=more.args[0]))
            continue
        found[outcome] += Fraction(1, 1 << word.digit_bits * len(digits))
    assert sum(found.values()) == 1
    return found


def assert_delta(laws, low, delta):
    """sum over outputs of max(0, P - e^eps P') <= delta, for all neighbours in both directions; low: below e^eps.

    laws: for each set of lit cells as a bit pattern, the law of the output. Returns the largest sum found.
    """
    worst = Fraction(0)
    for x in laws:
        for cell in range(len(laws).bit_length() - 1):
            other = laws[x ^ 1 << cell]
            excess = sum(max(Fraction(0), p - low * other.get(output, 0)) for output, p in laws[x].items())
            assert excess <= delta, "delta: neighbours are told apart"
            worst = max(worst, excess)
    return worst


@cache
def flip_law(x, cells, word, k):
    """The exact law of the flipped bitmap of these lit cells."""
    bits = np.array([x], np.uint8)
    return law(lambda coins: int(flip_bits(bits, k, coins, word, cells)[0]), word)


def release_laws(cells, epsilon_selection, delta, selection_word, flip_word, k, table=None, choose=select):
    """The law of what is released of each set of `cells` cells: None, or the flipped bitmap.

    Selection draws before the flips and from coins of their own, as in ReleaseDraw, so the laws multiply.
    """
    table = selection_table(epsilon_selection, delta, selection_word) if table is None else table

    @cache
    def selected(popcount):
        return law(lambda coins: choose(popcount, table, coins, selection_word), selection_word)[True]

    laws = {}
    for x in range(1 << cells):
        pi = selected(x.bit_count())
        laws[x] = {None: 1 - pi, **{output: pi * p for output, p in flip_law(x, cells, flip_word, k).items()}}
    return laws


NIBBLE = Word(4, 4)
EXACT = [
    (Decimal(1), Decimal(1), Decimal("0.1"), Word(8, 8), NIBBLE, 3),
    (Decimal(1), Decimal(1), Decimal("0.1"), Word(8, 4), NIBBLE, 3),
    (Decimal("0.5"), Decimal(2), Decimal("0.25"), Word(4, 4), NIBBLE, 3),
    (Decimal(2), Decimal("0.25"), Decimal("0.125"), Word(6, 3), Word(4, 2), 3),
    (Decimal(1), Decimal("0.1"), Decimal(1) / 32, Word(5, 5), Word(2, 2), 4),
]


@pytest.mark.parametrize(("epsilon", "epsilon_selection", "delta", "selection_word", "flip_word", "cells"), EXACT)
def test_selection_and_flips_are_private_together(epsilon, epsilon_selection, delta, selection_word, flip_word, cells):
    k = flip_threshold_of(epsilon, flip_word)
    laws = release_laws(cells, epsilon_selection, delta, selection_word, flip_word, k)
    low, _ = exp_bounds(epsilon + epsilon_selection)
    worst = assert_delta(laws, low, Fraction(delta))
    assert worst == Fraction(
        selection_table(epsilon_selection, delta, selection_word).tolist()[1], 1 << selection_word.bits
    )
    assert laws[0] == {None: 1, **dict.fromkeys(laws[0].keys() - {None}, 0)}, "an empty key appeared"


def test_both_from_one_tape_in_the_order_of_the_publisher():
    """Selection first, then the flips of what was selected, with digits of one word size from one tape."""
    word, delta = Word(2, 2), Decimal("0.25")
    table, k = selection_table(1, delta, word), flip_threshold_of(1, word)

    def release(x):
        def decide(coins):
            if not select(x.bit_count(), table, coins, word):
                return None
            return int(flip_bits(np.array([x], np.uint8), k, coins, word, 3)[0])

        return decide

    joint = {x: law(release(x), word) for x in range(8)}
    apart = release_laws(3, Decimal(1), delta, word, word, k)
    assert joint == {x: {output: p for output, p in law_of_x.items() if p} for x, law_of_x in apart.items()}
    assert_delta(joint, exp_bounds(2)[0], Fraction(delta))


def at_least_one(popcount, table, coins, word):
    """Publishes every key that has an item."""
    return popcount > 0


def hard_threshold(popcount, table, coins, word):
    """Publishes from two items on, without a coin."""
    return popcount >= 2


@pytest.mark.parametrize("wrong", [at_least_one, hard_threshold])
def test_a_wrong_selection_is_caught(wrong):
    epsilon, epsilon_selection, delta, word, flips, cells = EXACT[0]
    laws = release_laws(cells, epsilon_selection, delta, word, flips, flip_threshold_of(epsilon, flips), choose=wrong)
    with pytest.raises(AssertionError, match=r"^delta: "):
        assert_delta(laws, exp_bounds(epsilon + epsilon_selection)[0], Fraction(delta))


def test_a_table_of_twice_the_delta_is_caught():
    epsilon, epsilon_selection, delta, word, flips, cells = EXACT[0]
    k = flip_threshold_of(epsilon, flips)
    laws = release_laws(cells, epsilon_selection, delta, word, flips, k, selection_table(1, 2 * delta, word))
    with pytest.raises(AssertionError, match=r"^delta: "):
        assert_delta(laws, exp_bounds(epsilon + epsilon_selection)[0], Fraction(delta))


def test_selection_adds_to_the_epsilon_of_the_bits():
    """At the epsilon of the bits alone the bound fails: the sum in the statement is needed."""
    epsilon, epsilon_selection, delta, word, flips, cells = EXACT[1]
    laws = release_laws(cells, epsilon_selection, delta, word, flips, flip_threshold_of(epsilon, flips))
    with pytest.raises(AssertionError, match=r"^delta: "):
        assert_delta(laws, exp_bounds(epsilon)[0], Fraction(delta))


def test_select_at_64_bits_compares_with_the_entry_of_its_popcount():
    table = selection_table(*DEFAULT)

    class Word64:
        def __init__(self, number):
            self.places = iter(number.to_bytes(8, "big"))

        def digits(self, count):
            return np.full(count, next(self.places), np.uint8)

    for popcount in (1, 5, 21, 40, 41, 42, 10**6):
        entry = int(table[min(popcount, 41)])
        assert select(popcount, table, Word64(entry - 1))
        assert not select(popcount, table, Word64(entry))
    assert not select(0, table, Word64(0))
