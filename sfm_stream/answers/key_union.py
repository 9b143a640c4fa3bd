"""The union of a key's releases over one span: those of its cover, and what of the span is not in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.cover import Candidate, gaps, length_ms, windows_to_fill
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.estimation.estimate import Estimate, estimate, lower_bound
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.wire.codec import Release
from sfm_stream.wire.keys import decode_key


@dataclass(slots=True)
class KeyUnion:
    """Releases of one key that cover a span.

    Of the cover, as far as take() was given it: taken: the name of each released span -> length of its longest release
    and number of releases. partitions_of: epoch -> partitions. between: gaps up to reached_ms. Of the sketches:
    tallies: the sum of what was included, for each flip threshold; only: the release, while there was one only.
    """

    span: Window
    taken: dict[str, tuple[int, int]] = field(default_factory=dict)
    partitions_of: dict[int, set[int]] = field(default_factory=dict)
    is_one_release: bool = False
    """Whether the union is a single release of the whole span."""
    between: list[Window] = field(default_factory=list)
    reached_ms: int = 0
    sketch_bytes: int = 0
    tallies: dict[int, TallySum] = field(default_factory=dict)
    only: SfmSketch | None = None
    prices: Counter[tuple[int, Decimal | None]] = field(default_factory=Counter)
    """(flip threshold, epsilon of the count) -> how many releases have them."""

    def take(self, cover: Sequence[Candidate]) -> None:
        """Take the next part of the cover, in order of time."""
        for each in cover:
            self.is_one_release = not self.taken and each.window == self.span
            longest, count = self.taken.get(each.span, (0, 0))
            self.taken[each.span] = max(longest, length_ms(each.window)), count + 1
            self.partitions_of.setdefault(each.epoch, set()).add(each.partition)
            self.sketch_bytes = each.shape.nbytes
            if (before := max(self.reached_ms, self.span.start_ms)) < each.window.start_ms:
                self.between.append(Window(before, each.window.start_ms))
            self.reached_ms = max(self.reached_ms, each.window.end_ms)

    def include(self, release: Release) -> None:
        """Add a release of the cover."""
        sketch = release.sketch
        self.only = None if self.tallies else sketch
        tally = self.tallies.get(sketch.flip_threshold)
        if tally is None:
            tally = self.tallies[sketch.flip_threshold] = TallySum.like(sketch)
        tally.add(sketch)
        self.prices[sketch.flip_threshold, sketch.count.epsilon if sketch.count else None] += 1

    @property
    def sums_bytes(self) -> int:
        """Bytes that the sums will take, once all that was taken is included."""
        count = sum(count for _, count in self.taken.values())
        return count.bit_length() * self.sketch_bytes

    def row(self, grain: str, key: bytes, decided: DecidedSpans, terms: ReleaseTerms) -> AnswerRow:
        """The row of an answer, once nothing is waiting. key: canonical bytes."""
        of_releases, missing = self.estimate(), self.missing(decided, terms)
        return AnswerRow(
            key=decode_key(key),
            grain=grain,
            window=self.span,
            estimate=lower_bound(of_releases) if missing else of_releases,
            epsilon=self.epsilon(terms),
            origin="raw" if self.is_one_release else "merged",
            releases=self.releases,
            windows=self.windows(decided),
            complete=self.is_one_release or decided.is_complete(set().union(*self.partitions_of.values()), self.span),
            missing_ms=sum(length_ms(part) for part in missing),
            missing=missing,
            epoch=max(self.partitions_of),
        )

    def estimate(self) -> Estimate:
        """Distinct items over the releases, as if they were the whole span."""
        if self.only is not None:
            return estimate(self.only)
        return estimate_union([tally.tally() for _, tally in sorted(self.tallies.items())])

    def epsilon(self, terms: ReleaseTerms) -> float:
        """The most that an item under this key can lose over the releases."""
        return sum(count * terms.epsilon_of_release(*price) for price, count in self.prices.items())

    @property
    def releases(self) -> dict[str, int]:
        """The name of each released span -> how many of its releases are in the union; the coarsest first."""
        in_order = sorted(self.taken, key=lambda name: self.taken[name][0], reverse=True)
        return {name: self.taken[name][1] for name in in_order}

    @property
    def gaps(self) -> list[Window]:
        """The parts of the span that are in no release of the cover."""
        rest = Window(max(self.reached_ms, self.span.start_ms), self.span.end_ms)
        return [*self.between, *([rest] if rest.start_ms < rest.end_ms else [])]

    def windows(self, decided: DecidedSpans) -> int:
        """How many releases a cover of the whole span takes: those in the union, and those that would fill the gaps."""
        parts = (part for gap in self.gaps for part in decided.grids_over(gap))
        return sum(self.releases.values()) + sum(windows_to_fill(part, grids) for part, grids in parts)

    def missing(self, decided: DecidedSpans, terms: ReleaseTerms) -> tuple[Window, ...]:
        """The parts of the span that may hold something and are not in the union."""
        number, known = terms.absence.empty_in, list[Window]()
        if number is not None and (epoch := decided.epochs.get(number)):
            where = self.partitions_of.get(number, ())
            known = [epoch.base_decided(partition) for partition in where] or [epoch.base_decided(None)]
        return tuple(part for gap in self.gaps for part in gaps(gap, known))
