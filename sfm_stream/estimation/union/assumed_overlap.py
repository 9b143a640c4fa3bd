"""What is assumed of shared items: the mixture of hypotheses about overlap, and the sized hypothesis beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfm_stream.estimation.union import sized_hypothesis
from sfm_stream.estimation.union.count_noise import MAX_SET_WINDOWS, CountNoise
from sfm_stream.estimation.union.mixture_estimate import Mixture
from sfm_stream.estimation.union.size_estimates import SizeEstimates

_LIKELY, _STEEPNESS = 1.5, 3.0
"""The sized hypothesis counts in full while its ln likelihood is less than _LIKELY below the mixture's (eq. 37)."""


@dataclass(frozen=True, slots=True)
class AssumedOverlap:
    """What hypotheses about overlap say: n, its variance if one of them holds, and how badly they fit (eq. 32)."""

    n: float
    variance: float
    misfit: float


def assumed_overlap(noise: CountNoise, mixture: Mixture, sizes: SizeEstimates | None) -> AssumedOverlap:
    """The mixture, and the sized hypothesis with the share that its evidence and its likelihood give it."""
    levels, releases = mixture.levels, 0 if sizes is None else len(sizes.values)
    alone = AssumedOverlap(mixture.n, mixture.variance, levels.misfit(mixture.density))
    if sizes is None or releases > MAX_SET_WINDOWS:
        return alone
    sized = sized_hypothesis.fit(levels, sizes, np.vstack((noise.never_set, noise.when_set)))
    if sized is None:
        return alone
    behind = float(levels.log_likelihood(mixture.density) - levels.log_likelihood(sized.density))
    # Eq. 37: where it claims more than the others, it has to fit the counts as well as they do.
    share = _logistic(sized.log_evidence - mixture.log_evidence) * _logistic(_STEEPNESS * (_LIKELY - behind))
    rest, apart = 1.0 - share, sized.n - mixture.n
    variance = share * sized.variance + rest * mixture.variance + share * rest * apart**2
    misfit = levels.misfit(share * sized.density + rest * mixture.density)
    return AssumedOverlap(share * sized.n + rest * mixture.n, variance, misfit)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -500.0), 500.0)))
