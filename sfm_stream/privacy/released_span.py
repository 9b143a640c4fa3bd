"""The lengths of time that a pipeline releases, each with its own price and sketch."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sfm_stream.privacy.epsilon import decimals, places_for
from sfm_stream.sketch.shape import SketchShape


@dataclass(frozen=True, slots=True)
class ReleasedSpan:
    """A length of time whose raw sketches are released, one for each key and window of this length.

    epsilon: of one release, its bits and its count together. flip_threshold: what the flip makes of the part for the
    bits, an integer on the grid of 2^-64. count_epsilon: the part for the noisy count; 0: releases have none. shape: of
    the sketches.
    """

    size_ms: int
    epsilon: Decimal
    flip_threshold: int
    count_epsilon: Decimal
    shape: SketchShape

    @property
    def bits_epsilon(self) -> Decimal:
        """The part for the bits, or less by a rounding: epsilon without that of the count."""
        with decimals(places_for(self.epsilon) + places_for(self.count_epsilon)):
            return self.epsilon - self.count_epsilon


def only(spans: tuple[ReleasedSpan, ...]) -> ReleasedSpan:
    """The one span of a pipeline. Raises ValueError where there are several."""
    (span,) = spans
    return span
