"""The union of a key's releases over one span: those of its cover, and what of the span is not in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.cover import Candidate, gaps, length_ms, widest_cover, windows_to_fill
from sfm_stream.answers.decided_spans import DecidedSpans
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.errors import IncompatibleError
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

    cover: what is in the union. waiting: what of it was not included yet. tallies: the sum of what was, for each flip
    threshold; only: the release, while there was one only.
    """

    span: Window
    cover: tuple[Candidate, ...]
    waiting: set[tuple[Window, int, int]]
    tallies: dict[int, TallySum] = field(default_factory=dict)
    only: SfmSketch | None = None
    prices: Counter[tuple[int, Decimal | None]] = field(default_factory=Counter)
    """(flip threshold, epsilon of the count) -> how many releases have them."""

    @classmethod
    def of(cls, pipeline: str, span: Window, candidates: Sequence[Candidate]) -> KeyUnion:
        """The union to be. Raises IncompatibleError where epochs differ in shape or hash."""
        chosen = widest_cover(candidates)
        _require_mergeable(pipeline, span, chosen, candidates)
        return cls(span, chosen, {(each.window, each.epoch, each.partition) for each in chosen})

    def include(self, release: Release) -> None:
        """Add a release, if it is in the cover and not in the union yet."""
        place = release.window, release.epoch, release.partition
        if place not in self.waiting:
            return
        self.waiting.remove(place)
        sketch = release.sketch
        self.only = None if self.tallies else sketch
        tally = self.tallies.get(sketch.flip_threshold)
        if tally is None:
            tally = self.tallies[sketch.flip_threshold] = TallySum.like(sketch)
        tally.add(sketch)
        self.prices[sketch.flip_threshold, sketch.count.epsilon if sketch.count else None] += 1

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
            complete=self.is_one_release or decided.is_complete(self.partitions, self.span.end_ms),
            missing_ms=sum(length_ms(part) for part in missing),
            missing=missing,
            epoch=max(each.epoch for each in self.cover),
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
        longest: dict[str, int] = {}
        for each in self.cover:
            longest[each.span] = max(length_ms(each.window), longest.get(each.span, 0))
        numbers = Counter(each.span for each in self.cover)
        return {name: numbers[name] for name in sorted(longest, key=longest.__getitem__, reverse=True)}

    @property
    def is_one_release(self) -> bool:
        """Whether the union is a single release of the whole span."""
        return [each.window for each in self.cover] == [self.span]

    @property
    def partitions(self) -> set[int]:
        """The partitions that count the key."""
        return {each.partition for each in self.cover}

    def windows(self, decided: DecidedSpans) -> int:
        """How many releases a cover of the whole span takes: those in the union, and those that would fill the gaps."""
        between = gaps(self.span, (each.window for each in self.cover))
        parts = (part for gap in between for part in decided.grids_over(gap))
        return len(self.cover) + sum(windows_to_fill(part, grids) for part, grids in parts)

    def missing(self, decided: DecidedSpans, terms: ReleaseTerms) -> tuple[Window, ...]:
        """The parts of the span that may hold something and are not in the union."""
        known = [each.window for each in self.cover]
        number = terms.absence.empty_in
        if number is not None and (epoch := decided.epochs.get(number)):
            where = {each.partition for each in self.cover if each.epoch == number}
            known += [epoch.base_decided(partition) for partition in where] or [epoch.base_decided(None)]
        return tuple(gaps(self.span, known))


def _require_mergeable(
    pipeline: str, span: Window, chosen: Sequence[Candidate], candidates: Sequence[Candidate]
) -> None:
    """Spans of one epoch may differ in shape: then one shape is answered. Of another epoch nothing may be left out."""
    between = gaps(span, (each.window for each in chosen))
    epochs = {each.epoch for each in chosen}
    for other in candidates:
        differs = (other.shape, other.hash) != (chosen[0].shape, chosen[0].hash) and other.epoch not in epochs
        window = other.window
        if differs and any(gap.start_ms < window.end_ms and window.start_ms < gap.end_ms for gap in between):
            first, second = sorted((chosen[0].epoch, other.epoch))
            raise IncompatibleError(
                f"epochs {first} and {second} of pipeline {pipeline} have sketches of different shape or "
                "hash: ask for one of them with --from and --to"
            )
