"""Packed coins of one threshold: each kernel against whole words, and both against each other on the same digits."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.lazy_coins import lazy_coins

from sfm_stream import kernels
from sfm_stream.errors import EntropyError
from sfm_stream.sketch import bernoulli, compiled_coins, varied_coins
from sfm_stream.sketch.bernoulli import BLOCK, WORD64, FewCoins, Word

WORDS = [WORD64, Word(4, 4), Word(4, 2), Word(6, 3), Word(8, 1), Word(16, 8)]
SIZES = [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1000]
EDGES = [0, 1, 255, 256, 2**56, 2**63, 2**64 - 1, 0x44D7_0000_0000_0000]
# The kernel is the same for all examples.
each_kernel = settings(
    max_examples=60, suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture]
)


class NearDigits:
    """Seeded digits, most of them equal to the wanted one of their place or next to it; each request is a place."""

    def __init__(self, threshold, seed, word=WORD64):
        self.wanted, self.rng, self.word = iter(word.digits_of(threshold)), np.random.default_rng(seed), word
        self.requests = []

    def __call__(self, count):
        self.requests.append(count)
        top = (1 << self.word.digit_bits) - 1
        near = np.clip(next(self.wanted) + self.rng.integers(-1, 2, count), 0, top)
        return np.where(self.rng.random(count) < 0.7, near, self.rng.integers(0, top + 1, count)).astype(np.uint8)


def unpacked(packed, count):
    assert packed.dtype == np.uint8
    assert packed.size == -(-count // 8)
    bits = np.unpackbits(packed, bitorder="little")
    assert not bits[count:].any(), "bits beyond the last coin are 0"
    return bits[:count].tolist()


@pytest.mark.parametrize("word", WORDS, ids=str)
@each_kernel
@given(data=st.data())
def test_coins_are_the_comparison_of_whole_words(kernel, word, data):
    threshold = data.draw(st.integers(0, (1 << word.bits) - 1))
    count, seed = data.draw(st.integers(0, 200)), data.draw(st.integers(0, 1 << 32))
    wanted = lazy_coins([threshold] * count, NearDigits(threshold, seed, word), word.bits, word.digit_bits)
    assert unpacked(compiled_coins.draw(count, threshold, NearDigits(threshold, seed, word), word), count) == wanted


@each_kernel
@given(
    count=st.sampled_from(SIZES) | st.integers(0, 400),
    threshold=st.sampled_from(EDGES) | st.integers(0, 2**64 - 1),
    seed=st.integers(0, 1 << 32),
)
def test_the_same_digits_give_the_same_bytes_after_the_same_requests(kernel, count, threshold, seed):
    one, other = NearDigits(threshold, seed), NearDigits(threshold, seed)
    drawn = compiled_coins.draw(count, threshold, one)
    assert drawn.tobytes() == bernoulli.draw(count, threshold, other).tobytes()
    assert one.requests == other.requests


@pytest.mark.parametrize("count", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 77])
def test_blocks_leave_no_trace(kernel, count):
    """Against the draw of an array, which has no blocks."""
    threshold = 0x44D7_1234_0000_0001
    wanted = varied_coins.draw(count, threshold, NearDigits(threshold, 3))
    drawn = compiled_coins.draw(count, threshold, NearDigits(threshold, 3))
    assert drawn.tobytes() == np.packbits(wanted, bitorder="little").tobytes()
    assert drawn.tobytes() == bernoulli.draw(count, threshold, NearDigits(threshold, 3)).tobytes()


@pytest.mark.parametrize("wanted", range(256))
def test_every_digit_against_every_wanted_one(kernel, wanted):
    digits = np.tile(np.arange(256, dtype=np.uint8), 3)
    below = compiled_coins.draw(digits.size, wanted, lambda count: digits[:count], Word(8, 8))
    assert unpacked(below, digits.size) == [digit < wanted for digit in digits.tolist()]


@pytest.mark.parametrize("given_digits", [0, 1, 15, 17])
@pytest.mark.parametrize("failing_request", [0, 1])
def test_a_source_that_gives_another_number_is_refused(kernel, given_digits, failing_request):
    calls = iter(range(8))
    with pytest.raises(EntropyError, match=f"{given_digits} of 16 digits"):
        compiled_coins.draw(
            16, 0, lambda count: np.zeros(given_digits if next(calls) == failing_request else count, np.uint8)
        )


@pytest.mark.parametrize("word", WORDS, ids=str)
@settings(max_examples=50)
@given(data=st.data())
def test_few_coins_are_the_comparison_of_whole_words(word, data):
    threshold, top = data.draw(st.integers(0, (1 << word.bits) - 1)), (1 << word.bits) - 1
    thresholds = data.draw(st.lists(st.just(threshold) | st.integers(0, top), max_size=12))
    seed = data.draw(st.integers(0, 1 << 32))
    wanted = lazy_coins(thresholds, NearDigits(threshold, seed, word), word.bits, word.digit_bits)
    if thresholds:
        assert FewCoins(thresholds, word).draw(NearDigits(threshold, seed, word)) == wanted


# What the compiled functions refuse


@pytest.mark.parametrize("kernel", ["native"], indirect=True)
def test_bytes_that_can_change_are_refused(kernel):
    native = kernels.native()
    for changing in (bytearray(16), np.zeros(16, np.uint8), memoryview(bytes(32))[::2]):
        with pytest.raises(ValueError, match="a contiguous read-only view"):
            native.compare(changing, 1)
    with pytest.raises(BufferError):
        native.compare(np.frombuffer(bytes(16), np.uint16), 1)


@pytest.mark.parametrize("kernel", ["native"], indirect=True)
def test_coins_that_do_not_fit_together_are_refused(kernel):
    native = kernels.native()
    packed, tied = native.compare(bytes(9), 0)
    assert (len(packed), len(tied)) == (2, 36)
    for digits in (bytes(8), bytes(10)):
        with pytest.raises(ValueError, match="one digit is wanted for each tied coin"):
            native.settle(packed, tied, digits, 1)
    with pytest.raises(ValueError, match="one digit is wanted"):
        native.settle(packed, tied[:-1], bytes(9), 1)
    with pytest.raises(ValueError, match="no such coin"):
        native.settle(packed[:1], tied, bytes(9), 1)
    with pytest.raises(OverflowError):
        native.compare(bytes(9), 256)
