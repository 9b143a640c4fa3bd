"""The lengths of time that a pipeline releases, each with its own price and sketch."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import gcd

from sfm_stream.privacy.epsilon import decimals, places_for
from sfm_stream.sketch.shape import SketchShape


@dataclass(frozen=True, slots=True)
class ReleasedSpan:
    """A length of time whose raw sketches are released, one for each key and window of it.

    name: as it was configured: "5m", "hour", "day". size_ms: of every window; None for days, weeks and months of a
    zone. epsilon: of one release, its bits and its count together. flip_threshold: what the flip makes of the part for
    the bits, an integer on the grid of 2^-64. count_epsilon: the part for the noisy count; 0: releases have none.
    shape: of the sketches.
    """

    name: str
    size_ms: int | None
    epsilon: Decimal
    flip_threshold: int
    count_epsilon: Decimal
    shape: SketchShape

    @property
    def bits_epsilon(self) -> Decimal:
        """The part for the bits, or less by a rounding: epsilon without that of the count."""
        with decimals(places_for(self.epsilon) + places_for(self.count_epsilon)):
            return self.epsilon - self.count_epsilon


def windows_per_day(size_ms: int | None, longest_day_ms: int, day_step_ms: int) -> int:
    """The most windows of this size that one day can touch; None: a day, week or month of a zone.

    day_step_ms: every day begins on a multiple of it.
    """
    if size_ms is None:
        return 1
    # The later in a window a day begins, the more windows it touches.
    latest_ms = size_ms - gcd(size_ms, day_step_ms)
    return -(-(latest_ms + longest_day_ms) // size_ms)


def names_in_records(spans: tuple[ReleasedSpan, ...]) -> tuple[str, ...]:
    """The names of the spans as every record of them has them; none where the length of a window and its bits are all
    that there is to say, so that records are of version 1 of the format. spans: the base span first.
    """
    (base, *coarser) = spans
    if not coarser and base.size_ms is not None and not base.count_epsilon:
        return ()
    return tuple(span.name for span in spans)


def widest(spans: tuple[ReleasedSpan, ...]) -> SketchShape:
    """The shape with the most buckets and the most levels of all spans, which folds into the shape of each."""
    return SketchShape(max(span.shape.buckets for span in spans), max(span.shape.levels for span in spans))
