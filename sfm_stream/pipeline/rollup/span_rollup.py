"""What a roll-up holds of one released span of an epoch: which windows are decided, the open spans, what is published.

The releases of the span go into its finest grain, and the sums of that into the coarser ones (grains.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from sfm_stream.errors import IncompatibleError, StateError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.decided import DecidedWindows
from sfm_stream.pipeline.rollup.grains import SpanGrains
from sfm_stream.pipeline.rollup.open_spans import OpenSpan, ReleaseOutcome, SpanState, state_of
from sfm_stream.pipeline.rollup.position import NOTHING_PUBLISHED, Cursor
from sfm_stream.readable import duration, instant
from sfm_stream.sketch.agreement import Combinable
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord

_IN_COMMON = ("shape", "hash", "flip probability k", "epsilon of the count", "privacy unit")


@dataclass(frozen=True, slots=True)
class EpochHead:
    """What every record of one epoch and partition has in common."""

    pipeline: str
    epoch: int
    partition: int
    partitions: int

    def __str__(self) -> str:
        return f"pipeline {self.pipeline}, epoch {self.epoch}"

    def require_equal(self, name: str, mine: object, theirs: object) -> None:
        """Raise IncompatibleError where a record has another value of this than its epoch."""
        if mine != theirs:
            raise IncompatibleError(f"{self}: {name} of the releases differs, {mine} against {theirs}")


@dataclass(slots=True)
class SpanRollup:
    """The roll-up of one released span.

    span: its name; None where the records of the epoch name none. cursor: the last thing that is published. open: by
    grain and start; the grain is None where nothing is published of the span.
    """

    head: EpochHead
    calendar: Calendar
    span: str | None
    grains: SpanGrains
    decided: DecidedWindows
    cursor: Cursor = NOTHING_PUBLISHED
    open: dict[tuple[str | None, int], OpenSpan] = field(default_factory=dict)
    _common: tuple[object, ...] = ()
    """What all of its sketches have in common, in the order of _IN_COMMON; empty before the first one."""

    def mark(self, marker: CloseMarker) -> None:
        """Take a close marker. Raises IncompatibleError, and StateError where one before it is missing."""
        self._require_windows(marker.partitions, marker.window_ms, Window(marker.start_ms, marker.through_ms))
        if not self.decided.follows(marker.start_ms):
            raise StateError(
                f"{self.head}, partition {self.head.partition}{self._named}: a close marker begins at "
                f"{instant(marker.start_ms)}, the one before it ended at {instant(self.decided.through_ms)}; what lies "
                "between is missing from the sketch topic"
            )
        self.decided = self.decided.marked(marker.start_ms, marker.through_ms)
        if not self.grains.grains:
            closed = [place for place, span in self.open.items() if span.window.end_ms <= self.decided.through_ms]
            for place in closed:
                del self.open[place]

    def merge(self, release: Release, payload: bytes, offset: int, final_ms: int) -> ReleaseOutcome:
        """Add a release to the span of the finest grain that it is in, where that is open. final_ms: as in state_of.

        Raises IncompatibleError.
        """
        window = release.window
        self._require_windows(release.partitions, window.end_ms - window.start_ms, window)
        count = release.sketch.count
        self._require_common(release.sketch, None if count is None else count.epsilon, release.unit)
        grain = self.grains.finest
        if grain is None:
            if window.end_ms <= final_ms:
                return ReleaseOutcome.ALREADY_FINAL
            return self._open(None, window).merge(release, payload, offset)
        around = window if self.grains.size_ms is None else self.calendar.span(grain, window.start_ms)
        state = state_of(grain, around, final_ms, self.cursor)
        is_replay = state is SpanState.PUBLISHED and around.end_ms > final_ms
        if is_replay and self.is_published(around.end_ms):
            return ReleaseOutcome.ALREADY_FINAL
        if not is_replay and state is not SpanState.OPEN:
            return ReleaseOutcome.ALREADY_FINAL
        span = self._open(grain, around)
        is_first = span.first_offset is None
        outcome = span.merge(release, payload, offset)
        if is_first:
            for wider in self.coarser(around):
                wider.first_offset = offset if wider.first_offset is None else wider.first_offset
        return outcome

    def recall(self, record: RollupRecord) -> None:
        """Take up a published record, when the state is rebuilt.

        Of a record that was published before its span was final, the revision is noted. A final record of the finest
        grain that holds a tally (of version 1 or 2) is part of the coarser ones again: whoever published it committed a
        position behind its releases. Of all others nothing is taken: replay makes them again.
        """
        self._require_common(record.of_releases, record.count_epsilon, record.unit)
        published = self.cursor.covers(record.window.end_ms, record.grain, record.key)
        if not record.complete:
            if not published:
                provisional = self._open(record.grain, record.window).provisional
                provisional[record.key] = max(provisional.get(record.key, 0), record.revision)
        elif published and record.grain == self.grains.finest and record.tally is not None:
            for span in self.coarser(record.window):
                span.recall_part(record.window, record.key, record.tally)

    @property
    def needs_history(self) -> bool:
        """Whether its published records are needed to go on: revisions, and tallies of earlier versions.

        Where releases are only passed on, none is: each is in one record, which is published once it is final.
        """
        return bool(self.grains.coarser) or (bool(self.grains.grains) and not self.grains.raw)

    def is_decided_up_to(self, border_ms: int) -> bool:
        """Whether every window of a fixed size that ends at or before a border is decided."""
        size_ms = self.grains.size_ms
        return size_ms is not None and self.decided.through_ms >= border_ms - border_ms % size_ms

    def coarsest_end_ms(self, end_ms: int) -> int:
        """End of the span of the coarsest grain that holds what ends then."""
        return self.calendar.span(self.grains.grains[-1], end_ms - 1).end_ms

    def is_published(self, end_ms: int) -> bool:
        """Whether every span is published that holds what ends then. An hour may reach over the border of a day."""
        spans = ((grain, self.calendar.span(grain, end_ms - 1)) for grain in self.grains.grains)
        return all(self.cursor.covers(span.end_ms, grain, None) for grain, span in spans)

    def first_final(self, final_ms: int) -> OpenSpan | None:
        """The first span, in the order of publication, of those that end at or before final_ms."""
        final = (span for span in self.open.values() if span.grain is not None and span.window.end_ms <= final_ms)
        return min(final, key=lambda span: span.publication_order, default=None)

    def expired(self, before_ms: int) -> list[OpenSpan]:
        """The spans that end at or before before_ms, in the order of publication; none of those passed on from raw.

        Of a span from raw there is all or nothing: its releases come at once, and their close marker behind them.
        """
        expired = [
            span
            for span in self.open.values()
            if span.window.end_ms <= before_ms
            and span.grain is not None
            and not self.is_raw(span)
            and not self.cursor.covers(span.window.end_ms, span.grain, None)
        ]
        return sorted(expired, key=lambda span: span.publication_order)

    def is_raw(self, span: OpenSpan) -> bool:
        """Whether a span is the released one itself, so that each release is passed on."""
        return self.grains.raw and span.grain == self.grains.finest

    def coarser(self, finest: Window) -> list[OpenSpan]:
        """The spans of coarser grains around one of the finest, except those that are published."""
        windows = ((grain, self.calendar.span(grain, finest.start_ms)) for grain in self.grains.coarser)
        return [self._open(grain, w) for grain, w in windows if not self.cursor.covers(w.end_ms, grain, None)]

    def parts(self, span: OpenSpan) -> list[OpenSpan]:
        """The open spans of the finest grain inside a coarser one, which are not in its sums yet."""
        finest, low, high = self.grains.finest, span.window.start_ms, span.window.end_ms
        if span.grain == finest:
            return []
        return [s for s in self.open.values() if s.grain == finest and low <= s.window.start_ms < high]

    def publish(self, span: OpenSpan) -> None:
        """Take the span as published: every record of it has gone into a step."""
        if span.grain is not None and not self.cursor.covers(span.window.end_ms, span.grain, None):
            self.cursor = Cursor(*span.publication_order, None)
        del self.open[span.grain, span.window.start_ms]

    @property
    def unit(self) -> str:
        """The privacy unit of its releases, once there is one."""
        return str(self._common[-1])

    @property
    def count_epsilon(self) -> Decimal | None:
        """Of the noisy count of each of its releases, once there is one; None where they have none."""
        epsilon = self._common[-2]
        return epsilon if isinstance(epsilon, Decimal) else None

    @property
    def _named(self) -> str:
        return "" if self.span is None else f", span {self.span}"

    def _open(self, grain: str | None, window: Window) -> OpenSpan:
        """The span of this grain and window, begun where there is none; one of the finest with those around it."""
        span = self.open.get((grain, window.start_ms))
        if span is None:
            span = self.open[grain, window.start_ms] = OpenSpan(grain, window)
            if grain is not None and grain == self.grains.finest:
                self.coarser(window)
        return span

    def _require_windows(self, partitions: int, window_ms: int, inside: Window) -> None:
        """Raise IncompatibleError unless windows of this size, which fill a range, are windows of this span."""
        self.head.require_equal("partition count", self.head.partitions, partitions)
        size_ms, zone = self.grains.size_ms, self.calendar.zone
        if size_ms is None:
            assert self.span is not None
            first, last = (self.calendar.span(self.span, at) for at in (inside.start_ms, inside.end_ms - 1))
            if (first.start_ms, last.end_ms) != (inside.start_ms, inside.end_ms):
                raise IncompatibleError(
                    f"{self.head}{self._named}: {instant(inside.start_ms)} to {instant(inside.end_ms)} is no "
                    f"{self.span} of {zone} (rollup.zone)"
                )
            return
        self.head.require_equal("window size", size_ms, window_ms)
        if self.span is not None and inside.start_ms % size_ms:
            raise IncompatibleError(
                f"{self.head}{self._named}: {instant(inside.start_ms)} is no border of windows of {duration(size_ms)}"
            )
        if self.span is None and (self.calendar.base_ms % size_ms or inside.start_ms % size_ms):
            raise IncompatibleError(
                f"{self.head}: a window of {duration(size_ms)} at {instant(inside.start_ms)} does not fit into the "
                f"{self.calendar.base}s of which days of {zone} are made"
            )

    def _require_common(self, sketch: Combinable, count_epsilon: Decimal | None, unit: str) -> None:
        theirs = (sketch.shape, sketch.hash, sketch.flip_threshold, count_epsilon, unit)
        self._common = self._common or theirs
        if theirs != self._common:
            for name, mine, other in zip(_IN_COMMON, self._common, theirs, strict=True):
                self.head.require_equal(name, mine, other)
