"""How many ones a cell shows over k releases, when its bit was set in m of the k windows (docs/accuracy.md, eq. 20)."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.kept_results import keep_results
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
MAX_SET_WINDOWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class CountNoise:
    """Pr(c ones in k releases | the bit was set in m of the k windows), for c = 0 .. k (eq. 20)."""

    never_set: Array
    """Shape (k + 1,): the distribution for m = 0."""
    when_set: Array
    """Shape (values of m, k + 1): the distributions for each m of `set_windows`."""
    set_windows: NDArray[np.int64]
    """Shape (values of m,): all of 1 .. k up to k = 64; for larger k about 64 of them, with growing distances."""


@keep_results(most=8, most_bytes=16 << 20)
def count_noise(channel: Channel, releases: int) -> CountNoise:
    """The distributions for `releases` sketches with the same flip probability."""
    set_windows = _set_windows(releases)
    rows = np.empty((1 + len(set_windows), releases + 1))
    for place, m in enumerate((0, *set_windows.tolist())):
        rows[place] = _row(channel, releases, m)
    return CountNoise(rows[0], rows[1:], set_windows)


def _set_windows(releases: int) -> NDArray[np.int64]:
    if releases <= MAX_SET_WINDOWS:
        return np.arange(1, releases + 1)
    dense = np.arange(1, MAX_SET_WINDOWS // 2 + 1)
    spread = np.rint(np.geomspace(dense[-1], releases, MAX_SET_WINDOWS // 2 + 1)).astype(np.int64)
    return np.union1d(dense, spread)


def _row(channel: Channel, releases: int, set_windows: int) -> Array:
    """Shape (releases + 1,): the convolution of Bin(m, p) and Bin(k - m, q) (eq. 20)."""
    ones_where_set = _binomial(set_windows, channel.miss)[::-1]
    return np.convolve(ones_where_set, _binomial(releases - set_windows, channel.q))


def _binomial(trials: int, probability: float) -> Array:
    """Shape (trials + 1,): the binomial distribution, through logarithms; 0 < probability <= 1/2."""
    s = np.arange(trials + 1)
    choose = np.array([lgamma(trials + 1) - lgamma(i + 1) - lgamma(trials - i + 1) for i in range(trials + 1)])
    return np.asarray(np.exp(choose + s * np.log(probability) + (trials - s) * np.log1p(-probability)))
