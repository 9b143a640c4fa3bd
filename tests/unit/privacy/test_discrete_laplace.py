"""The integer noise of counts: its exact distribution from its integers, and every tape of small words.

Nothing here is sampled, so there are no tolerances and no false alarms.
"""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from reference.exact_exp import exp_bounds
from reference.laplace_oracle import law_within, noise_law
from reference.lazy_coins import lazy_noise

from sfm_stream.errors import EntropyError, EpsilonError
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.privacy.discrete_laplace import DiscreteLaplace
from sfm_stream.sketch.bernoulli import WORD64, Word

EPSILONS = [Decimal(2) ** -10, Decimal("0.05"), Decimal("0.1"), Decimal("0.7"), Decimal(1), Decimal(4), Decimal(16)]
SMALL = [(Word(3, 3), Decimal(8)), (Word(2, 2), Decimal(10)), (Word(4, 4), Decimal(16))]


def step_ratios(noise):
    """Pr(G = g + 1) / Pr(G = g) for each number of trailing ones of the low digits of g: there are no other ratios."""
    size, fallen = 1 << noise.word.bits, Fraction(1)
    for threshold in noise.low:
        odds = Fraction(threshold, size - threshold)
        yield odds / fallen
        fallen *= odds
    yield Fraction(noise.more, size) / fallen


def assert_private(noise):
    low, _ = exp_bounds(noise.epsilon)
    for ratio in step_ratios(noise):
        assert ratio <= 1, "a larger geometric variable is likelier than a smaller one"
        assert low * ratio >= 1, "the ratio of two neighbours exceeds e^epsilon"


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_no_step_of_the_geometric_variable_exceeds_epsilon(epsilon):
    assert_private(DiscreteLaplace.of(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_no_threshold_could_be_smaller(epsilon):
    """Given those before it, one unit in 2^64 less is too much: the check above is sharp."""
    noise = DiscreteLaplace.of(epsilon)
    for at in range(len(noise.low) + 1):
        numbers = [*noise.low, noise.more]
        numbers[at] -= 1
        if numbers[at] == 0:
            continue
        _, high = exp_bounds(epsilon)
        ratio = list(step_ratios(DiscreteLaplace(epsilon, tuple(numbers[:-1]), numbers[-1])))[at]
        assert high * ratio < 1


@pytest.mark.parametrize("epsilon", [Decimal("0.7"), Decimal(1), Decimal(4), Decimal(16)], ids=str)
def test_the_noise_itself_is_private_in_both_directions(epsilon):
    """Pr(X = x) against Pr(X = x + 1), across many borders of the low digits, and its symmetry."""
    noise, (low, _) = DiscreteLaplace.of(epsilon), exp_bounds(epsilon)
    reach = 3 << len(noise.low)
    law = noise_law(noise.low, noise.more, 1 << 64, reach)
    for x in range(-reach, reach):
        assert law[x] <= low * law[x + 1]
        assert law[x + 1] <= low * law[x]
        assert law[x] == law[-x]


@pytest.mark.parametrize(("word", "epsilon"), SMALL, ids=str)
def test_small_words_keep_the_bound_and_are_drawn_as_the_integers_say(word, epsilon):
    """All tapes up to two rounds of the high part, against the distribution that the integers define."""
    noise, rounds = DiscreteLaplace.of(epsilon, word), 1
    assert_private(noise)
    law = Counter()
    tapes = [()]
    while tapes:
        digits = tapes.pop()
        tape = Tape(
            digits, most=1 + rounds
        )  # the first coins, the high part's too, and a round for each that is counted
        try:
            drawn = noise.draw_one(tape)
        except NeedsMore as more:
            tapes.extend(digits + rest for rest in product(range(1 << word.bits), repeat=more.args[0]))
        except TooManyRounds:
            continue
        else:
            law[drawn] += Fraction(1, (1 << word.bits) ** len(digits))
    assert law == law_within(noise.low, noise.more, 1 << word.bits, rounds)


@pytest.mark.parametrize(("word", "epsilon"), SMALL, ids=str)
def test_every_output_of_a_noisy_count_is_within_epsilon_of_its_neighbours(word, epsilon):
    """C and C + 1, in both directions, at every output that either can have up to several times the word."""
    noise, (low, _) = DiscreteLaplace.of(epsilon, word), exp_bounds(epsilon)
    reach = 40
    law = noise_law(noise.low, noise.more, 1 << word.bits, reach)
    for count in (0, 5):
        for output in range(count - reach + 1, count + reach + 1):
            one, other = law[output - count], law[output - count - 1]
            assert 0 < one <= low * other
            assert 0 < other <= low * one


def test_a_clamped_noise_would_be_caught():
    """A noise that stops at some value tells a count apart there: the ratio is infinite."""
    noise = DiscreteLaplace.of(4)
    assert not any(chance == 0 for chance in noise_law(noise.low, noise.more, 1 << 64, 200).values())
    stopped = DiscreteLaplace(noise.epsilon, noise.low, 0)
    with pytest.raises(AssertionError, match="exceeds"):
        assert_private(stopped)


def test_one_threshold_too_small_is_caught():
    noise = DiscreteLaplace.of(1)
    for at in range(len(noise.low)):
        low = list(noise.low)
        low[at] -= 1 << 20
        with pytest.raises(AssertionError, match="exceeds"):
            assert_private(DiscreteLaplace(noise.epsilon, tuple(low), noise.more))


def test_draws_differ():
    drawn = [DiscreteLaplace.of(0.1).draw_one(SYSTEM_COINS) for _ in range(1000)]
    assert {type(each) for each in drawn} == {int}
    assert len(set(drawn)) > 10


@pytest.mark.parametrize("epsilon", [0, -1, 17, Decimal("NaN"), "1", True, 2.0**-11])
def test_what_is_no_epsilon_is_refused(epsilon):
    with pytest.raises(EpsilonError, match="epsilon_count"):
        DiscreteLaplace.of(epsilon)


@pytest.mark.parametrize("bits", [2, 3])
def test_an_epsilon_too_small_for_the_word_is_refused(bits):
    with pytest.raises(EpsilonError, match=f"too small for a word of {bits} bits"):
        DiscreteLaplace.of(Decimal("0.01"), Word(bits, bits))


def test_a_short_read_of_coins_draws_nothing():
    class Short:
        def digits(self, count):
            return SYSTEM_COINS.digits(count)[1:]

    with pytest.raises(EntropyError):
        DiscreteLaplace.of(1).draw_one(Short())


def test_the_word_of_production_is_64_bits():
    assert DiscreteLaplace.of(1).word is WORD64


class NeedsMore(Exception):
    pass


class TooManyRounds(Exception):
    pass


class Tape:
    """Digits that are served in order; more requests than `most` end the tape."""

    def __init__(self, digits, most):
        self.left, self.requests, self.most = digits, 0, most

    def digits(self, count):
        self.requests += 1
        if self.requests > self.most:
            raise TooManyRounds
        if count > len(self.left):
            raise NeedsMore(count - len(self.left))
        served, self.left = self.left[:count], self.left[count:]
        return np.array(served, np.uint8)


@pytest.mark.parametrize("word", [Word(3, 3), Word(6, 3), Word(8, 4), WORD64], ids=str)
def test_a_draw_is_the_reference_from_the_same_coins(word):
    """Over seeded tapes, long enough that ties and growth happen often: the same noise, and as many digits taken."""
    noise = DiscreteLaplace.of(Decimal("0.5") if word == WORD64 else Decimal(8), word)
    rng = np.random.default_rng(5)
    for _ in range(400):
        digits = rng.integers(0, 1 << word.digit_bits, 1 << 12).astype(np.uint8)
        if rng.integers(2):
            digits[: rng.integers(1, 40)] //= 1 << word.digit_bits - 1  # many ties with small thresholds
        one, other = Served(digits), Served(digits)
        wanted = lazy_noise(noise.low, noise.more, other.digits, word.bits, word.digit_bits)
        assert noise.draw_one(one) == wanted
        assert one.taken == other.taken


class Served:
    def __init__(self, digits):
        self.served, self.taken = digits, 0

    def digits(self, count):
        self.taken += count
        return self.served[self.taken - count : self.taken]
