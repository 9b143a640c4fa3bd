"""How many items the windows of two tallies share, from the cells in which both have ones.

docs/accuracy.md, eq. 42 to 44. Each cell of a tally gets a signal x of its count of ones, whose mean is 1 in a cell
that is empty in all windows and near 0 in any other, however many of the windows have set it. Over the cells of a level
the signals of two tallies vary together as far as the tallies have items in common: each such item is in one cell of
both. The signal of the moment (union/moment_estimate.py) has a mean of exactly 0 in each set cell, and so much noise
that nothing is left of it here; this one gives up some of that for less noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.count_noise import count_noise
from sfm_stream.sketch.mechanism import Channel, Mechanism
from sfm_stream.sketch.tally import Tally

Array = NDArray[np.float64]
_NOISE_WEIGHT = 0.03
"""What the mean square of x in an empty cell weighs beside its mean square error over set cells (eq. 42)."""
_SHARES = np.linspace(0.0, 1.0, 41)
_LEAST_CHANCE = 1e-6
"""Counts that an empty cell shows even less often are taken to have this probability, so that x stays finite there."""
_FEW_RELEASES = 1024
"""Up to so many, a matrix with a row and a column for each count is small."""
_LEAST_CONTRAST, _MOST_CONTRAST, _TINY = 1e-3, 1.5, 1e-12


@dataclass(frozen=True, slots=True)
class SharedPart:
    """The part of the smaller union that the larger one has too, 0..1: its mean and variance, flat before the data."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class CellSignal:
    """x of each cell of a tally."""

    deviations: Array
    """Shape (levels, buckets): x less its mean over the level."""
    variance: Array
    """Shape (levels,): the mean square of the deviations, > 0."""
    contrast: float
    """The mean of x in empty cells less that in set ones."""
    doubt: float
    """The standard deviation of the contrast between cells that are set in few windows and in many."""

    @classmethod
    def of(cls, tally: Tally, items: float) -> CellSignal:
        """items: in the union of its windows, > 0."""
        of_count, doubt = _signal(Mechanism.flipping(tally.flip_threshold).channel, tally.releases)
        x = of_count[tally.counts]
        means = x.mean(axis=1)
        deviations = x - means[:, None]
        variance = np.maximum(np.mean(deviations**2, axis=1), _TINY)
        occupied = -np.expm1(items * np.log1p(-tally.shape.rho))
        # Eq. 43: 1 - mean = contrast * occupied, weighted by the precision of the means.
        fitted = float(np.sum(occupied * (1.0 - means) / variance) / np.sum(occupied**2 / variance))
        return cls(deviations, variance, min(max(fitted, _LEAST_CONTRAST), _MOST_CONTRAST), doubt)


def shared_part(tallies: tuple[Tally, Tally], items: tuple[float, float]) -> SharedPart:
    """What two tallies of one shape have in common. items: in the union of the windows of each, > 0."""
    first, second = (CellSignal.of(tally, n) for tally, n in zip(tallies, items, strict=True))
    shape = tallies[0].shape
    log_gamma = np.log1p(-shape.rho)
    together = np.einsum("jb,jb->j", first.deviations, second.deviations)
    both_empty = np.exp(sum(items) * log_gamma)
    # Eq. 44.
    more_empty = np.expm1(-min(items) * _SHARES[:, None] * log_gamma)
    expected = first.contrast * second.contrast * shape.sizes * both_empty * more_empty
    height = -0.5 * np.sum((together - expected) ** 2 / (shape.sizes * first.variance * second.variance), axis=1)
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    mean = float(weight @ _SHARES)
    doubt = mean**2 * ((first.doubt / first.contrast) ** 2 + (second.doubt / second.contrast) ** 2)
    return SharedPart(mean, float(weight @ (_SHARES - mean) ** 2) + doubt)


@lru_cache(maxsize=16)
def _signal(channel: Channel, releases: int) -> tuple[Array, float]:
    """(x of each count, shape (releases + 1,); the standard deviation of its mean between m = 1 .. k) (eq. 42)."""
    noise = count_noise(channel, releases)
    never, when_set = np.maximum(noise.never_set, _LEAST_CHANCE), noise.when_set
    if releases <= _FEW_RELEASES:
        square = when_set.T @ when_set / len(when_set) + _NOISE_WEIGHT * np.diag(never)
        x = np.linalg.solve(square, noise.never_set)
    else:  # the same through a matrix of the size of when_set @ when_set.T (Woodbury's identity)
        weighed = when_set / (_NOISE_WEIGHT * never)
        small = len(when_set) * np.eye(len(when_set)) + weighed @ when_set.T
        x = noise.never_set / (_NOISE_WEIGHT * never) - weighed.T @ np.linalg.solve(small, weighed @ noise.never_set)
    x /= noise.never_set @ x
    return np.asarray(x), float(np.std(noise.when_set @ x))
