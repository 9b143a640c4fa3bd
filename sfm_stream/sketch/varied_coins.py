"""Coins of many thresholds at once, as a merge needs them: each is drawn as those of bernoulli.py are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.bernoulli import WORD64, Digits, Word, exactly


def draw(count: int, threshold: int | NDArray[np.uint64], digits: Digits, word: Word = WORD64) -> NDArray[np.bool_]:
    """Shape (count,): True with probability threshold / 2^word.bits, independently.

    threshold: one for all coins, or shape (count,); each in 0 .. 2^word.bits - 1. Raises EntropyError if `digits`
    gives another number of digits than asked: numpy would broadcast them, and one digit would decide several coins.
    """
    thresholds = np.asarray(threshold, np.uint64)
    drawn = exactly(count, digits)
    first = _digit(word, thresholds, 0)
    below = np.less(drawn, first)
    tied = np.flatnonzero(drawn == first)
    for index in range(1, word.bits // word.digit_bits):
        if not tied.size:
            break
        wanted = _digit(word, thresholds if thresholds.ndim == 0 else thresholds[tied], index)
        drawn = exactly(tied.size, digits)
        below[tied] = drawn < wanted
        tied = tied[drawn == wanted]
    return below


def _digit(word: Word, thresholds: NDArray[np.uint64], index: int) -> NDArray[np.uint8]:
    """Digit number `index` of each threshold; 0 is the most significant one."""
    shift = np.uint64(word.bits - word.digit_bits * (index + 1))
    return ((thresholds >> shift) & np.uint64((1 << word.digit_bits) - 1)).astype(np.uint8)
