"""How many cells of a raw sketch of n items stay empty: means and covariances in closed form, for real n >= 0.

docs/accuracy.md, eq. 1 and 7 to 9. An item that falls to one cell does not fall to another, so two cells are both empty
less often than if they were independent. The variance of a level sum is therefore smaller than the composite likelihood
assumes, most of all in a sketch of few items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.layout import BitmapLayout

Array = NDArray[np.float64]
_TERMS = 4
"""Terms of the series in eq. 8: the error is below 1e-6 of the whole wherever gamma^n is not negligible."""


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """Empty cells by level at each of several n. All arrays have shape (points, levels) unless said otherwise."""

    sizes: Array
    """Shape (levels,): cells of each level."""
    n: Array
    """Shape (points,)."""
    empty: Array
    """Probability that a cell is empty, gamma^n, in 0..1 (eq. 1)."""
    slope: Array
    """Derivative of `empty` by n, gamma^n ln gamma, <= 0."""
    odds: Array
    """Shape (levels,): o = rho / (1 - rho)."""

    @classmethod
    def at(cls, layout: BitmapLayout, n: Array) -> Occupancy:
        """n: shape (points,), each >= 0 and finite."""
        log_gamma = np.log1p(-layout.rho)
        empty = np.exp(n[:, None] * log_gamma)
        return cls(layout.sizes, n, empty, empty * log_gamma, layout.rho / (1.0 - layout.rho))

    def covariance(self) -> Array:
        """Shape (points, levels, levels): covariance of the numbers of empty cells of two levels (eq. 7)."""
        pairs = self.sizes[:, None] * self.sizes - np.diag(self.sizes)
        joint = np.expm1(self.n[:, None, None] * np.log1p(-self.odds[:, None] * self.odds))
        joint *= pairs * self.empty[:, :, None] * self.empty[:, None, :]
        own = self.sizes * self.empty * (1.0 - self.empty)
        return np.asarray(joint + own[..., None] * np.eye(len(self.sizes)))

    def variance_of(self, weights: Array, cell_variance: Array) -> Array:
        """Shape (points,): the variance of sum_j weights_j Z_j (eq. 9). Both arguments as in covariance_of."""
        return self.covariance_of(weights, weights, cell_variance)

    def covariance_of(self, first: Array, second: Array, cell_variance: Array) -> Array:
        """Shape (points,): the covariance of sum_j first_j Z_j with sum_j second_j Z_j (eq. 9).

        Z_j is the sum of z over the cells of level j; z has mean 1 in an empty cell and 0 in any other. Given which
        cells are empty, z is independent between cells. cell_variance: the variance of z in one cell of each level.
        All arguments: shape (points, levels).
        """
        own = (first * second * cell_variance) @ self.sizes  # eq. 9, first term
        one, two = first * self.empty, second * self.empty
        shared = np.zeros_like(own)
        coefficient = np.ones_like(own)
        for power in range(1, _TERMS + 1):
            coefficient = coefficient * (power - 1 - self.n) / power
            share = self.sizes * self.odds**power
            shared += coefficient * (one @ share) * (two @ share)  # eq. 9, second term
        # Eq. 9, third term: the second one counts each cell as a pair with itself.
        within = (one * two * np.expm1(self.n[:, None] * np.log1p(-(self.odds**2)))) @ self.sizes
        return np.asarray(own + shared - within)
