"""How many cells of a raw sketch of n items stay empty: means and covariances in closed form, for real n >= 0.

A cell of level j is empty with probability gamma_j^n, gamma_j = 1 - rho_j. Cells compete for the same n items, so
they depend negatively: Pr(two cells of levels j, l both empty) = (1 - rho_j - rho_l)^n < gamma_j^n gamma_l^n. That
makes a sketch of few items far more accurate than its composite likelihood believes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.layout import Layout

Array = NDArray[np.float64]
_TERMS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """Empty cells by level at each of several n. All arrays have shape (points, levels) unless said otherwise."""

    sizes: Array
    """Shape (levels,): cells of each level."""
    n: Array
    """Shape (points,)."""
    empty: Array
    """gamma^n, in 0..1."""
    slope: Array
    """Its derivative, gamma^n ln gamma, <= 0."""
    odds: Array
    """Shape (levels,): rho / (1 - rho)."""

    @classmethod
    def at(cls, layout: Layout, n: Array) -> Occupancy:
        """n: shape (points,), each >= 0 and finite."""
        log_gamma = np.log1p(-layout.rho)
        empty = np.exp(n[:, None] * log_gamma)
        return cls(layout.sizes, n, empty, empty * log_gamma, layout.rho / (1.0 - layout.rho))

    def variance_of(self, weights: Array, cell_variance: Array) -> Array:
        """Shape (points,): variance of sum over levels of weights * (sum over the level's cells of z).

        z has mean 1 in an empty cell and 0 in another, is independent between cells given which are empty, and has
        variance cell_variance in a cell of the level. The covariances are those of the empty cells,
        B_j B_l [(1 - rho_j - rho_l)^n - gamma_j^n gamma_l^n] and, within a level, with B (B - 1) for B^2; both equal
        gamma_j^n gamma_l^n [(1 - odds_j odds_l)^n - 1], whose binomial series has one rank-one term for each power.
        The series stops after 4 terms: the error is below 1e-6 of the whole wherever gamma^n is not negligible.
        """
        own = (weights**2 * cell_variance) @ self.sizes
        signed = weights * self.empty
        shared = np.zeros_like(own)
        coefficient = np.ones_like(own)
        for power in range(1, _TERMS + 1):
            coefficient = coefficient * (power - 1 - self.n) / power
            shared += coefficient * (signed @ (self.sizes * self.odds**power)) ** 2
        within = (signed**2 * np.expm1(self.n[:, None] * np.log1p(-(self.odds**2)))) @ self.sizes
        return np.asarray(own + shared - within)
