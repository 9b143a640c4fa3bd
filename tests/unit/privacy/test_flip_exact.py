"""The flip is differentially private: every tape of coins at small word sizes, then the real coins.

The exact part runs the real `flip_bits` over all coin tapes and counts in integers, so it has no tolerance and no
false alarms. The mutants below are wrong flips that the same functions must catch.
"""

import math
import os
import ssl
import subprocess
import sys
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta
from support.coin_tapes import Tape, assert_draws, explore
from support.patience import PATIENCE_S

from sfm_stream.errors import EntropyError, EpsilonError, SfmStreamError
from sfm_stream.privacy.coins import SYSTEM_COINS, SystemCoins
from sfm_stream.privacy.epsilon import MAX_EPSILON, MIN_EPSILON, epsilon_of, flip_threshold_of, parse_epsilon
from sfm_stream.privacy.flip import flip, flip_bits
from sfm_stream.sketch import compiled_coins
from sfm_stream.sketch.bernoulli import Word
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID
from sfm_stream.sketch.shape import SketchShape

CELLS = 4
ONE_DIGIT, TWO_DIGITS, TWO_BITS, THREE_BITS = Word(4, 4), Word(4, 2), Word(2, 2), Word(3, 3)
SHAPE = SketchShape(64, 8)


# What a private flip is, in exact numbers


def assert_ratio(laws, k, word):
    """laws: for each input, the exact probability of each output. The bound (2^b - k) / k holds and is attained."""
    bound = Fraction((1 << word.bits) - k, k)
    worst = Fraction(0)
    for x, other in ((x, x ^ 1 << cell) for x in laws for cell in range(len(laws).bit_length() - 1)):
        for output in set(laws[x]) | set(laws[other]):
            mine, theirs = laws[x].get(output, 0), laws[other].get(output, 0)
            assert mine <= bound * theirs, "ratio: some output tells neighbours apart by more than the bound"
            if theirs:
                worst = max(worst, Fraction(mine) / theirs)
    assert worst == bound, "ratio: the bound is not attained"


def assert_law(laws, k, word):
    """Each cell inverted with probability exactly k / 2^b, independently of the others."""
    flipped = Fraction(k, 1 << word.bits)
    for x, law in laws.items():
        for output in laws:
            changes = (x ^ output).bit_count()
            wanted = flipped**changes * (1 - flipped) ** (len(laws).bit_length() - 1 - changes)
            assert law.get(output, 0) == wanted, "law: not k / 2^b for each cell independently"
        assert sum(law.values()) == 1, "law: an output outside the cells"


def assert_private(flip_function, k, word, cells):
    explored = {x: explore(flip_function, x, k, word, cells) for x in range(1 << cells)}
    laws = {x: law for x, (law, _) in explored.items()}
    assert_ratio(laws, k, word)
    assert_law(laws, k, word)
    assert_draws({x: requests for x, (_, requests) in explored.items()})


# The real flip on all tapes, with the coins of either kernel


@pytest.fixture
def flip_bits_by(kernel):
    """The function that a release calls; where the kernel is Python's, the default, which docs/privacy.md lists."""
    return flip_bits if kernel == "python" else partial(flip_bits, draw=compiled_coins.draw)


ALL_TAPES = np.array(list(product(range(16), repeat=CELLS)), np.uint8)


class SideBySide:
    """All 65,536 tapes at once: byte w of the bitmap is world w, whose four low cells get tape w."""

    def __init__(self):
        self.calls = 0

    def digits(self, count):
        self.calls += 1
        assert count == 8 * len(ALL_TAPES)
        return np.hstack([ALL_TAPES, np.zeros_like(ALL_TAPES)]).reshape(-1)


@pytest.mark.parametrize("k", range(1, 8))
def test_all_65536_tapes_of_four_bits(flip_bits_by, k):
    laws = {}
    for x in range(1 << CELLS):
        coins = SideBySide()
        outputs = flip_bits_by(np.full(len(ALL_TAPES), x, np.uint8), k, coins, ONE_DIGIT) & 15
        assert coins.calls == 1
        laws[x] = {output: Fraction(count, len(ALL_TAPES)) for output, count in Counter(outputs.tolist()).items()}
    assert_ratio(laws, k, ONE_DIGIT)
    assert_law(laws, k, ONE_DIGIT)


def test_all_65536_tapes_one_call_each(flip_bits_by):
    """The same four cells in calls of their own: no help from the neighbouring worlds."""
    bits = np.array([0b0101], np.uint8)
    counts = Counter(int(flip_bits_by(bits, 3, Tape(tuple(tape)), ONE_DIGIT, CELLS)[0]) for tape in ALL_TAPES.tolist())
    for output in range(1 << CELLS):
        changes = (0b0101 ^ output).bit_count()
        assert counts[output] == 3**changes * 13 ** (CELLS - changes)


@pytest.mark.parametrize(("word", "k"), [(TWO_BITS, 1), (THREE_BITS, 3), (TWO_DIGITS, 6)], ids=str)
def test_all_tapes_of_four_cells_one_call_each(flip_bits_by, word, k):
    assert_private(flip_bits_by, k, word, CELLS)


@pytest.mark.parametrize("k", range(1, 8))
def test_all_tapes_drawn_lazily_in_two_digits(flip_bits_by, k):
    """Both digits of every threshold, ties included: exactly k / 16, and draws that do not depend on the data."""
    assert_private(flip_bits_by, k, TWO_DIGITS, 3)


def test_cells_beyond_the_asked_ones_are_left_alone(flip_bits_by):
    bits = np.array([0b10100101, 0b11110000], np.uint8)
    flipped = flip_bits_by(bits, 15, Tape((0, 0, 0, 0)), ONE_DIGIT, CELLS)
    assert flipped.tolist() == [0b10101010, 0b11110000]


# Mutants: each is caught


def float_flip(bits, threshold, coins, word, cells):
    """Compares floats: the epsilon goes through exp and log and comes back one unit too high for some k."""
    size = 1 << word.bits
    probability = 1 / (math.exp(math.log((size - threshold) / threshold)) + 1)
    flips = coins.digits(cells) / size < probability
    return np.packbits(flips, bitorder="little") ^ bits


def at_most_flip(bits, threshold, coins, word, cells):
    """<= for <."""
    return np.packbits(coins.digits(cells) <= threshold, bitorder="little") ^ bits


def shared_coin_flip(bits, threshold, coins, word, cells):
    """One draw used for two cells."""
    drawn = coins.digits(cells - 1)
    return np.packbits(np.append(drawn, drawn[-1]) < threshold, bitorder="little") ^ bits


def dark_only_flip(bits, threshold, coins, word, cells):
    """Never darkens a lit cell."""
    return np.packbits(coins.digits(cells) < threshold, bitorder="little") | bits


def stuck_flip(bits, threshold, coins, word, cells):
    """Forgets to flip the last cell."""
    flips = coins.digits(cells) < threshold
    flips[-1] = False
    return np.packbits(flips, bitorder="little") ^ bits


def early_flip(bits, threshold, coins, word, cells):
    """Decides on the first digit alone."""
    shift = word.bits - word.digit_bits
    return np.packbits(coins.digits(cells) < threshold >> shift, bitorder="little") ^ bits


def lit_cells_draw_more_flip(bits, threshold, coins, word, cells):
    """Right law, but one more digit is drawn if the first cell is lit."""
    if bits[0] & 1:
        coins.digits(1)
    return flip_bits(bits, threshold, coins, word, cells)


def lit_cells_draw_first_flip(bits, threshold, coins, word, cells):
    """Right law and total, but lit and dark cells draw in separate requests."""
    flips = np.zeros(cells, np.bool_)
    lit = np.unpackbits(bits, count=cells, bitorder="little").view(np.bool_)
    for chosen in (lit, ~lit):
        flips[chosen] = coins.digits(int(chosen.sum())) < threshold
    return np.packbits(flips, bitorder="little") ^ bits


MUTANTS = [
    (at_most_flip, TWO_BITS, 1, "ratio"),
    (shared_coin_flip, TWO_BITS, 1, "ratio"),
    (dark_only_flip, TWO_BITS, 1, "ratio"),
    (stuck_flip, TWO_BITS, 1, "ratio"),
    (early_flip, TWO_DIGITS, 6, "ratio"),
    (lit_cells_draw_more_flip, TWO_BITS, 1, "draws"),
    (lit_cells_draw_first_flip, TWO_BITS, 1, "draws"),
]


@pytest.mark.parametrize(("mutant", "word", "k", "problem"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_flip_is_caught(mutant, word, k, problem):
    with pytest.raises(AssertionError, match=f"^{problem}: "):
        assert_private(mutant, k, word, 3)
    assert_private(flip_bits, k, word, 3)


def test_a_float_comparison_is_caught():
    """At k = 2 its probability is one unit in the last place above 2/16, so the digit 2 counts as below it."""
    caught = []
    for k in range(1, 8):
        try:
            assert_law_of_one_cell_each(float_flip, k, ONE_DIGIT)
        except AssertionError:
            caught.append(k)
    assert caught == [2]


def assert_law_of_one_cell_each(flip_function, k, word):
    """The cheap half of the proof for one-digit words: exactly k of the 16 digits invert each cell."""
    for x in range(1 << CELLS):
        for cell in range(CELLS):
            tapes = [tuple(digit if place == cell else 15 for place in range(CELLS)) for digit in range(16)]
            flips = sum(
                int(flip_function(np.array([x], np.uint8), k, Tape(tape), word, CELLS)[0]) != x for tape in tapes
            )
            assert flips == k, "law: not k / 2^b for each cell"


@pytest.mark.parametrize("k", range(1, 8))
def test_the_real_flip_passes_the_cheap_half(flip_bits_by, k):
    assert_law_of_one_cell_each(flip_bits_by, k, ONE_DIGIT)


# The production word: thresholds and boundary


class ConstantCoins:
    """Every coin shows the same 64-bit word."""

    def __init__(self, word):
        self.places = iter(word.to_bytes(8, "big"))

    def digits(self, count):
        return np.full(count, next(self.places), np.uint8)


@pytest.mark.parametrize("epsilon", [2**-10, 0.5, 1, 4, 16])
def test_the_boundary_of_the_64_bit_comparison(epsilon):
    raw = PcsaSketch(SHAPE).add(range(20))
    k = flip_threshold_of(epsilon)
    below, at = (flip(raw, epsilon, ConstantCoins(u)) for u in (k - 1, k))
    assert below.bits == (~raw.bits).tobytes()
    assert at.bits == raw.bits.tobytes()
    assert (below.flip_threshold, below.shape, below.hash) == (k, SHAPE, "xxh64")


EPSILONS = [
    *(Decimal(2) ** power for power in range(-10, 5)),
    *(Decimal(number) / 10 for number in range(1, 160, 7)),
    *(float(number) for number in np.random.default_rng(3).uniform(2**-10, 16, 60)),
    1, 2, 4, 8, 16, 0.1, 2**-10, Decimal("0.1000000000000000055511151231257827"), Decimal("15.99999999999999999999"),
]  # fmt: skip


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_thresholds_equal_80_digit_arithmetic(epsilon):
    with localcontext() as context:
        context.prec = 80
        exact = Decimal(GRID) / (Decimal(str(epsilon)).exp() + 1)
    k = flip_threshold_of(epsilon)
    assert type(k) is int
    assert 0 < Decimal(k) - exact < 1


def power_of_e(epsilon):
    """Rationals (low, high) around e^epsilon, from its series with a bounded remainder."""
    number, term, total = Fraction(Decimal(str(epsilon))), Fraction(1), Fraction(1)
    for i in range(1, 160):
        term *= number / i
        total += term
    return total, total + term  # past term 32 the terms at least halve, so the rest is below the last one


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_the_realised_epsilon_never_exceeds_the_stated_one(epsilon):
    """In exact rationals: (2^64 - k) / k <= e^epsilon, and k - 1 would exceed it."""
    low, high = power_of_e(epsilon)
    k = flip_threshold_of(epsilon)
    assert GRID - k <= low * k
    assert GRID - (k - 1) > high * (k - 1)
    assert epsilon_of(k) <= float(epsilon)
    assert epsilon_of(k) == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("word", [ONE_DIGIT, Word(8, 8), Word(16, 8)], ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_small_words_round_up_as_well(word, epsilon):
    low, high = power_of_e(epsilon)
    k = flip_threshold_of(epsilon, word)
    assert (1 << word.bits) - k <= low * k
    assert (1 << word.bits) - (k - 1) > high * (k - 1)


def test_a_decimal_means_what_was_written():
    assert flip_threshold_of(0.1) == flip_threshold_of(Decimal("0.1")) != flip_threshold_of(Decimal.from_float(0.1))
    assert flip_threshold_of(np.float64(0.1)) == flip_threshold_of(0.1)
    assert flip_threshold_of(1) == flip_threshold_of(1.0) == flip_threshold_of(Decimal(1))


REFUSED = [
    math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, 1e-320, 5e-324, "1", b"1", True, False, None, 17, 10**400, 16.1,
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e-999999"), Decimal("1e999999"), Decimal(0),
    2**-10 - 1e-9, float(np.nextafter(16, 17)), Decimal("16.000000000000000000000000001"), 1j, [1], Fraction(1, 2),
    np.bool_(True), np.float64("nan"), np.timedelta64(1, "s"),
]  # fmt: skip


@pytest.mark.parametrize("epsilon", REFUSED, ids=repr)
def test_what_is_no_epsilon_is_refused(epsilon):
    for attempt in (parse_epsilon, flip_threshold_of, lambda value: flip(PcsaSketch(SHAPE), value)):
        with pytest.raises(EpsilonError):
            attempt(epsilon)


@pytest.mark.parametrize("epsilon", [2**-10, 0.0009765625, Decimal(2) ** -10, MIN_EPSILON, 16, 16.0, MAX_EPSILON])
def test_the_boundaries_are_accepted(epsilon):
    assert 1 <= flip_threshold_of(epsilon) < GRID // 2


# Real coins


@pytest.mark.parametrize("fill", [0x00, 0xFF])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_million_real_flips_are_within_clopper_pearson(epsilon, fill):
    """Not seeded: these are the real coins. Each of the 4 cases fails a correct flip with probability 1e-9."""
    bits = np.full(125_000, fill, np.uint8)
    k = flip_threshold_of(epsilon)
    trials, flips = 8 * bits.size, int(np.bitwise_count(flip_bits(bits, k, SYSTEM_COINS) ^ bits).sum())
    tail = 1e-9 / 2
    low, high = beta.ppf(tail, flips, trials - flips + 1), beta.isf(tail, flips + 1, trials - flips)
    assert low <= k / GRID <= high
    assert high - low < 0.013 * math.sqrt(k / GRID), "the interval is too wide to see anything"


def test_real_coins_are_bytes_and_differ_each_time():
    first, second = SYSTEM_COINS.digits(1000), SYSTEM_COINS.digits(1000)
    assert first.dtype == np.uint8
    assert first.shape == (1000,)
    assert first.tobytes() != second.tobytes()
    assert SYSTEM_COINS.digits(0).size == 0


FORK = """
import os
from sfm_stream.privacy.coins import SYSTEM_COINS

def show(who):
    os.write(1, f"{who} {SYSTEM_COINS.digits(32).tobytes().hex()}\\n".encode())

show("before")
children = []
for name in ("first", "second"):
    child = os.fork()
    if child == 0:
        show(name)
        os._exit(0)
    children.append(child)
show("parent")
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_draws_other_coins():
    root = Path(__file__).parents[3]
    call = [sys.executable, "-c", FORK]
    ran = subprocess.run(call, cwd=root, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    draws = dict(line.split() for line in ran.stdout.splitlines())
    assert set(draws) == {"before", "first", "second", "parent"}
    assert all(len(draw) == 64 for draw in draws.values())
    assert len(set(draws.values())) == 4


# Entropy failure: nothing is released


def failing(error):
    def rand_bytes(count):
        raise error

    return rand_bytes


@pytest.mark.parametrize(
    "rand_bytes",
    [
        pytest.param(failing(ssl.SSLError("no entropy")), id="SSLError"),
        pytest.param(failing(OSError("no entropy")), id="OSError"),
        pytest.param(lambda count: bytes(count - 1), id="one short"),
        pytest.param(lambda count: b"", id="empty"),
        pytest.param(lambda count: bytes(1), id="one byte, which would broadcast"),
        pytest.param(lambda count: bytes(count + 1), id="one long"),
    ],
)
def test_an_entropy_failure_returns_nothing(monkeypatch, rand_bytes):
    monkeypatch.setattr(ssl, "RAND_bytes", rand_bytes)
    released = []
    with pytest.raises(EntropyError, match="nothing was released"):
        released.append(flip(PcsaSketch(SHAPE).add(["a"]), 1))
    assert not released
    with pytest.raises(EntropyError):
        SystemCoins().digits(8)


def test_an_entropy_failure_halfway_returns_nothing(monkeypatch):
    """The first digits tie with the threshold everywhere, the next request comes back short."""
    first = flip_threshold_of(1) >> 56
    calls = []

    def rand_bytes(count):
        calls.append(count)
        return bytes([first]) * count if len(calls) == 1 else bytes(count - 1)

    monkeypatch.setattr(ssl, "RAND_bytes", rand_bytes)
    with pytest.raises(EntropyError, match="nothing was released"):
        flip(PcsaSketch(SHAPE), 1)
    assert calls == [SHAPE.cells, SHAPE.cells]


@pytest.mark.parametrize("given_digits", [1, 8, SHAPE.cells - 1])
def test_a_foreign_source_that_runs_short_cannot_share_coins(given_digits):
    class Short:
        def digits(self, count):
            return np.zeros(given_digits, np.uint8)

    with pytest.raises(SfmStreamError):
        flip(PcsaSketch(SHAPE), 1, Short())


def test_every_flip_is_a_draw_of_its_own():
    raw = PcsaSketch(SHAPE).add(range(20))
    before = raw.bits.tobytes()
    assert flip(raw, 1).bits != flip(raw, 1).bits
    assert raw.bits.tobytes() == before
