"""The exact coin: U < threshold, decided digit by digit, against the comparison of whole words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfm_stream.errors import EntropyError
from sfm_stream.sketch.bernoulli import WORD64, Word
from sfm_stream.sketch.varied_coins import draw

WORDS = [WORD64, Word(4, 4), Word(4, 2), Word(6, 3), Word(8, 1), Word(16, 8)]


class TapeOfWords:
    """Serves the digits of one given word for each coin, to exactly the coins that are still undecided."""

    def __init__(self, words, thresholds, word):
        self.words, self.thresholds, self.word = words, thresholds, word
        self.place = 0
        self.served = []

    def __call__(self, count):
        undecided = [u for u, k in zip(self.words, self.thresholds, strict=True) if self._prefix(u) == self._prefix(k)]
        assert count == len(undecided)
        self.served.append(count)
        self.place += 1
        shift = self.word.bits - self.word.digit_bits * self.place
        return np.array([u >> shift & (1 << self.word.digit_bits) - 1 for u in undecided], np.uint8)

    def _prefix(self, number):
        return number >> (self.word.bits - self.word.digit_bits * self.place)


@st.composite
def near_coins(draw_from, word):
    """(U, threshold) pairs, often equal or off by one somewhere."""
    top = (1 << word.bits) - 1
    threshold = draw_from(st.integers(0, top))
    near = st.sampled_from([threshold - 1, threshold, threshold + 1, threshold ^ (1 << word.bits - 1)])
    shared = st.integers(0, word.bits).map(lambda low: threshold >> low << low)
    return draw_from(st.one_of(near, shared, st.integers(0, top))) & top, threshold


@pytest.mark.parametrize("word", WORDS, ids=str)
@settings(max_examples=50)
@given(data=st.data())
def test_a_draw_is_the_comparison_of_whole_words(word, data):
    pairs = data.draw(st.lists(near_coins(word), max_size=12))
    words, thresholds = [u for u, _ in pairs], [k for _, k in pairs]
    tape = TapeOfWords(words, thresholds, word)
    drawn = draw(len(pairs), np.array(thresholds, np.uint64), tape, word)
    assert drawn.dtype == np.bool_
    assert drawn.tolist() == [u < k for u, k in pairs]


@pytest.mark.parametrize("word", WORDS, ids=str)
@settings(max_examples=50)
@given(data=st.data())
def test_one_threshold_for_all_is_that_threshold_for_each(word, data):
    top = (1 << word.bits) - 1
    threshold = data.draw(st.integers(0, top))
    words = data.draw(st.lists(st.integers(0, top) | st.sampled_from([threshold, max(0, threshold - 1)]), max_size=12))
    tape = TapeOfWords(words, [threshold] * len(words), word)
    assert draw(len(words), threshold, tape, word).tolist() == [u < threshold for u in words]


@pytest.mark.parametrize("threshold", [0, 1, 255, 256, 2**56, 2**63, 2**64 - 1])
def test_the_boundary_at_64_bits(threshold):
    for u in {max(0, threshold - 1), threshold, 0, 2**64 - 1}:
        tape = TapeOfWords([u], [threshold], WORD64)
        assert draw(1, threshold, tape).tolist() == [u < threshold]


@pytest.mark.parametrize("word", [Word(4, 4), Word(4, 2), Word(6, 3), Word(8, 4)], ids=str)
def test_every_word_against_every_threshold(word):
    size = 1 << word.bits
    grid = [(u, k) for u in range(size) for k in range(size)]
    words, thresholds = [u for u, _ in grid], [k for _, k in grid]
    drawn = draw(len(grid), np.array(thresholds, np.uint64), TapeOfWords(words, thresholds, word), word)
    assert drawn.reshape(size, size).sum(axis=0).tolist() == list(range(size)), "threshold k is hit by k words"
    assert drawn.tolist() == [u < k for u, k in grid]


def test_about_one_digit_a_coin_and_never_more_than_the_word_has():
    rng = np.random.default_rng(1)
    asked = []

    def digits(count):
        asked.append(count)
        return rng.integers(0, 256, count, np.uint8)

    draw(100_000, 0x44D7_0000_0000_0000, digits)
    assert asked[0] == 100_000
    assert sum(asked) < 101_000
    asked.clear()
    draw(3, 0, lambda count: asked.append(count) or np.zeros(count, np.uint8))
    assert asked == [3] * 8


def test_no_coin():
    assert draw(0, 5, lambda count: np.zeros(count, np.uint8)).tolist() == []


@pytest.mark.parametrize("given_digits", [0, 1, 15, 17])
@pytest.mark.parametrize("failing_request", [0, 1])
def test_a_source_that_gives_another_number_is_refused(given_digits, failing_request):
    """numpy would broadcast a single digit over all coins."""
    calls = iter(range(8))
    with pytest.raises(EntropyError, match=f"{given_digits} of 16 digits"):
        draw(16, 0, lambda count: np.zeros(given_digits if next(calls) == failing_request else count, np.uint8))


def test_digits_of_thresholds():
    assert WORD64.digits_of(0x0123456789ABCDEF) == [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]
    assert Word(6, 3).digits_of(0b101011) == [0b101, 0b011]
