"""From secret to public: the one module that turns raw bits into private ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.epsilon import Epsilon, flip_threshold_of
from sfm_stream.sketch.bernoulli import WORD64, Word, draw
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import SfmSketch


def flip(raw: PcsaSketch, epsilon: Epsilon, coins: Coins = SYSTEM_COINS) -> SfmSketch:
    """An epsilon-DP sketch of the same set, for neighbours that differ in one item (paper, def. sym-rr).

    Each call is a release of its own and costs epsilon again: flip a sketch once and share the result.
    Raises EpsilonError, EntropyError.
    """
    threshold = flip_threshold_of(epsilon)
    return SfmSketch(raw.shape, threshold, raw.hash.name, flip_bits(raw.bits, threshold, coins).tobytes())


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
