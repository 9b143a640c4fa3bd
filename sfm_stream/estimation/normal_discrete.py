"""The sum of a normal and a discrete Laplace variable: the law of a score where the steps of a noisy count are seen.

docs/accuracy.md, eq. 31. A count of epsilon 1 and more is a small integer wherever there are few items, and the limits
of a continuous law cover too little there. `share` is the part of the variance that the discrete variable has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.normal_laplace import bisected

Array = NDArray[np.float64]
LEAST_EPSILON = 1.0
"""Below it the steps are too small to be seen."""
_SEEN, _TAIL = 0.6, 1e-9
_erfc_of = np.frompyfunc(math.erfc, 1, 1)


def step_of(share: Array, epsilon: float) -> Array:
    """The size of a step of 1 in the count, in standard deviations of the score."""
    return np.asarray(np.sqrt(np.minimum(share, 1.0) * 2.0) * math.sinh(0.5 * epsilon))


def seen(share: Array, epsilon: float) -> NDArray[np.bool_]:
    """Where the normal part is too small to hide the steps: its deviation is below 0.6 of one."""
    return np.asarray(np.sqrt(np.maximum(1.0 - share, 0.0)) < _SEEN * step_of(share, epsilon))


def cdf(x: Array, share: Array, epsilon: float) -> Array:
    """Pr(N + step X <= x), N normal with variance 1 - share, Pr(X = i) proportional to e^(-epsilon |i|).

    x and share: shapes that broadcast.
    """
    last = math.ceil(-math.log(_TAIL) / epsilon)
    integers = np.arange(-last, last + 1)
    weight = np.exp(-epsilon * np.abs(integers)) * math.tanh(0.5 * epsilon)
    sigma = np.sqrt(np.maximum(1.0 - share, 1e-9))[..., None]
    apart = (x[..., None] - step_of(share, epsilon)[..., None] * integers) / (sigma * math.sqrt(2.0))
    return np.asarray(1.0 - 0.5 * (np.asarray(_erfc_of(apart), np.float64) @ weight))


def limits_above(distance: Array, share: Array, epsilon: float, confidence: float) -> tuple[Array, Array]:
    """(h, z) of eq. 11 with this law in place of the normal one, at each distance from 0. Shapes (points,)."""
    high = np.full(len(distance), 12.0 + 2.0 * step_of(np.ones(1), epsilon)[0])
    z = bisected(lambda at: 2.0 * cdf(at, share, epsilon) - 1.0, high, confidence)
    mu = np.minimum(distance, z)

    def covered(h: Array) -> Array:
        tail = cdf(-(0.5 * mu + h**2 / (2.0 * np.maximum(mu, 1e-300))), share, epsilon)
        return cdf(h, share, epsilon) - np.where(mu > 0.0, tail, 0.0)

    return bisected(covered, z, confidence), z
