"""The paper's randomized response F_{p,q}: any mechanism, on a bitmap of any layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.methods.mechanisms import Kind, symmetric
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.epsilon import Epsilon, shared
from sfm_stream.sketch.bernoulli import WORD64, Word, draw
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import RawBitmap


def privatize(raw: RawBitmap, epsilon: Epsilon, kind: Kind = symmetric, coins: Coins = SYSTEM_COINS) -> NoisyBitmap:
    """An epsilon-DP bitmap of the same set, of any layout and by any mechanism of mechanisms.py.

    An item that lights up to h cells leaves epsilon / h for each of them. Each call is a release of its own.
    Raises EpsilonError, EntropyError.
    """
    mechanism = kind(shared(epsilon, raw.layout.throws))
    bits = respond(raw.bits, mechanism, coins, cells=raw.layout.cells)
    return NoisyBitmap(raw.layout, raw.hash.name, NoisyBits(mechanism, raw.layout.cells, bits.tobytes()))


def respond(
    bits: NDArray[np.uint8], mechanism: Mechanism, coins: Coins, word: Word = WORD64, cells: int | None = None
) -> NDArray[np.uint8]:
    """The packed bitmap after randomized response F_{p,q} on each of its first `cells` bits (default: all).

    The thresholds are parts of 2^word.bits. Every cell gets two coins, what a lit and what an empty one would show,
    both drawn before the bits are looked at: how many digits are drawn says nothing about them.
    """
    shown = np.zeros((2, 8 * bits.size), np.bool_)
    count = shown.shape[1] if cells is None else cells
    for row, threshold in zip(shown, (mechanism.empty, mechanism.lit), strict=True):
        row[:count] = draw(count, threshold, coins.digits, word)
    empty, lit = np.packbits(shown, axis=1, bitorder="little")
    return np.asarray((empty & ~bits) | (lit & bits))
