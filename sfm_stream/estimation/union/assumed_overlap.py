"""What is assumed of shared items: the mixture of hypotheses about overlap, and the sized hypothesis beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.union import sized_hypothesis
from sfm_stream.estimation.union.count_noise import MAX_SET_WINDOWS, CountNoise
from sfm_stream.estimation.union.mixture_estimate import Levels, Mixture
from sfm_stream.estimation.union.size_estimates import SizeEstimates

Array = NDArray[np.float64]
_LIKELY, _STEEPNESS = 1.5, 3.0
"""The sized hypothesis counts in full while its ln likelihood is less than _LIKELY below the mixture's (eq. 37)."""


@dataclass(frozen=True, slots=True)
class AssumedOverlap:
    """What hypotheses about overlap say: n, its variance if one of them holds, and how badly they fit (eq. 32)."""

    n: float
    variance: float
    misfit: float


def assumed_overlaps(
    noise: CountNoise, mixtures: Sequence[Mixture], sizes: SizeEstimates | None
) -> list[AssumedOverlap]:
    """Of each tally: the mixture, and the sized hypothesis with the share that evidence and likelihood give it.

    Tallies with equally many levels are looked at together; no number of one depends on the others.
    """
    by_levels: dict[int, list[int]] = {}
    for number, mixture in enumerate(mixtures):
        by_levels.setdefault(mixture.levels.rate.shape[1], []).append(number)
    found: dict[int, AssumedOverlap] = {}
    for numbers in by_levels.values():
        together = [mixtures[number] for number in numbers]
        found.update(zip(numbers, _of_equal_levels(noise, together, sizes and sizes.only(numbers)), strict=True))
    return [found[number] for number in range(len(mixtures))]


def _of_equal_levels(
    noise: CountNoise, mixtures: Sequence[Mixture], sizes: SizeEstimates | None
) -> Iterator[AssumedOverlap]:
    levels, density = Levels.of([mixture.levels for mixture in mixtures]), np.stack([m.density for m in mixtures])
    n, variance, log_evidence = np.array([(m.n, m.variance, m.log_evidence) for m in mixtures]).T
    if sizes is not None and sizes.values.shape[1] <= MAX_SET_WINDOWS:
        sized = sized_hypothesis.fit(levels, sizes, np.vstack((noise.never_set, noise.when_set)))
        behind = levels.log_likelihood(density) - levels.log_likelihood(sized.density)
        # Eq. 37: where it claims more than the others, it has to fit the counts as well as they do.
        share = _logistic(sized.log_evidence - log_evidence) * _logistic(_STEEPNESS * (_LIKELY - behind))
        rest, apart = 1.0 - share, sized.n - n
        variance = share * sized.variance + rest * variance + share * rest * apart**2
        density = share[:, None, None] * sized.density + rest[:, None, None] * density
        n = share * sized.n + rest * n
    return map(AssumedOverlap, n.tolist(), variance.tolist(), levels.misfit(density).tolist())


def _logistic(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -500.0, 500.0)))
