"""Releases that are added up for one answer: their tallies, what they cost, and their sketch if they become one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.estimation.estimate import Estimate, estimate
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally_sum import TallySum, memory_of_sum
from sfm_stream.wire.codec import Release

_BESIDE_BYTES = 1500


@dataclass(slots=True)
class ReleaseSum:
    """Releases of one shape and hash, of any keys.

    tallies: their sum, for each flip threshold. only: the sketch, while there was one release only. prices: (flip
    threshold, epsilon of the count) -> how many releases have them.
    """

    tallies: dict[int, TallySum] = field(default_factory=dict)
    only: SfmSketch | None = None
    prices: Counter[tuple[int, Decimal | None]] = field(default_factory=Counter)

    def include(self, release: Release) -> None:
        """Add a release."""
        sketch = release.sketch
        self.only = None if self.tallies else sketch
        tally = self.tallies.get(sketch.flip_threshold)
        if tally is None:
            tally = self.tallies[sketch.flip_threshold] = TallySum.like(sketch)
        tally.add(sketch)
        self.prices[sketch.flip_threshold, sketch.count.epsilon if sketch.count else None] += 1

    def estimate(self) -> Estimate:
        """Distinct items over the releases."""
        if self.only is not None:
            return estimate(self.only)
        return estimate_union([tally.tally() for _, tally in sorted(self.tallies.items())])

    def sketch(self) -> SfmSketch:
        """One sketch of all releases: the only one, or the paper's merge with the noise of their product."""
        if self.only is not None:
            return self.only
        return merge_tallies([tally.tally() for _, tally in sorted(self.tallies.items())])

    def epsilon(self, terms: ReleaseTerms) -> float:
        """The most that an item can lose over the releases (basic composition)."""
        return sum(count * terms.epsilon_of_release(*price) for price, count in self.prices.items())


def sum_bytes(shape: SketchShape | None, releases: int) -> int:
    """Bytes of memory that the sum of so many releases of a shape takes, about; without a shape there is none."""
    return _BESIDE_BYTES + (memory_of_sum(shape, releases) if shape else 0)
