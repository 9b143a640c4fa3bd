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

Draw: TypeAlias = "Callable[[int, int, Digits, Word], NDArray[np.uint8]]"
"""`draw`, or a compiled one that gives the same coins."""


BLOCK = 4096 * 24
"""Digits that are compared at once. Memory for more would be mapped anew each time, which costs more than the work."""


@dataclass(frozen=True)
class Word:
    """How a uniform integer is cut into digits. Releases use WORD64; proofs by enumeration use smaller words."""

    bits: int
    digit_bits: int

    def digits_of(self, threshold: int) -> list[int]:
        """The digits of a threshold, the most significant one first."""
        shifts = range(self.bits - self.digit_bits, -1, -self.digit_bits)
        return [threshold >> shift & (1 << self.digit_bits) - 1 for shift in shifts]


WORD64 = Word(bits=64, digit_bits=8)


def draw(count: int, threshold: int, digits: Digits, word: Word = WORD64) -> NDArray[np.uint8]:
    """Shape (ceil(count / 8),): coin i is bit i % 8 of byte i // 8, set with probability threshold / 2^word.bits.

    Coins are independent; bits beyond the last one are 0. Raises EntropyError if `digits` gives another number than
    asked: numpy would broadcast a single digit, which would decide several coins.
    """
    first, *others = word.digits_of(threshold)
    drawn, starts = exactly(count, digits), range(0, max(count, 1), BLOCK)
    blocks = [drawn[start : start + BLOCK] for start in starts]
    tied = np.concatenate([(block == first).nonzero()[0] + start for block, start in zip(blocks, starts, strict=True)])
    up = [tied[:0]]
    for wanted in others:
        if not tied.size:
            break
        more = exactly(tied.size, digits)
        up.append(tied[more < wanted])
        tied = tied[more == wanted]
    late, packed = np.concatenate(up), []
    for block, start in zip(blocks, starts, strict=True):
        below = block < first
        below[late if len(blocks) == 1 else late[(late >= start) & (late < start + BLOCK)] - start] = True
        packed.append(np.packbits(below, bitorder="little"))
    return np.concatenate(packed)


class FewCoins:
    """Coins for a handful of fixed thresholds, drawn one after the other.

    Arrays would cost more than so few coins do. What their digits are compared with is computed once.
    """

    def __init__(self, thresholds: Sequence[int], word: Word = WORD64) -> None:
        self._wanted = list(zip(*map(word.digits_of, thresholds), strict=True))

    def draw(self, digits: Digits) -> list[bool]:
        """One coin for each threshold. Raises EntropyError as `draw`."""
        first = self._wanted[0]
        drawn = exactly(len(first), digits).tolist()
        below = list(map(lt, drawn, first))
        tied = list(compress(range(len(first)), map(eq, drawn, first)))
        for wanted in self._wanted[1:]:
            if not tied:
                break
            drawn, undecided = exactly(len(tied), digits).tolist(), []
            for coin, digit in zip(tied, drawn, strict=True):
                below[coin] = digit < wanted[coin]
                if digit == wanted[coin]:
                    undecided.append(coin)
            tied = undecided
        return below


def exactly(count: int, digits: Digits) -> NDArray[np.uint8]:
    drawn = digits(count)
    if drawn.shape != (count,):
        raise EntropyError(f"the source of coins gave {drawn.size} of {count} digits; nothing was drawn")
    return drawn
