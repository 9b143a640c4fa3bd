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
    """Empty cells by level at each of several n. All arrays have shape (.., points, levels) unless said otherwise."""

    sizes: Array
    """Shape (levels,): cells of each level."""
    n: Array
    """Shape (.., points)."""
    empty: Array
    """Probability that a cell is empty, gamma^n, in 0..1 (eq. 1)."""
    slope: Array
    """Derivative of `empty` by n, gamma^n ln gamma, <= 0."""
    odds: Array
    """Shape (levels,): o = rho / (1 - rho)."""

    @classmethod
    def at(cls, layout: BitmapLayout, n: Array) -> Occupancy:
        """n: shape (.., points), each >= 0 and finite."""
        log_gamma = np.log1p(-layout.rho)
        empty = np.exp(n[..., None] * log_gamma)
        return cls(layout.sizes, n, empty, empty * log_gamma, layout.rho / (1.0 - layout.rho))

    def covariance(self) -> Array:
        """Shape (.., points, levels, levels): covariance of the numbers of empty cells of two levels (eq. 7)."""
        pairs = self.sizes[:, None] * self.sizes - np.diag(self.sizes)
        joint = np.expm1(self.n[..., None, None] * np.log1p(-self.odds[:, None] * self.odds))
        joint *= pairs * self.empty[..., :, None] * self.empty[..., None, :]
        own = self.sizes * self.empty * (1.0 - self.empty)
        return np.asarray(joint + own[..., None] * np.eye(len(self.sizes)))

    def variance_of(self, weights: Array, cell_variance: Array) -> Array:
        """Shape (.., points): the variance of sum_j weights_j Z_j (eq. 9). Both arguments as in covariance_of."""
        return self.covariance_of(weights, weights, cell_variance)

    def covariance_of(self, first: Array, second: Array, cell_variance: Array) -> Array:
        """Shape (.., points): the covariance of sum_j first_j Z_j with sum_j second_j Z_j (eq. 9).

        Z_j is the sum of z over the cells of level j; z has mean 1 in an empty cell and 0 in any other. Given which
        cells are empty, z is independent between cells. cell_variance: the variance of z in one cell of each level.
        All arguments: shape (.., points, levels).
        """
        own = (first * second * cell_variance) @ self.sizes  # eq. 9, first term
        one, two = first * self.empty, second * self.empty
        coefficients, shares, within = self.between_cells()
        shared = np.sum(coefficients * (one @ shares) * (two @ shares), axis=-1)  # eq. 9, second term
        return np.asarray(own + shared - np.sum(one * two * within, axis=-1))

    def between_cells(self) -> tuple[Array, Array, Array]:
        """What the second and the third term of eq. 9 need, whatever the weights are.

        The coefficients of the series, shape (.., points, terms); the cells of a level times each power of its odds,
        shape (levels, terms); and what the second term has too much, for each level and square of a weight: it counts
        each cell as a pair with itself.
        """
        powers = np.arange(1, _TERMS + 1)
        coefficients = np.asarray(np.cumprod((powers - 1 - self.n[..., None]) / powers, axis=-1))
        shares = self.sizes[:, None] * self.odds[:, None] ** powers
        return coefficients, shares, np.expm1(self.n[..., None] * np.log1p(-(self.odds**2))) * self.sizes
