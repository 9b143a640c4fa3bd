"""Answers from published records: one row for each key and span. Reading costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sfm_stream.answers.asked import rollups, sketches
from sfm_stream.errors import IncompatibleError
from sfm_stream.estimation.estimate import Estimate, estimate, lower_bound
from sfm_stream.pipeline.rollup.coverage import Absence, rollup_estimate
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.sketch.merge import merge_tallies
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart, Window
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord
from sfm_stream.wire.keys import decode_key

WITHHELD = Absence()


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. epsilon: the most that an item under this key can lose over the releases in it (basic composition).
    Each costs the epsilon of its bits, which it tells itself, and epsilon_selection where keys are selected, which no
    record tells: it is as the caller of the functions below says, and 0 unless one does.

    estimate: of the whole span; a lower bound where windows without a release may hold something. released, windows: in
    how many of the windows of the span the key has a release. complete: nothing more can come. epoch: of several the
    last one.
    """

    key: tuple[KeyPart, ...]
    grain: str
    window: Window
    estimate: Estimate
    epsilon: float
    released: int
    windows: int
    complete: bool
    epoch: int


def window_rows(
    reader: TopicReader, pipeline: str, span: Window | None, keys: set[bytes] | None, epsilon_selection: float = 0.0
) -> Iterator[Row]:
    """A row for each release in the span, in order of window and key. Raises ConflictError, UsageError."""
    found = (r for r in sketches(reader, pipeline, span, keys) if isinstance(r, Release))
    for release in sorted(found, key=lambda r: (r.window, r.key, r.epoch, r.partition)):
        yield Row(
            key=decode_key(release.key),
            grain="window",
            window=release.window,
            estimate=estimate(release.sketch),
            epsilon=epsilon_of(release.sketch.flip_threshold) + epsilon_selection,
            released=1,
            windows=1,
            complete=True,
            epoch=release.epoch,
        )


def rollup_rows(
    reader: TopicReader,
    pipeline: str,
    grain: str,
    span: Window | None,
    keys: set[bytes] | None,
    absence: Absence = WITHHELD,
    epsilon_selection: float = 0.0,
) -> Iterator[Row]:
    """A row for each quarter, hour or day inside the span: of several published revisions the last one."""
    newest: dict[tuple[Window, bytes, int, int], RollupRecord] = {}
    for record in rollups(reader, pipeline, span, keys):
        if record.grain != grain:
            continue
        identity = (record.window, record.key, record.epoch, record.partition)
        known = newest.get(identity)
        if known is None or record.revision > known.revision:
            newest[identity] = record
    for _, record in sorted(newest.items()):
        yield Row(
            key=decode_key(record.key),
            grain=grain,
            window=record.window,
            estimate=rollup_estimate(record, absence),
            epsilon=record.released * (epsilon_of(record.tally.flip_threshold) + epsilon_selection),
            released=record.released,
            windows=record.windows,
            complete=record.complete,
            epoch=record.epoch,
        )


def range_rows(
    reader: TopicReader,
    pipeline: str,
    span: Window,
    keys: set[bytes] | None,
    absence: Absence = WITHHELD,
    epsilon_selection: float = 0.0,
) -> Iterator[Row]:
    """A row for each key: distinct items over the union of all windows inside the span.

    Releases of one epsilon are tallied. Where epochs of several epsilons meet, the paper's merge combines the tallies,
    at its price in accuracy. Raises ConflictError, UsageError where the span cuts a window, and IncompatibleError where
    epochs differ in shape or hash.
    """
    found: dict[bytes, _Union] = {}
    decided: dict[int, _Decided] = {}
    for record in sketches(reader, pipeline, span, keys):
        if isinstance(record, CloseMarker):
            decided.setdefault(record.epoch, _Decided(record.partitions, record.window_ms)).add(record)
        else:
            found.setdefault(record.key, _Union(record)).add(record)
    for key, union in sorted(found.items()):
        windows, is_whole = union.coverage(span, decided, absence)
        answer = union.estimate()
        yield Row(
            key=decode_key(key),
            grain="range",
            window=span,
            estimate=answer if is_whole else lower_bound(answer),
            epsilon=sum(part.releases * (epsilon_of(k) + epsilon_selection) for k, part in union.parts.items()),
            released=sum(part.releases for part in union.parts.values()),
            windows=windows,
            complete=all(_is_over(decided, partition, span.end_ms) for partition in union.partitions),
            epoch=max(union.epochs),
        )


@dataclass(slots=True)
class _Decided:
    """Of one epoch: what each of its partitions has decided."""

    partitions: int
    window_ms: int
    spans: dict[int, Window] = field(default_factory=dict)

    def add(self, marker: CloseMarker) -> None:
        known = self.spans.get(marker.partition)
        low = known.start_ms if known else marker.start_ms
        high = max(known.end_ms, marker.through_ms) if known else marker.through_ms
        self.spans[marker.partition] = Window(low, high)

    def within(self, span: Window, partition: int | None) -> int:
        """Milliseconds of the span that this partition has decided; None: that all of them have."""
        if partition is None and len(self.spans) < self.partitions:
            return 0
        ranges = self.spans.values() if partition is None else [self.spans.get(partition, Window(0, 0))]
        low = max([span.start_ms, *(known.start_ms for known in ranges)])
        return max(0, min([span.end_ms, *(known.end_ms for known in ranges)]) - low)


@dataclass(slots=True)
class _Epoch:
    """The releases of one key in one epoch."""

    partition: int
    window_ms: int
    released: int = 0


@dataclass(slots=True)
class _Union:
    """Releases of one key: a sum for each epsilon, and where they come from."""

    first: Release
    parts: dict[int, TallySum] = field(default_factory=dict)
    epochs: dict[int, _Epoch] = field(default_factory=dict)

    @property
    def partitions(self) -> set[int]:
        return {epoch.partition for epoch in self.epochs.values()}

    def add(self, release: Release) -> None:
        _require_mergeable(self.first, release)
        part = self.parts.get(release.sketch.flip_threshold)
        if part is None:
            part = self.parts[release.sketch.flip_threshold] = TallySum.like(release.sketch)
        part.add(release.sketch)
        size_ms = release.window.end_ms - release.window.start_ms
        self.epochs.setdefault(release.epoch, _Epoch(release.partition, size_ms)).released += 1

    def coverage(self, span: Window, decided: dict[int, _Decided], absence: Absence) -> tuple[int, bool]:
        """(windows in the span, whether each of them is in the union or known to be empty).

        A part of the span that no epoch has decided has windows of the smallest size that there is.
        """
        windows = known_ms = accounted_ms = 0
        for number in sorted({*decided, *self.epochs}):
            mine, all_of = self.epochs.get(number), decided.get(number)
            size_ms = mine.window_ms if mine else decided[number].window_ms
            released_ms = mine.released * size_ms if mine else 0
            decided_ms = all_of.within(span, mine.partition if mine else None) if all_of else 0
            windows += max(released_ms, decided_ms) // size_ms
            known_ms += max(released_ms, decided_ms)
            accounted_ms += absence.accounted(number, released_ms, decided_ms)
        length_ms, smallest_ms = span.end_ms - span.start_ms, min(each.window_ms for each in self.epochs.values())
        return windows + max(0, length_ms - known_ms) // smallest_ms, accounted_ms >= length_ms

    def estimate(self) -> Estimate:
        tallies = [part.tally() for _, part in sorted(self.parts.items())]
        return estimate(tallies[0]) if len(tallies) == 1 else estimate(merge_tallies(tallies))


def _is_over(decided: dict[int, _Decided], partition: int, end_ms: int) -> bool:
    """Whether each epoch of a partition is decided up to here, or up to where the next one begins."""
    spans = [epoch.spans[partition] for _, epoch in sorted(decided.items()) if partition in epoch.spans]
    ends = [span.start_ms for span in spans[1:]] + [end_ms]
    return bool(spans) and all(span.end_ms >= min(end, end_ms) for span, end in zip(spans, ends, strict=True))


def _require_mergeable(first: Release, other: Release) -> None:
    if (first.sketch.shape, first.sketch.hash) != (other.sketch.shape, other.sketch.hash):
        raise IncompatibleError(
            f"epochs {first.epoch} and {other.epoch} of pipeline {first.pipeline} have sketches of different shape or "
            "hash: ask for one of them with --from and --to"
        )
