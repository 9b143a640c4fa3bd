"""Which windows of a released span are decided, from close markers alone; now, and where replay begins."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sfm_stream.types import Window

EpochSpan: TypeAlias = tuple[int, str | None]
"""An epoch and the name of one of its released spans; None where the records of the epoch name none."""


@dataclass(frozen=True, slots=True)
class DecidedWindows:
    """The windows of one span in [from_ms, through_ms) are decided: their releases are in the log before the markers.

    size_ms: of a window; None where windows are days, weeks or months, and each is a span of its own.

    state       a marker from start_ms to through_ms
    none yet    those windows are decided, whatever start_ms is
    some        start_ms <= through_ms of before: the range goes on, or is as it was for a marker that comes again
                start_ms > through_ms of before: a marker is missing, see follows()
    """

    size_ms: int | None
    from_ms: int = 0
    through_ms: int = 0

    @property
    def some(self) -> bool:
        """Whether a close marker was seen, so that from_ms is known."""
        return self.through_ms > self.from_ms

    def follows(self, start_ms: int) -> bool:
        """Whether a marker that begins here leaves no window undecided."""
        return not self.some or start_ms <= self.through_ms

    def marked(self, start_ms: int, through_ms: int) -> DecidedWindows:
        """After a marker that follows."""
        if not self.some:
            return replace(self, from_ms=start_ms, through_ms=max(start_ms, through_ms))
        return replace(self, through_ms=max(self.through_ms, through_ms))

    def windows_in(self, span: Window) -> int:
        """How many windows the span has."""
        return self._windows_of(span.end_ms - span.start_ms, span)

    def count_in(self, span: Window) -> int:
        """How many windows of the span are decided."""
        low, high = max(span.start_ms, self.from_ms), min(span.end_ms, self.through_ms)
        return self._windows_of(max(0, high - low), span)

    def _windows_of(self, length_ms: int, span: Window) -> int:
        return length_ms // (span.end_ms - span.start_ms if self.size_ms is None else self.size_ms)


@dataclass(frozen=True, slots=True)
class _MarkerRead:
    """The offset of a close marker, and what was decided of its span before it."""

    offset: int
    span: EpochSpan
    before: DecidedWindows


class DecidedHistory:
    """What was decided of every span of every epoch at the offsets that replay may begin at.

    A record has to wait for the same markers when it is replayed, so what is committed is what was decided at the
    committed offset, not what is decided by now.
    """

    def __init__(self) -> None:
        self._markers: deque[_MarkerRead] = deque()

    def note(self, offset: int, span: EpochSpan, before: DecidedWindows) -> None:
        """Take a marker, in order of offset, with what was decided of its span before it."""
        self._markers.append(_MarkerRead(offset, span, before))

    def at(self, offset: int, now: Mapping[EpochSpan, DecidedWindows]) -> dict[EpochSpan, DecidedWindows]:
        """Span to what was decided of it before this offset. now: what is decided of each by now.

        Markers before the offset are forgotten: no smaller one can be asked for later.
        """
        while self._markers and self._markers[0].offset < offset:
            self._markers.popleft()
        decided = dict(now)
        for marker in reversed(self._markers):
            decided[marker.span] = marker.before
        return decided
