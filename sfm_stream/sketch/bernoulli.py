"""Exact coins: a Bernoulli draw is one integer comparison U < threshold, decided digit by digit.

U is a uniform word of `bits` bits. Its digits are drawn most significant first and only until the comparison is
decided, so about one digit a coin; the outcome has probability threshold / 2^bits exactly, and how many digits are
drawn depends on the coins alone, never on the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EntropyError

Digits: TypeAlias = Callable[[int], NDArray[np.uint8]]
"""Asked for n, gives shape (n,): n fresh independent uniform digits."""


@dataclass(frozen=True)
class Word:
    """How a uniform word is cut into digits. Production uses WORD64; proofs enumerate smaller ones."""

    bits: int
    digit_bits: int

    @property
    def digits(self) -> int:
        return self.bits // self.digit_bits

    def digit(self, thresholds: NDArray[np.uint64], place: int) -> NDArray[np.uint8]:
        """Digit number `place` (0 = most significant) of each threshold."""
        shift = np.uint64(self.bits - self.digit_bits * (place + 1))
        return ((thresholds >> shift) & np.uint64((1 << self.digit_bits) - 1)).astype(np.uint8)


WORD64 = Word(bits=64, digit_bits=8)


def draw(count: int, threshold: int | NDArray[np.uint64], digits: Digits, word: Word = WORD64) -> NDArray[np.bool_]:
    """Shape (count,): True with probability threshold / 2^word.bits, independently.

    threshold: one for all coins, or shape (count,); each in 0 .. 2^word.bits - 1. Raises EntropyError if `digits`
    gives another number of digits than asked, which numpy would otherwise spread over several coins.
    """
    thresholds = np.asarray(threshold, np.uint64)
    drawn = _exactly(count, digits)
    first = word.digit(thresholds, 0)
    below = np.less(drawn, first)
    tied = np.flatnonzero(drawn == first)
    for place in range(1, word.digits):
        if not tied.size:
            break
        wanted = word.digit(thresholds if thresholds.ndim == 0 else thresholds[tied], place)
        drawn = _exactly(tied.size, digits)
        below[tied] = drawn < wanted
        tied = tied[drawn == wanted]
    return below


def _exactly(count: int, digits: Digits) -> NDArray[np.uint8]:
    drawn = digits(count)
    if drawn.shape != (count,):
        raise EntropyError(f"the source of coins gave {drawn.size} of {count} digits; nothing was drawn")
    return drawn
