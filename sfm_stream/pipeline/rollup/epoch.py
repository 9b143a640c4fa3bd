"""What a roll-up holds of one epoch: the roll-up of each released span.

    state      a release                          a close marker
    UNKNOWN    waits; KNOWN if it names no span   KNOWN: it says which spans there are, and what waited is merged
    KNOWN      goes to the roll-up of its span    goes to the roll-up of its span

What is published of a span depends on which others are released, and of named spans only a close marker says that.
Nothing of an epoch is final before its first marker, so a release can wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.decided import DecidedWindows, EpochSpan
from sfm_stream.pipeline.rollup.grains import grains_of, grains_of_one_size
from sfm_stream.pipeline.rollup.position import SpanPosition
from sfm_stream.pipeline.rollup.span_rollup import EpochHead, SpanRollup
from sfm_stream.windows.grid import fixed_size_ms
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord


@dataclass(frozen=True, slots=True)
class WaitingRelease:
    """A release that was read before it was known which spans there are."""

    release: Release
    payload: bytes
    offset: int


@dataclass(slots=True)
class Epoch:
    """One epoch of the pipeline in this partition.

    spans: name of each released span to its roll-up, the base span first; empty while UNKNOWN. Where the records of the
    epoch name no span there is one, under None.
    """

    head: EpochHead
    calendar: Calendar
    spans: dict[str | None, SpanRollup] = field(default_factory=dict)
    waiting: list[WaitingRelease] = field(default_factory=list)

    def know(self, record: Release | CloseMarker) -> None:
        """Learn from a record which spans are released, where that is not known and it says so."""
        if self.spans:
            return
        if record.span is None:
            self._know_size(_window_ms(record))
        elif isinstance(record, CloseMarker):
            self._know_names(record.spans)

    def _know_size(self, size_ms: int) -> None:
        """Records name no span; windows have this size."""
        grains = grains_of_one_size(self.calendar, size_ms)
        self.spans = {None: SpanRollup(self.head, self.calendar, None, grains, DecidedWindows(size_ms))}

    def _know_names(self, names: tuple[str, ...]) -> None:
        """These spans are released, the base span first."""
        sizes_ms = {name: fixed_size_ms(name) for name in names}
        for name, grains in grains_of(self.calendar, sizes_ms).items():
            decided = DecidedWindows(grains.size_ms)
            self.spans[name] = SpanRollup(self.head, self.calendar, name, grains, decided)

    def of(self, record: Release | CloseMarker) -> SpanRollup:
        """The roll-up of the span of a record, in an epoch whose spans are known. Raises IncompatibleError."""
        found = self.spans.get(record.span)
        if found is None or (isinstance(record, CloseMarker) and record.span and record.spans != tuple(self.spans)):
            theirs = record.spans if isinstance(record, CloseMarker) and record.spans else (record.span,)
            self.head.require_equal("released spans", _listed(tuple(self.spans)), _listed(theirs))
        assert found is not None
        return found

    def take_waiting(self) -> list[WaitingRelease]:
        """The releases that waited, once it is known which spans there are."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def recall(self, record: RollupRecord) -> None:
        """Take up a published record, when the state is rebuilt. Raises IncompatibleError."""
        for span in self.spans.values():
            if record.grain in span.grains.grains:
                span.recall(record)

    @property
    def base(self) -> SpanRollup | None:
        """The roll-up of the base span; None while UNKNOWN."""
        return next(iter(self.spans.values()), None)

    @property
    def first_offset(self) -> int | None:
        """Where replay must begin for this epoch; None where nothing in it is needed again."""
        spans = (each.first_offset for span in self.spans.values() for each in span.open.values())
        return min([*(o for o in spans if o is not None), *(w.offset for w in self.waiting)], default=None)

    def positions(self, decided: Mapping[EpochSpan, DecidedWindows]) -> tuple[SpanPosition, ...]:
        """Where each span stands, to be stored. decided: of each span, at the offset that is stored."""
        return tuple(
            SpanPosition(
                name,
                (span.grains.size_ms or 0) if name is None else 0,
                decided[self.head.epoch, name].from_ms,
                decided[self.head.epoch, name].through_ms,
                span.cursor,
            )
            for name, span in self.spans.items()
        )

    def restore(self, positions: Sequence[SpanPosition]) -> None:
        """Take up what was stored."""
        for stored in positions:
            if stored.span is None:
                self._know_size(stored.window_ms)
        if not self.spans:
            self._know_names(tuple(stored.span for stored in positions if stored.span is not None))
        for stored in positions:
            span = self.spans[stored.span]
            span.decided = DecidedWindows(span.grains.size_ms, stored.from_ms, stored.through_ms)
            span.cursor = stored.cursor


def _window_ms(record: Release | CloseMarker) -> int:
    if isinstance(record, CloseMarker):
        return record.window_ms
    return record.window.end_ms - record.window.start_ms


def _listed(names: tuple[str | None, ...]) -> str:
    return ", ".join(name or "one without a name" for name in names)
