"""Randomized response (the paper's F_{p,q}) by any mechanism, on a raw bitmap of any layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.methods.mechanisms import MechanismFamily, symmetric
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.epsilon import Epsilon, shared
from sfm_stream.sketch.bernoulli import WORD64, Word, draw
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import RawBitmap


def privatize(
    raw: RawBitmap, epsilon: Epsilon, family: MechanismFamily = symmetric, coins: Coins = SYSTEM_COINS
) -> NoisyBitmap:
    """An epsilon-DP bitmap of the same set.

    family: symmetric, xor or pagh_stausholm (mechanisms.py). Where an item sets up to h cells, each cell gets
    epsilon / h. Each call is a release of its own and costs epsilon again. Raises EpsilonError, EntropyError.
    """
    mechanism = family(shared(epsilon, raw.layout.throws))
    bits = respond(raw.bits, mechanism, coins, cells=raw.layout.cells)
    return NoisyBitmap(raw.layout, raw.hash.name, NoisyBits(mechanism, raw.layout.cells, bits.tobytes()))


def respond(
    bits: NDArray[np.uint8], mechanism: Mechanism, coins: Coins, word: Word = WORD64, cells: int | None = None
) -> NDArray[np.uint8]:
    """The packed bitmap after randomized response on each of its first `cells` bits (default: all).

    The thresholds of the mechanism are in units of 2^-word.bits. Each cell gets two coins, one for a set bit and one
    for an unset bit. Both are drawn before the bits are read, so the number of digits drawn does not depend on them.
    """
    count = 8 * bits.size if cells is None else cells
    shown = np.zeros((2, bits.size), np.uint8)
    for row, threshold in zip(shown, (mechanism.q_threshold, mechanism.p_threshold), strict=True):
        row[: -(-count // 8)] = draw(count, threshold, coins.digits, word)
    where_unset, where_set = shown
    return np.asarray((where_unset & ~bits) | (where_set & bits))
