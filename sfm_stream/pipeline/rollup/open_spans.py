"""What a roll-up holds of one epoch: open spans, a sum of releases for each key in them, and what is decided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sfm_stream.errors import IncompatibleError, StateError
from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.position import Cursor
from sfm_stream.readable import duration, instant
from sfm_stream.sketch.agreement import Combinable
from sfm_stream.sketch.merge import merge_tally
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.units import GRAINS
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord

Outcome: TypeAlias = Literal["merged", "duplicate", "conflict", "already_final"]


@dataclass(slots=True)
class KeySum:
    """What is known of one key in one span."""

    sum: TallySum
    seen: dict[int, bytes] = field(default_factory=dict)
    """Window start -> digest of the release added for it. In a coarser span: start of a base span that was recalled."""


@dataclass(slots=True)
class Span:
    """One open span. first_offset: offset of the earliest release in it, where replay must begin."""

    grain: str
    window: Window
    keys: dict[bytes, KeySum] = field(default_factory=dict)
    first_offset: int | None = None
    published: dict[bytes, int] = field(default_factory=dict)
    """Key -> revision of the last record that was published before the span was final."""

    @property
    def rank(self) -> tuple[int, int]:
        """Its place in the order of publication."""
        return self.window.end_ms, GRAINS.index(self.grain)

    def add_release(self, release: Release, payload: bytes, offset: int) -> Outcome:
        """Count a release once; only "merged" changes anything."""
        entry = self.entry(release.key, release.sketch)
        digest = hashlib.sha256(payload).digest()[:16]
        known = entry.seen.get(release.window.start_ms)
        if known is not None:
            return "duplicate" if known == digest else "conflict"
        entry.seen[release.window.start_ms] = digest
        entry.sum.add(release.sketch)
        if self.first_offset is None:
            self.first_offset = offset
        return "merged"

    def entry(self, key: bytes, like: Combinable) -> KeySum:
        """The sum of a key, begun where it is the first time."""
        entry = self.keys.get(key)
        if entry is None:
            entry = self.keys[key] = KeySum(TallySum.like(like))
        return entry


@dataclass(frozen=True, slots=True)
class EpochHead:
    """What every record of one epoch has in common."""

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    window_ms: int

    def __str__(self) -> str:
        return f"pipeline {self.pipeline}, epoch {self.epoch}"


@dataclass(slots=True)
class Epoch:
    """One epoch of the pipeline in this partition. Windows in [from_ms, through_ms) are decided; equal: none so far."""

    head: EpochHead
    calendar: Calendar
    cursor: Cursor
    from_ms: int = 0
    through_ms: int = 0
    kind: tuple[object, ...] = ()
    """_KIND of all its sketches, once there is one."""
    spans: dict[tuple[str, int], Span] = field(default_factory=dict)

    def mark(self, marker: CloseMarker) -> None:
        """Take a close marker. Raises IncompatibleError, and StateError where one before it is missing."""
        self._require_windows(marker.partitions, marker.window_ms, marker.start_ms)
        if not self.marked:
            self.from_ms = self.through_ms = marker.start_ms
        if marker.start_ms > self.through_ms:
            raise StateError(
                f"{self.head}, partition {self.head.partition}: a close marker begins at {instant(marker.start_ms)}, "
                "the one "
                f"before it ended at {instant(self.through_ms)}; what lies between is missing from the sketch topic"
            )
        self.through_ms = max(self.through_ms, marker.through_ms)

    @property
    def marked(self) -> bool:
        """A close marker was seen, so that from_ms is known."""
        return self.through_ms > self.from_ms

    def decided(self, span: Window) -> int:
        """How many windows of the span this epoch has decided."""
        low, high = max(span.start_ms, self.from_ms), min(span.end_ms, self.through_ms)
        return max(0, high - low) // self.head.window_ms

    def add(self, release: Release, payload: bytes, offset: int, final_ms: int) -> Outcome:
        """Count a release, unless its base span ends at or before final_ms. Raises IncompatibleError."""
        start_ms = release.window.start_ms
        self._require_windows(release.partitions, release.window.end_ms - start_ms, start_ms)
        self._require_kind(release.sketch, release.unit)
        grain = self.calendar.base
        window = self.calendar.span(grain, start_ms)
        if window.end_ms <= final_ms or self.cursor.covers(window.end_ms, grain, None):
            return "already_final"
        return self.open(grain, window).add_release(release, payload, offset)

    def open(self, grain: str, window: Window) -> Span:
        """The open span of this grain and window, begun where there is none; a base span with those around it."""
        span = self.spans.get((grain, window.start_ms))
        if span is None:
            span = self.spans[grain, window.start_ms] = Span(grain, window)
            if grain == self.calendar.base:
                self.coarser(window)
        return span

    def due(self, final_ms: int) -> Span | None:
        """The first open span, in the order of publication, of those that end at or before final_ms."""
        due = (span for span in self.spans.values() if span.window.end_ms <= final_ms)
        return min(due, key=lambda span: span.rank, default=None)

    def coarser(self, base: Window) -> list[Span]:
        """The spans of coarser grains around a base span, except those that are published."""
        windows = ((grain, self.calendar.span(grain, base.start_ms)) for grain in self.calendar.grains[1:])
        return [self.open(grain, w) for grain, w in windows if not self.cursor.covers(w.end_ms, grain, None)]

    def parts(self, span: Span) -> list[Span]:
        """The span and the open base spans inside it, which are not in its sums yet."""
        base, low, high = self.calendar.base, span.window.start_ms, span.window.end_ms
        inside = [s for s in self.spans.values() if s.grain == base and low <= s.window.start_ms < high]
        return [span] if span.grain == base else [span, *inside]

    def recall(self, record: RollupRecord) -> None:
        """Take up a published record: a final base sum is part of its day again; of others it is noted that they exist.

        Of base records behind the cursor nothing is taken: replay makes them again.
        """
        self._require_kind(record.tally, record.unit)
        covered = self.cursor.covers(record.window.end_ms, record.grain, record.key)
        if not record.complete:
            if not covered:
                published = self.open(record.grain, record.window).published
                published[record.key] = max(published.get(record.key, 0), record.revision)
        elif covered and record.grain == self.calendar.base:
            for span in self.coarser(record.window):
                entry = span.entry(record.key, record.tally)
                if record.window.start_ms not in entry.seen:
                    entry.seen[record.window.start_ms] = b""
                    entry.sum.add_tally(record.tally)

    def record(self, span: Span, key: bytes, total: TallySum, complete: bool) -> RollupRecord:
        """The record of one key and span: tally, merged sketch, estimate, coverage; a function of its inputs alone."""
        tally = total.tally()
        found = estimate(tally)
        return RollupRecord(
            pipeline=self.head.pipeline,
            epoch=self.head.epoch,
            partition=self.head.partition,
            partitions=self.head.partitions,
            grain=span.grain,
            window=span.window,
            zone=self.calendar.zone,
            key=key,
            unit=str(self.kind[-1]),
            released=tally.releases,
            decided=self.decided(span.window),
            windows=(span.window.end_ms - span.window.start_ms) // self.head.window_ms,
            complete=complete,
            revision=self.revision(span, total.releases, complete),
            tally=tally,
            merged=merge_tally(tally),
            value=_rounded(found.value),
            standard_error=_rounded(found.standard_error),
            low=_rounded(found.low),
            high=_rounded(found.high),
            status=str(found.status),
            confidence=found.confidence,
        )

    def revision(self, span: Span, released: int, complete: bool) -> int:
        """Releases merged and windows decided, plus one when nothing more can come.

        None of the three ever goes back, so two records of one span and key with equal sums agree in each of them.
        """
        return released + self.decided(span.window) + complete

    def _require_windows(self, partitions: int, window_ms: int, start_ms: int) -> None:
        self._require_equal("partition count", self.head.partitions, partitions)
        self._require_equal("window size", self.head.window_ms, window_ms)
        if self.calendar.base_ms % window_ms or start_ms % window_ms:
            raise IncompatibleError(
                f"{self.head}: a window of {duration(window_ms)} at {instant(start_ms)} does not fit into the "
                f"{self.calendar.base}s of which days of {self.calendar.zone} are made"
            )

    def _require_kind(self, sketch: Combinable, unit: str) -> None:
        kind = (sketch.shape, sketch.hash, sketch.flip_threshold, unit)
        self.kind = self.kind or kind
        if kind != self.kind:
            for name, mine, theirs in zip(_KIND, self.kind, kind, strict=True):
                self._require_equal(name, mine, theirs)

    def _require_equal(self, name: str, mine: object, theirs: object) -> None:
        if mine != theirs:
            raise IncompatibleError(f"{self.head}: {name} of the releases differs, {mine} against {theirs}")


_KIND = ("shape", "hash", "flip probability k", "privacy unit")


def _rounded(value: float) -> float:
    # Six digits: more than the noise leaves, few enough that the last bit of a library's logarithm does not show.
    return float(f"{value:.6g}")
