"""The sum of a normal and a Laplace variable, of variance 1 together: the law of a score that holds a noisy count.

docs/accuracy.md, eq. 31. `share` is the part of the variance that the Laplace variable has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SHARES, _DISTANCES, _HALVINGS = 33, 65, 34
_ROOT_2 = math.sqrt(2.0)
_erfc_of = np.frompyfunc(math.erfc, 1, 1)


def cdf(x: Array, share: Array) -> Array:
    """Pr(N + L <= x): N normal with variance 1 - share, L Laplace with variance share, for 0 <= share <= 1.

    x and share: shapes that broadcast.
    """
    inner = np.clip(share, 1e-9, 1.0 - 1e-9)
    sigma, scale, at = np.sqrt(1.0 - inner), np.sqrt(0.5 * inner), np.abs(x)
    # For x >= 0, with t = x / sigma and r = sigma / scale:
    # 1 - cdf = Phi(-t) + (e^(r^2 / 2 - x / scale) Phi(t - r) - e^(r^2 / 2 + x / scale) Phi(-t - r)) / 2.
    # Each product is e^(-t^2 / 2) erfcx(..) / 2, which neither overflows nor cancels.
    t, r = np.minimum(at / sigma, 40.0), sigma / scale
    bell = 0.5 * np.exp(-0.5 * t**2)
    nearer = bell * _erfcx(np.abs(r - t) / _ROOT_2)
    nearer = np.where(r > t, nearer, np.exp(np.minimum(0.5 * r**2 - at / scale, 0.0)) - nearer)
    farther = bell * _erfcx((r + t) / _ROOT_2)
    above = 0.5 * _erfc(t / _ROOT_2) + 0.5 * (nearer - farther)
    return np.asarray(np.where(x >= 0.0, 1.0 - above, above))


def _erfc(u: Array) -> Array:
    return np.asarray(_erfc_of(u), np.float64)


def _erfcx(u: Array) -> Array:
    """e^(u^2) erfc(u) for u >= 0; beyond 6 by its asymptotic series, to 1e-9 of itself."""
    small, v = np.minimum(u, 6.0), 1.0 / np.clip(u, 6.0, 1e6) ** 2
    series = 1.0 - v / 2.0 * (1.0 - 1.5 * v * (1.0 - 2.5 * v * (1.0 - 3.5 * v)))
    return np.where(u < 6.0, np.exp(small**2) * _erfc(small), series * np.sqrt(v / math.pi))


def limits_above(distance: Array, share: Array, confidence: float) -> tuple[Array, Array]:
    """(h, z) of eq. 11 with this law in place of the normal one, at each distance from 0. Shapes (points,)."""
    shares, z_table, h_table = _tables(confidence)
    z = np.interp(share, shares, z_table)
    column = np.minimum(distance / z, 1.0) * (_DISTANCES - 1)
    row = np.sqrt(share) * (_SHARES - 1)
    i = np.minimum(row.astype(np.int64), _SHARES - 2)
    j = np.minimum(column.astype(np.int64), _DISTANCES - 2)
    down, right = row - i, column - j
    upper = (1.0 - right) * h_table[i, j] + right * h_table[i, j + 1]
    lower = (1.0 - right) * h_table[i + 1, j] + right * h_table[i + 1, j + 1]
    return (1.0 - down) * upper + down * lower, z


@lru_cache(maxsize=8)
def _tables(confidence: float) -> tuple[Array, Array, Array]:
    """Shares, even in their roots; z at each; and h at each share and at distances 0 .. z, both by bisection."""
    shares = np.linspace(0.0, 1.0, _SHARES) ** 2
    z = bisected(lambda h: 2.0 * cdf(h, shares) - 1.0, np.full(_SHARES, 8.0), confidence)
    mu = z[:, None] * np.linspace(0.0, 1.0, _DISTANCES)
    wide = np.broadcast_to(shares[:, None], mu.shape)

    def covered(h: Array) -> Array:
        tail = cdf(-(0.5 * mu + h**2 / (2.0 * np.maximum(mu, 1e-300))), wide)
        return cdf(h, wide) - np.where(mu > 0.0, tail, 0.0)

    return shares, z, bisected(covered, np.broadcast_to(z[:, None], mu.shape), confidence)


def bisected(covered: Callable[[Array], Array], high: Array, confidence: float) -> Array:
    """Where `covered`, which ascends from 0 on, reaches the confidence: between 0 and high, shapes as high has."""
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        less = covered(middle) < confidence
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray(high)
