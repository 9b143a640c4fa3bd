"""The interval estimator of Pagh and Stausholm (2020), patched as the paper says ("Modification to ...").

The paper tells of it: for a tolerance beta an interval of n for each level, intersected over the levels; the smallest
beta with a non-trivial intersection; its midpoint. What it does not tell, how beta makes a level's interval, is a
`Reading` here, and docs/paper.md compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
MAX_TOLERANCE = 64.0
"""At this tolerance every reading leaves an intersection, whatever the sketch: all n above some lower end."""
HALVINGS = 60


@dataclass(frozen=True)
class Reading:
    """How a tolerance beta bounds the expected fraction of ones of a level whose observed fraction is f.

    bounds(f, beta) -> (lowest, highest) expected fraction; wider for a larger beta. step: beta is searched among its
    multiples; None: among all numbers. share: where in the interval the estimate lies, 0.5 for its midpoint.
    """

    name: str
    bounds: Callable[[Array, Array], tuple[Array, Array]]
    step: float | None = None
    share: float = 0.5


def relative(f: Array, beta: Array) -> tuple[Array, Array]:
    """f within a factor 1 +- beta of what is expected, as in a multiplicative Chernoff bound."""
    return f / (1.0 + beta), _over(f, 1.0 - beta)


def additive(f: Array, beta: Array) -> tuple[Array, Array]:
    """f within +- beta of what is expected."""
    return f - beta, f + beta


def relative_zeros(f: Array, beta: Array) -> tuple[Array, Array]:
    """The fraction of zeros within a factor 1 +- beta of what is expected."""
    low, high = relative(1.0 - f, beta)
    return 1.0 - high, 1.0 - low


def deviations(f: Array, beta: Array) -> tuple[Array, Array]:
    """f within beta standard deviations of one noisy bit, sqrt(e (1 - e)), of the expected e: Wilson's interval."""
    square = beta * beta
    centre = (f + square / 2.0) / (1.0 + square)
    spread = beta * np.sqrt(f * (1.0 - f) + square / 4.0) / (1.0 + square)
    return centre - spread, centre + spread


RELATIVE = Reading("relative", relative)
READINGS = (
    RELATIVE,
    Reading("additive", additive),
    Reading("relative zeros", relative_zeros),
    Reading("deviations", deviations),
    Reading("relative, upper end", relative, share=1.0),
    Reading("relative, steps of 0.01", relative, 0.01),
    Reading("additive, steps of 0.01", additive, 0.01),
)
"""The first is the one that stands for Pagh and Stausholm in the figures."""


@dataclass(frozen=True)
class Interval:
    """The intersection at the smallest tolerance; arrays of shape (sketches,)."""

    low: Array
    high: Array
    tolerance: Array
    share: float

    @property
    def estimate(self) -> Array:
        """The midpoint, or what the reading takes for it; where the upper end is infinite, the lower one."""
        high = np.where(np.isfinite(self.high), self.high, self.low)
        return self.low + self.share * (high - self.low)


def intersect(shape: SketchShape, ones: Array, p: Array, q: Array, reading: Reading = RELATIVE) -> Interval:
    """For each sketch the intersection of its levels' intervals at the smallest tolerance that leaves one.

    ones: shape (sketches, levels). p, q: shape (sketches,), Pr(one | lit), Pr(one | empty). The tolerance is found by
    bisection, so that without a step the interval is most often one point. Where a level decides that is full to more
    digits than a float has, it is not: exact arithmetic would raise the lower end to the upper one.
    """
    fractions = np.asarray(ones, np.float64) / shape.buckets
    low, high = np.zeros(len(fractions)), np.full(len(fractions), MAX_TOLERANCE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fits = _non_trivial(*_ends(shape, fractions, p, q, middle, reading))
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    tolerance = high if reading.step is None else np.ceil(high / reading.step) * reading.step
    return Interval(*_ends(shape, fractions, p, q, tolerance, reading), tolerance, reading.share)


def _non_trivial(low: Array, high: Array) -> NDArray[np.bool_]:
    """Not empty, and not infinity alone."""
    return (low <= high) & np.isfinite(low)


def _ends(
    shape: SketchShape, fractions: Array, p: Array, q: Array, tolerance: Array, reading: Reading
) -> tuple[Array, Array]:
    """The largest lower and the smallest upper end over the levels, each of shape (sketches,)."""
    lowest, highest = reading.bounds(fractions, tolerance[:, None])
    p, q = p[:, None], q[:, None]
    low = _items(shape, lowest, p, q)
    # No n at all has fewer expected ones than q: the interval is empty, which a negative upper end says.
    high = np.where(highest < q, -1.0, _items(shape, highest, p, q))
    return low.max(axis=1), high.min(axis=1)


def _items(shape: SketchShape, expected: Array, p: Array, q: Array) -> Array:
    """n at which p - (p - q) gamma_j^n is `expected`: 0 from q downward, infinite from p upward."""
    empty = np.clip((p - expected) / (p - q), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.log(empty) / np.log1p(-shape.rho)


def _over(above: Array, below: Array) -> Array:
    """The quotient, infinite where `below` is not positive."""
    return np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), np.inf)
