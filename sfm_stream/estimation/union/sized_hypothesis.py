"""One more hypothesis about shared items, for a tally that knows the sizes of its windows.

docs/accuracy.md, eq. 38 to 40.
Of the items of each window a part phi is nested: the smaller of two windows has only such ones that the larger one has
too. The others are in no other window. With phi = 0 the windows have no item in common, and the union is the sum of
the sizes; with phi = 1 it is the largest window. Near both ends the union is what it is for every kind of overlap, and
the prior keeps to the ends. This is the hypothesis that finds one large window among small ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union.mixture_estimate import Levels
from sfm_stream.estimation.union.size_estimates import SizeEstimates

Array = NDArray[np.float64]
_SCALE = 0.01
"""The prior of phi falls by a factor of e where the union changes by about this share of itself (eq. 39)."""
_NEAR_0 = np.array([0.0, 0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2])
_NEAR_1 = np.array([0, 1, 2, 4, 7, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 350, 500, 800, 1200, 2000]) * 1e-4
_LEAST_PRIOR = 1e-300
_PHI = np.concatenate((_NEAR_0, 1.0 - _NEAR_1[::-1]))


@dataclass(frozen=True, slots=True, eq=False)
class SizedHypothesis:
    """The mean over phi of n and of the distribution of noisy counts; ln evidence as that of the other hypotheses."""

    n: float
    variance: float
    """Of n, if the hypothesis holds."""
    density: Array
    """Shape (levels, columns)."""
    log_evidence: float


def fit(levels: Levels, sizes: SizeEstimates, count_law: Array) -> SizedHypothesis | None:
    """count_law: shape (windows + 1, columns), the noisy counts of a cell set in m windows; None without any item."""
    largest_first = np.sort(sizes.evened())[::-1]
    total = float(largest_first.sum())
    if total <= 0.0:
        return None
    laws = _set_windows(levels.rate, largest_first) @ count_law
    # Eq. 39. Near 1 the union changes by (N / n_1 - 1) of itself for each unit of phi, near 0 by at most 1.
    of_1 = _SCALE / max(total / float(largest_first[0]) - 1.0, 1.0)
    prior = 0.5 * (np.exp(-_PHI / _SCALE) / _SCALE + np.exp(-(1.0 - _PHI) / of_1) / of_1)
    height = levels.log_likelihood(laws) + np.log(np.maximum(prior, _LEAST_PRIOR))
    weight = np.exp(height - height.max()) * np.gradient(_PHI)
    volume = float(weight.sum())
    weight /= volume
    unions = _PHI * largest_first[0] + (1.0 - _PHI) * total
    n = float(weight @ unions)
    # Eq. 40. The other hypotheses have n free, with a flat prior. Here it is as free as the total is uncertain.
    error = n * sizes.total_error / total
    evidence = float(height.max()) + math.log(volume * math.sqrt(2.0 * math.pi) * error)
    return SizedHypothesis(n, float(weight @ (unions - n) ** 2) + error**2, np.tensordot(weight, laws, 1), evidence)


def _set_windows(rate: Array, largest_first: Array) -> Array:
    """Shape (values of phi, levels, windows + 1): the distribution of m, the windows in which a cell is set (eq. 38).

    The nested items set the a largest windows. Of the others, each is set on its own.
    """
    windows = len(largest_first)
    load = -rate[:, None] * largest_first
    nested_empty = np.exp(_PHI[:, None, None] * load)
    apart_empty = np.exp((1.0 - _PHI)[:, None, None] * load)
    edge = np.zeros((*nested_empty.shape[:2], 1))
    nested = np.diff(np.concatenate((edge, nested_empty, edge + 1.0), axis=2), axis=2)  # Pr(a), a = 0 .. windows
    reached = np.zeros_like(nested)
    apart = np.zeros_like(nested)
    apart[..., 0] = 1.0
    for a in range(windows, -1, -1):
        smaller = windows - a  # windows that come after the a largest, of which `apart` has the distribution
        reached[..., a:] += nested[..., a : a + 1] * apart[..., : smaller + 1]
        if a:
            empty = apart_empty[..., a - 1 : a]
            set_too = apart[..., : smaller + 1] * (1.0 - empty)
            apart[..., : smaller + 1] *= empty
            apart[..., 1 : smaller + 2] += set_too
    return reached
