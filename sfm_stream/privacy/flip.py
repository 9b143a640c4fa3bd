"""From secret to public: the one module that turns raw bits into private ones."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.discrete_laplace import DiscreteLaplace
from sfm_stream.privacy.epsilon import Epsilon, flip_threshold_of, parts_of
from sfm_stream.sketch.bernoulli import WORD64, Draw, Word, draw
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import INT64_MAX, INT64_MIN


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


def flip(raw: SecretSketch, epsilon: Epsilon, coins: Coins = SYSTEM_COINS, *, count_share: Epsilon = 0) -> SfmSketch:
    """An epsilon-DP sketch of the same set (paper, def. sym-rr). Neighbouring sets differ in one item.

    count_share: the part of epsilon, 0 <= share < 1, that pays for a noisy count beside the bits, which makes the
    estimate of this release much better and unions of many releases worse (docs/accuracy.md). 0 is the paper's release.
    Each call is a release of its own and costs epsilon again: flip a sketch once and share the result.
    Raises EpsilonError, EntropyError.
    """
    for_bits, for_count = parts_of(epsilon, count_share)
    threshold, bits = flip_threshold_of(for_bits), raw.bits
    flipped = flip_bits(bits, threshold, coins).tobytes()
    count = NoisyCount(noisy_count(bits, DiscreteLaplace.of(for_count), coins), for_count) if for_count else None
    return SfmSketch(raw.shape, threshold, raw.hash.name, flipped, count)


def noisy_count(bits: NDArray[np.uint8], noise: DiscreteLaplace, coins: Coins) -> int:
    """The number of set bits plus noise of coins of its own. An item changes the number by at most 1.

    The noise is any integer and the sum is not cut off at 0. It is cut off at 64 bits, which no noise ever reaches.
    """
    words = bits.view(np.uint64) if bits.size % 8 == 0 else bits
    value = int(np.add.reduce(np.bitwise_count(words), dtype=np.int64)) + noise.draw_one(coins)
    return min(max(value, INT64_MIN), INT64_MAX)


def flip_bits(
    bits: NDArray[np.uint8],
    threshold: int,
    coins: Coins,
    word: Word = WORD64,
    cells: int | None = None,
    draw: Draw = draw,
) -> NDArray[np.uint8]:
    """The packed bitmap, each of its first `cells` bits (default: all) inverted with probability threshold / 2^bits.

    Every cell gets its own coin. The coins are drawn before the bits are read.
    """
    flips = draw(8 * bits.size if cells is None else cells, threshold, coins.digits, word)
    flipped = bits.copy()
    flipped[: flips.size] ^= flips
    return flipped
