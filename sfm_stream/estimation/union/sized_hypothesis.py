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
_WIDTH = np.gradient(_PHI)
_AT_ONCE = 1 << 14
"""Numbers in each array of a step of eq. 38; of one tally where that takes more."""


@dataclass(frozen=True, slots=True, eq=False)
class SizedHypothesis:
    """For each tally the mean over phi of n and of the distribution of noisy counts, and ln evidence as that of others.

    Shapes (tallies,) unless said otherwise.
    """

    n: Array
    variance: Array
    """Of n, if the hypothesis holds."""
    density: Array
    """Shape (tallies, levels, columns)."""
    log_evidence: Array
    """-inf where the windows have no item."""


def fit(levels: Levels, sizes: SizeEstimates, count_law: Array) -> SizedHypothesis:
    """count_law: shape (windows + 1, columns), the noisy counts of a cell set in m windows."""
    largest_first = np.sort(sizes.evened(), axis=1)[:, ::-1]
    total, largest = largest_first.sum(axis=1), np.maximum(largest_first[:, 0], _LEAST_PRIOR)
    laws = _laws(levels.rate, largest_first, count_law)
    # Eq. 39. Near 1 the union changes by (N / n_1 - 1) of itself for each unit of phi, near 0 by at most 1.
    of_1 = (_SCALE / np.maximum(total / largest - 1.0, 1.0))[:, None]
    prior = 0.5 * (np.exp(-_PHI / _SCALE) / _SCALE + np.exp(-(1.0 - _PHI) / of_1) / of_1)
    height = levels.log_likelihood(laws) + np.log(np.maximum(prior, _LEAST_PRIOR))
    best = height.max(axis=1)
    weight = np.exp(height - best[:, None]) * _WIDTH
    volume = weight.sum(axis=1)
    weight /= volume[:, None]
    unions = _PHI * largest_first[:, :1] + (1.0 - _PHI) * total[:, None]
    n = np.sum(weight * unions, axis=1)
    # Eq. 40. The other hypotheses have n free, with a flat prior. Here it is as free as the total is uncertain.
    error = n * sizes.total_error / np.maximum(total, _LEAST_PRIOR)
    with np.errstate(divide="ignore"):
        evidence = best + np.log(volume * math.sqrt(2.0 * math.pi) * error)
    density = (weight[:, None] @ laws.reshape(*weight.shape, -1)).reshape(levels.counts.shape)
    return SizedHypothesis(n, np.sum(weight * (unions - n[:, None]) ** 2, axis=1) + error**2, density, evidence)


def _laws(rate: Array, largest_first: Array, count_law: Array) -> Array:
    """Shape (tallies, values of phi, levels, columns): the distribution of the noisy count of a cell.

    rate: shape (tallies, levels). A few tallies at a time, whose arrays are small enough to stay near the processor.
    """
    (tallies, levels), states = rate.shape, count_law.shape[0]
    at_once = max(1, _AT_ONCE // (len(_PHI) * levels * states))
    laws = np.empty((tallies, len(_PHI) * levels, count_law.shape[1]))
    for low in range(0, tallies, at_once):
        few = slice(low, low + at_once)
        set_windows = _set_windows(rate[few], largest_first[few])
        np.matmul(set_windows.reshape(states, len(rate[few]), -1).transpose(1, 2, 0), count_law, out=laws[few])
    return laws.reshape(tallies, len(_PHI), levels, -1)


def _set_windows(rate: Array, largest_first: Array) -> Array:
    """Shape (windows + 1, tallies, values of phi, levels): the probability of m, the windows in which a cell is set.

    Eq. 38. The nested items set the a largest windows. Of the others, each is set on its own. rate: shape (tallies,
    levels). largest_first: shape (tallies, windows).
    """
    windows = largest_first.shape[1]
    load = -rate[:, None] * largest_first.T[..., None, None]
    edge = np.zeros((1, len(rate), len(_PHI), rate.shape[1]))
    # Pr(a), a = 0 .. windows
    nested = np.diff(np.concatenate((edge, np.exp(_PHI[:, None] * load), edge + 1.0)), axis=0)
    empty = np.exp((1.0 - _PHI)[:, None] * load)
    reached, apart = np.zeros_like(nested), np.zeros_like(nested)
    apart[0] = 1.0
    for a in range(windows, -1, -1):
        smaller = windows - a  # windows that come after the a largest, of which `apart` has the distribution
        reached[a:] += nested[a] * apart[: smaller + 1]
        if a:
            set_too = apart[: smaller + 1] * (1.0 - empty[a - 1])
            apart[: smaller + 1] *= empty[a - 1]
            apart[1 : smaller + 2] += set_too
    return reached
