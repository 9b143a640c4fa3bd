"""What a roll-up holds of one epoch: which windows are decided, the open spans, and how far it is published."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfm_stream.errors import IncompatibleError, StateError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.decided import DecidedWindows
from sfm_stream.pipeline.rollup.open_spans import OpenSpan, ReleaseOutcome, SpanState, state_of
from sfm_stream.pipeline.rollup.position import NOTHING_PUBLISHED, Cursor
from sfm_stream.readable import duration, instant
from sfm_stream.sketch.agreement import Combinable
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord

_IN_COMMON = ("shape", "hash", "flip probability k", "privacy unit")


@dataclass(frozen=True, slots=True)
class EpochHead:
    """What every record of one epoch and partition has in common."""

    pipeline: str
    epoch: int
    partition: int
    partitions: int

    def __str__(self) -> str:
        return f"pipeline {self.pipeline}, epoch {self.epoch}"


@dataclass(slots=True)
class Epoch:
    """One epoch of the pipeline in this partition.

    decided: of the one released span. cursor: the last thing that is published. spans: by grain and start.
    """

    head: EpochHead
    calendar: Calendar
    decided: DecidedWindows
    cursor: Cursor = NOTHING_PUBLISHED
    spans: dict[tuple[str, int], OpenSpan] = field(default_factory=dict)
    _common: tuple[object, ...] = ()
    """What all of its sketches have in common, in the order of _IN_COMMON; empty before the first one."""

    def mark(self, marker: CloseMarker) -> None:
        """Take a close marker. Raises IncompatibleError, and StateError where one before it is missing."""
        self._require_windows(marker.partitions, marker.window_ms, marker.start_ms)
        if not self.decided.follows(marker.start_ms):
            raise StateError(
                f"{self.head}, partition {self.head.partition}: a close marker begins at {instant(marker.start_ms)}, "
                "the one "
                f"before it ended at {instant(self.decided.through_ms)}; what lies between is missing from the sketch "
                "topic"
            )
        self.decided = self.decided.marked(marker.start_ms, marker.through_ms)

    def merge(self, release: Release, payload: bytes, offset: int, final_ms: int) -> ReleaseOutcome:
        """Add a release to its base span, where that is open. final_ms: as in state_of. Raises IncompatibleError."""
        start_ms = release.window.start_ms
        self._require_windows(release.partitions, release.window.end_ms - start_ms, start_ms)
        self._require_common(release.sketch, release.unit)
        grain = self.calendar.base
        window = self.calendar.span(grain, start_ms)
        if state_of(grain, window, final_ms, self.cursor) is not SpanState.OPEN:
            return ReleaseOutcome.ALREADY_FINAL
        return self._open(grain, window).merge(release, payload, offset)

    def recall(self, record: RollupRecord) -> None:
        """Take up a published record, when the state is rebuilt.

        A final record of a base span is part of its day again. Of a record that was published before its span was
        final, the revision is noted. Of base records behind the cursor nothing is taken: replay makes them again.
        """
        self._require_common(record.tally, record.unit)
        published = self.cursor.covers(record.window.end_ms, record.grain, record.key)
        if not record.complete:
            if not published:
                provisional = self._open(record.grain, record.window).provisional
                provisional[record.key] = max(provisional.get(record.key, 0), record.revision)
        elif published and record.grain == self.calendar.base:
            for span in self.coarser(record.window):
                key_sum = span.key_sum(record.key, record.tally)
                if record.window.start_ms not in key_sum.digests:
                    key_sum.digests[record.window.start_ms] = b""
                    key_sum.sum.add_tally(record.tally)

    def first_final(self, final_ms: int) -> OpenSpan | None:
        """The first span, in the order of publication, of those that end at or before final_ms."""
        final = (span for span in self.spans.values() if span.window.end_ms <= final_ms)
        return min(final, key=lambda span: span.publication_order, default=None)

    def expired(self, before_ms: int) -> list[OpenSpan]:
        """The spans that end at or before before_ms, in the order of publication."""
        expired = [span for span in self.spans.values() if span.window.end_ms <= before_ms]
        return sorted(expired, key=lambda span: span.publication_order)

    def coarser(self, base: Window) -> list[OpenSpan]:
        """The spans of coarser grains around a base span, except those that are published."""
        windows = ((grain, self.calendar.span(grain, base.start_ms)) for grain in self.calendar.grains[1:])
        return [self._open(grain, w) for grain, w in windows if not self.cursor.covers(w.end_ms, grain, None)]

    def parts(self, span: OpenSpan) -> list[OpenSpan]:
        """The span and the open base spans inside it, which are not in its sums yet."""
        base, low, high = self.calendar.base, span.window.start_ms, span.window.end_ms
        inside = [s for s in self.spans.values() if s.grain == base and low <= s.window.start_ms < high]
        return [span] if span.grain == base else [span, *inside]

    def publish(self, span: OpenSpan) -> None:
        """Take the span as published: every record of it has gone into a step."""
        self.cursor = Cursor(*span.publication_order, None)
        del self.spans[span.grain, span.window.start_ms]

    @property
    def unit(self) -> str:
        """The privacy unit of its releases, once there is one."""
        return str(self._common[-1])

    def _open(self, grain: str, window: Window) -> OpenSpan:
        """The span of this grain and window, begun where there is none; a base span with those around it."""
        span = self.spans.get((grain, window.start_ms))
        if span is None:
            span = self.spans[grain, window.start_ms] = OpenSpan(grain, window)
            if grain == self.calendar.base:
                self.coarser(window)
        return span

    def _require_windows(self, partitions: int, window_ms: int, start_ms: int) -> None:
        self._require_equal("partition count", self.head.partitions, partitions)
        self._require_equal("window size", self.decided.size_ms, window_ms)
        if self.calendar.base_ms % window_ms or start_ms % window_ms:
            raise IncompatibleError(
                f"{self.head}: a window of {duration(window_ms)} at {instant(start_ms)} does not fit into the "
                f"{self.calendar.base}s of which days of {self.calendar.zone} are made"
            )

    def _require_common(self, sketch: Combinable, unit: str) -> None:
        theirs = (sketch.shape, sketch.hash, sketch.flip_threshold, unit)
        self._common = self._common or theirs
        if theirs != self._common:
            for name, mine, other in zip(_IN_COMMON, self._common, theirs, strict=True):
                self._require_equal(name, mine, other)

    def _require_equal(self, name: str, mine: object, theirs: object) -> None:
        if mine != theirs:
            raise IncompatibleError(f"{self.head}: {name} of the releases differs, {mine} against {theirs}")
