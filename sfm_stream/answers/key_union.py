"""The union of a key's releases over a span, across epochs, and how much of the span is in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfm_stream.errors import IncompatibleError
from sfm_stream.estimation.estimate import Estimate, estimate
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker, Release


@dataclass(slots=True)
class DecidedSpans:
    """What close markers say of one epoch: the span in which each partition has decided all windows."""

    partitions: int
    window_ms: int
    spans: dict[int, Window] = field(default_factory=dict)

    def widen(self, marker: CloseMarker) -> None:
        known = self.spans.get(marker.partition)
        low = known.start_ms if known else marker.start_ms
        high = max(known.end_ms, marker.through_ms) if known else marker.through_ms
        self.spans[marker.partition] = Window(low, high)

    def within(self, span: Window, partition: int | None) -> int:
        """Milliseconds of the span that this partition has decided; None: that all partitions have."""
        if partition is None and len(self.spans) < self.partitions:
            return 0
        ranges = self.spans.values() if partition is None else [self.spans.get(partition, Window(0, 0))]
        low = max([span.start_ms, *(decided.start_ms for decided in ranges)])
        return max(0, min([span.end_ms, *(decided.end_ms for decided in ranges)]) - low)


@dataclass(slots=True)
class _KeyInEpoch:
    """How many releases one key has in one epoch, and where it is counted."""

    partition: int
    window_ms: int
    releases: int = 0


@dataclass(slots=True)
class KeyUnion:
    """Releases of one key. tallies: their sum for each flip threshold. epochs: where they come from."""

    first: Release
    tallies: dict[int, TallySum] = field(default_factory=dict)
    epochs: dict[int, _KeyInEpoch] = field(default_factory=dict)

    def include(self, release: Release) -> None:
        """Raises IncompatibleError where epochs differ in shape or hash."""
        _require_mergeable(self.first, release)
        tally = self.tallies.get(release.sketch.flip_threshold)
        if tally is None:
            tally = self.tallies[release.sketch.flip_threshold] = TallySum.like(release.sketch)
        tally.add(release.sketch)
        size_ms = release.window.end_ms - release.window.start_ms
        self.epochs.setdefault(release.epoch, _KeyInEpoch(release.partition, size_ms)).releases += 1

    def estimate(self) -> Estimate:
        """Distinct items over the releases, as if they were the whole span."""
        tallies = [tally.tally() for _, tally in sorted(self.tallies.items())]
        return estimate(tallies[0]) if len(tallies) == 1 else estimate(merge_tallies(tallies))

    def coverage(self, span: Window, decided: dict[int, DecidedSpans], absence: Absence) -> tuple[int, bool]:
        """(windows in the span, whether each of them is in the union or known to be empty).

        A part of the span that no epoch has decided is taken for windows of the key's smallest size.
        """
        windows = known_ms = accounted_ms = 0
        for epoch in sorted({*decided, *self.epochs}):
            mine, all_of = self.epochs.get(epoch), decided.get(epoch)
            size_ms = mine.window_ms if mine else decided[epoch].window_ms
            released_ms = mine.releases * size_ms if mine else 0
            decided_ms = all_of.within(span, mine.partition if mine else None) if all_of else 0
            windows += max(released_ms, decided_ms) // size_ms
            known_ms += max(released_ms, decided_ms)
            accounted_ms += absence.accounted(epoch, released_ms, decided_ms)
        length_ms, smallest_ms = span.end_ms - span.start_ms, min(each.window_ms for each in self.epochs.values())
        return windows + max(0, length_ms - known_ms) // smallest_ms, accounted_ms >= length_ms

    def is_complete(self, decided: dict[int, DecidedSpans], end_ms: int) -> bool:
        """Whether nothing more of this key can come before end_ms."""
        return all(_is_decided(decided, partition, end_ms) for partition in {e.partition for e in self.epochs.values()})


def _is_decided(decided: dict[int, DecidedSpans], partition: int, end_ms: int) -> bool:
    """Whether each epoch of a partition is decided up to end_ms, or up to where the next epoch begins."""
    spans = [epoch.spans[partition] for _, epoch in sorted(decided.items()) if partition in epoch.spans]
    ends = [span.start_ms for span in spans[1:]] + [end_ms]
    return bool(spans) and all(span.end_ms >= min(end, end_ms) for span, end in zip(spans, ends, strict=True))


def _require_mergeable(first: Release, other: Release) -> None:
    if (first.sketch.shape, first.sketch.hash) != (other.sketch.shape, other.sketch.hash):
        raise IncompatibleError(
            f"epochs {first.epoch} and {other.epoch} of pipeline {first.pipeline} have sketches of different shape or "
            "hash: ask for one of them with --from and --to"
        )
