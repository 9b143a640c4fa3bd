"""Coins for whoever draws very many, by the kernel in use.

This stands outside of what privacy/flip.py loads: there coins are Python's, unless these are handed in.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream import kernels
from sfm_stream.sketch import bernoulli
from sfm_stream.sketch.bernoulli import WORD64, Digits, Word, exactly


def draw(count: int, threshold: int, digits: Digits, word: Word = WORD64) -> NDArray[np.uint8]:
    """What bernoulli.draw gives, from the same digits. count: below 2^32."""
    native = kernels.native()
    if native is None:
        return bernoulli.draw(count, threshold, digits, word)
    first, *others = _digits_of(word, threshold)
    packed, tied = native.compare(exactly(count, digits).data.toreadonly(), first)
    for wanted in others:
        if not tied:
            break
        packed, tied = native.settle(packed, tied, exactly(len(tied) // 4, digits).data.toreadonly(), wanted)
    return np.frombuffer(packed, np.uint8)


@cache
def _digits_of(word: Word, threshold: int) -> list[int]:
    """Kept, as thresholds are settings and each release asks for one of them."""
    return word.digits_of(threshold)
