"""From secret to public: the one module that turns raw bits into private ones."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.epsilon import Epsilon, flip_threshold_of
from sfm_stream.sketch.bernoulli import WORD64, Word, draw
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape


class Named(Protocol):
    """A hash of items, known by its public name."""

    @property
    def name(self) -> str: ...


class SecretSketch(Protocol):
    """What a flip takes: a PcsaSketch. The one assumption of the guarantee is about its bits.

    bits: shape (shape.nbytes,), uint8, the packed bitmap. The bitmaps of neighbouring inputs differ in at most one bit.
    """

    @property
    def shape(self) -> SketchShape: ...
    @property
    def hash(self) -> Named: ...
    @property
    def bits(self) -> NDArray[np.uint8]: ...


def flip(raw: SecretSketch, epsilon: Epsilon, coins: Coins = SYSTEM_COINS) -> SfmSketch:
    """An epsilon-DP sketch of the same set (paper, def. sym-rr). Neighbouring sets differ in one item.

    Each call is a release of its own and costs epsilon again: flip a sketch once and share the result.
    Raises EpsilonError, EntropyError.
    """
    threshold = flip_threshold_of(epsilon)
    return SfmSketch(raw.shape, threshold, raw.hash.name, flip_bits(raw.bits, threshold, coins).tobytes())


def flip_bits(
    bits: NDArray[np.uint8], threshold: int, coins: Coins, word: Word = WORD64, cells: int | None = None
) -> NDArray[np.uint8]:
    """The packed bitmap, each of its first `cells` bits (default: all) inverted with probability threshold / 2^bits.

    Every cell gets its own coin. The coins are drawn before the bits are read.
    """
    flips = np.zeros(8 * bits.size, np.bool_)
    count = flips.size if cells is None else cells
    flips[:count] = draw(count, threshold, coins.digits, word)
    return np.packbits(flips, bitorder="little") ^ bits
