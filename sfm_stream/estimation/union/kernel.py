"""From lit windows to noisy ones: what a cell shows when the bit was set in m of k windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
MAX_SUPPORT = 64


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Pr(c ones of k | m of the k bits set), the convolution of Bin(m, p) and Bin(k - m, q)."""

    empty: Array
    """Shape (k + 1,): m = 0."""
    lit: Array
    """Shape (support, k + 1): m = each of `set_bits`."""
    set_bits: NDArray[np.int64]
    """Shape (support,): 1 .. k, all of them up to 64 and 64 of them, spread geometrically, for larger k."""


@lru_cache(maxsize=8)
def kernel(channel: Channel, releases: int) -> Kernel:
    """The kernel of `releases` sketches that went through one channel."""
    set_bits = _support(releases)
    rows = [_row(channel, releases, int(m)) for m in (0, *set_bits)]
    table = np.array(rows)
    return Kernel(table[0], np.ascontiguousarray(table[1:]), set_bits)


def _support(releases: int) -> NDArray[np.int64]:
    if releases <= MAX_SUPPORT:
        return np.arange(1, releases + 1)
    dense = np.arange(1, MAX_SUPPORT // 2 + 1)
    spread = np.rint(np.geomspace(dense[-1], releases, MAX_SUPPORT // 2 + 1)).astype(np.int64)
    return np.union1d(dense, spread)


def _row(channel: Channel, releases: int, set_bits: int) -> Array:
    hits = _binomial(set_bits, channel.miss)[::-1]
    return np.convolve(hits, _binomial(releases - set_bits, channel.q))


def _binomial(trials: int, probability: float) -> Array:
    """Shape (trials + 1,): the binomial distribution, through logarithms; 0 < probability <= 1/2."""
    s = np.arange(trials + 1)
    choose = np.array([lgamma(trials + 1) - lgamma(i + 1) - lgamma(trials - i + 1) for i in range(trials + 1)])
    return np.asarray(np.exp(choose + s * np.log(probability) + (trials - s) * np.log1p(-probability)))
