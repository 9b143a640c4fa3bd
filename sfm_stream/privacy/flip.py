"""From secret to public: the one module that turns raw bits into private ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.methods.mechanisms import Kind, symmetric
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.epsilon import Epsilon, flip_threshold, shared
from sfm_stream.sketch.bernoulli import WORD64, Word, draw
from sfm_stream.sketch.bitmap import RawBitmap
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import SfmSketch


def flip(raw: PcsaSketch, epsilon: Epsilon, coins: Coins = SYSTEM_COINS) -> SfmSketch:
    """An epsilon-DP sketch of the same set, for neighbours that differ in one item (paper, def. sym-rr).

    Each call is a release of its own and costs epsilon again: flip a sketch once and share the result.
    Raises EpsilonError, EntropyError.
    """
    k = flip_threshold(epsilon)
    return SfmSketch(raw.shape, k, raw.hash.name, flip_bits(raw.bits, k, coins).tobytes())


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


def flip_bits(
    bits: NDArray[np.uint8], threshold: int, coins: Coins, word: Word = WORD64, cells: int | None = None
) -> NDArray[np.uint8]:
    """The packed bitmap, each of its first `cells` bits (default: all) inverted with probability threshold / 2^bits.

    Every cell gets its own coin, and the coins are drawn before the bits are looked at.
    """
    flips = np.zeros(8 * bits.size, np.bool_)
    count = flips.size if cells is None else cells
    flips[:count] = draw(count, threshold, coins.digits, word)
    return np.packbits(flips, bitorder="little") ^ bits
