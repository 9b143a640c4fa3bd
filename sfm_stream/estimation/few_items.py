"""Limits for few items under little noise: at each integer by the law of the score itself, not by its normal limit.

docs/accuracy.md, eq. 45 to 48. Where the estimate is known to two items, the data are small integers: limits of a
continuous law cover 87 to 98 % there where they say 95.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.intervals import Acceptance
from sfm_stream.estimation.law_of_few import Parts, limits
from sfm_stream.estimation.score import Scores, Solution
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
_MOST_ERROR = 2.2
"""Items: from this standard error on the normal and the Laplace law are right."""
_MOST_LEVELS = 64
"""Layouts with a group for each cell keep the normal law: the product would have as many factors."""
_EACH, _APART = 16, 1.12
"""Transforms are made for each integer up to 16, and then for integers apart by this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class FewItems:
    """Score and limits at the integers from 0 to as many items as this law is for."""

    scores: Scores
    accepted: Acceptance

    def refined(self, solution: Solution, sums: Array) -> Solution:
        """The solution with limits by this law, as far as they lie within these integers. sums: as for invert."""
        if solution.low > self.scores.n[-1]:
            return solution
        below, above = self.accepted.beyond(self.scores.of(sums))
        inside = np.flatnonzero((below <= 0.0) & (above >= 0.0))
        if not inside.size:
            return self._between(solution, below, above)
        first, last = int(inside[0]), int(inside[-1])
        low = first - _share(below[first], below[first - 1]) if first else 0.0
        high = solution.high if last + 1 == len(above) else last + _share(above[last], above[last + 1])
        return replace(solution, low=min(low, solution.value), high=max(high, solution.value))

    def _between(self, solution: Solution, below: Array, above: Array) -> Solution:
        """Where no integer is accepted: what lies between the last one too small and the first one too large."""
        small, large = int(np.argmax(below <= 0.0)) - 1, len(above) - int(np.argmax(above[::-1] >= 0.0))
        if small < 0 or large != small + 1 or large == len(above):
            return solution
        ends = small + _share(below[small], below[large]), large - _share(above[large], above[small])
        return replace(solution, low=min(*ends, solution.value), high=max(*ends, solution.value))


def few_items(
    layout: BitmapLayout,
    channel: Channel,
    epsilon: float,
    scores: Scores,
    scores_at: Callable[[Array], Scores],
    confidence: float,
) -> FewItems | None:
    """None where the noise is too large for this law to be needed at any n.

    epsilon: of the count, 0 without one. scores: at a grid of n; scores_at: at any other n.
    """
    if scores.standard_error[0] >= _MOST_ERROR or len(layout.sizes) > _MOST_LEVELS:
        return None
    much = scores.standard_error >= _MOST_ERROR
    most = math.ceil(scores.n[int(np.argmax(much))]) if much.any() else int(layout.capacity)
    knots = _knots(most)
    at = scores_at(np.arange(knots[-1] + 1.0))
    h, z = _limits(Parts.of(layout, channel, epsilon, at), at.distance, knots, confidence)
    return FewItems(at, Acceptance.of_limits(at.distance, h, z))


def _limits(parts: Parts, distance: Array, knots: list[int], confidence: float) -> tuple[Array, Array]:
    """(h, z) at each integer: from transforms at the knots, which hold for the integers up to the next one."""
    if not parts.stepped:
        found = [limits(parts.law(i), distance[i : i + 1], confidence) for i in knots]
        h, z = (np.concatenate(column) for column in zip(*found, strict=True))
        return np.interp(parts.n, knots, h), np.interp(parts.n, knots, z)
    pieces = []
    for first, end in zip(knots, [*knots[1:], knots[-1] + 1], strict=True):
        law = parts.between(first, end).stepped_law(parts.smear_law(first))
        pieces.append(limits(law, distance[first:end], confidence))
    h, z = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return h, z


def _knots(most: int) -> list[int]:
    """Ascending integers from 0 to at least `most`."""
    found = list(range(_EACH + 1))
    while found[-1] < most:
        found.append(math.ceil(found[-1] * _APART))
    return found


def _share(inside: float, outside: float) -> float:
    """Where between two neighbouring integers a limit lies: 0 at the accepted one. Both are 0 at the limit."""
    return float(inside / (inside - outside)) if inside * outside < 0.0 else 0.0
