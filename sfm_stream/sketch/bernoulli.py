"""Exact coins: a coin shows True if a uniform integer U is below its threshold.

U has `bits` bits and is drawn digit by digit, the most significant digit first. Drawing stops when the digits decide
whether U < threshold, so a coin takes about one digit. The probability of True is threshold / 2^bits exactly. The
number of digits drawn depends on the coins and thresholds alone, never on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import eq, lt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EntropyError

Digits: TypeAlias = Callable[[int], NDArray[np.uint8]]
"""A source of digits: called with n, it returns shape (n,), n fresh independent uniform digits."""


@dataclass(frozen=True)
class Word:
    """How a uniform integer is cut into digits. Releases use WORD64; proofs by enumeration use smaller words."""

    bits: int
    digit_bits: int

    @property
    def digits(self) -> int:
        return self.bits // self.digit_bits

    def digit(self, thresholds: NDArray[np.uint64], index: int) -> NDArray[np.uint8]:
        """Digit number `index` of each threshold; 0 is the most significant one."""
        shift = np.uint64(self.bits - self.digit_bits * (index + 1))
        return ((thresholds >> shift) & np.uint64((1 << self.digit_bits) - 1)).astype(np.uint8)


WORD64 = Word(bits=64, digit_bits=8)


def draw(count: int, threshold: int | NDArray[np.uint64], digits: Digits, word: Word = WORD64) -> NDArray[np.bool_]:
    """Shape (count,): True with probability threshold / 2^word.bits, independently.

    threshold: one for all coins, or shape (count,); each in 0 .. 2^word.bits - 1. Raises EntropyError if `digits`
    gives another number of digits than asked: numpy would broadcast them, and one digit would decide several coins.
    """
    thresholds = np.asarray(threshold, np.uint64)
    drawn = _exactly(count, digits)
    first = word.digit(thresholds, 0)
    below = np.less(drawn, first)
    tied = np.flatnonzero(drawn == first)
    for index in range(1, word.digits):
        if not tied.size:
            break
        wanted = word.digit(thresholds if thresholds.ndim == 0 else thresholds[tied], index)
        drawn = _exactly(tied.size, digits)
        below[tied] = drawn < wanted
        tied = tied[drawn == wanted]
    return below


class FewCoins:
    """Coins for a handful of fixed thresholds, drawn as `draw` does, from the same digits.

    Arrays would cost more than so few coins do. What their digits are compared with is computed once.
    """

    def __init__(self, thresholds: Sequence[int], word: Word = WORD64) -> None:
        shifts = range(word.bits - word.digit_bits, -1, -word.digit_bits)
        self._wanted = [[t >> shift & (1 << word.digit_bits) - 1 for t in thresholds] for shift in shifts]

    def draw(self, digits: Digits) -> list[bool]:
        """One coin for each threshold. Raises EntropyError as `draw`."""
        first = self._wanted[0]
        drawn = _exactly(len(first), digits).tolist()
        below = list(map(lt, drawn, first))
        tied = list(compress(range(len(first)), map(eq, drawn, first)))
        for wanted in self._wanted[1:]:
            if not tied:
                break
            drawn, undecided = _exactly(len(tied), digits).tolist(), []
            for coin, digit in zip(tied, drawn, strict=True):
                below[coin] = digit < wanted[coin]
                if digit == wanted[coin]:
                    undecided.append(coin)
            tied = undecided
        return below


def _exactly(count: int, digits: Digits) -> NDArray[np.uint8]:
    drawn = digits(count)
    if drawn.shape != (count,):
        raise EntropyError(f"the source of coins gave {drawn.size} of {count} digits; nothing was drawn")
    return drawn
