"""The lengths of time that a pipeline releases, each with its own price and sketch."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sfm_stream.sketch.shape import SketchShape


@dataclass(frozen=True, slots=True)
class ReleasedSpan:
    """A length of time whose raw sketches are released, one for each key and window of this length.

    epsilon: of the bits of one release, as it was configured. flip_threshold: what the flip makes of it, an integer on
    the grid of 2^-64. shape: of the sketches.
    """

    size_ms: int
    epsilon: Decimal
    flip_threshold: int
    shape: SketchShape


def only(spans: tuple[ReleasedSpan, ...]) -> ReleasedSpan:
    """The one span of a pipeline. Raises ValueError where there are several."""
    (span,) = spans
    return span
