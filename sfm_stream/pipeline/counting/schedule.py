"""Which windows of one span are open, due and closed. Times alone decide: no record, key or sketch is seen here.

    state    a record for it    left by
    OPEN     is counted         an event below moves due_ms to its end or behind it: DUE
    DUE      is late            its close marker is committed: CLOSED
    CLOSED   is late            nothing: it is decided for ever

    event                   clock_ms    idle_ms     due_ms                       closed_through_ms
    arrived(clock_ms)       clock_ms    .           windows.closed_by(clock)     .
    idle(until_ms)          .           until_ms    windows.due_through(until)   .
    complete()              .           .           windows.border_behind(clock) .
    complete_at(border_ms)  .           .           border_ms                    .
    closed(border_ms)       .           .           .                            border_ms

No time goes back: each event takes the larger of the old time and the one in the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from sfm_stream.types import NO_TIME, Window
from sfm_stream.windows.grid import windows_between
from sfm_stream.windows.tumbling import Tumbling


class WindowState(Enum):
    """The state of one window; see the table above."""

    OPEN = "open"
    DUE = "due"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The states of all windows of one partition, as borders between them. Every border is the end of a window.

    clock_ms: the largest arrival time. idle_ms: the largest time up to which the partition is known to have been idle.
    """

    windows: Tumbling
    closed_through_ms: int
    due_ms: int
    clock_ms: int = NO_TIME
    idle_ms: int = NO_TIME

    @classmethod
    def begin(cls, windows: Tumbling, closed_through_ms: int, clock_ms: int) -> Schedule:
        """The schedule at a committed position.

        A window that the committed clock has passed and no commit has closed is due at once. Nothing was counted in
        it: replay starts no later than the first counted record of any window that is not closed, and the records
        behind it are late for this window, as they were at the first reading.
        """
        return cls(windows, closed_through_ms, max(closed_through_ms, windows.closed_by(clock_ms)), clock_ms)

    def state_of(self, start_ms: int) -> WindowState:
        """The state of the window that begins at a border."""
        end_ms = self.windows.grid.end(start_ms)
        if end_ms <= self.closed_through_ms:
            return WindowState.CLOSED
        return WindowState.DUE if end_ms <= self.due_ms else WindowState.OPEN

    @property
    def behind(self) -> bool:
        """Whether any window is due."""
        return self.due_ms > self.closed_through_ms

    def due_windows(self) -> Iterator[Window]:
        """The windows that are due, in order of time."""
        return windows_between(self.windows.grid, self.closed_through_ms, self.due_ms)

    def arrived(self, clock_ms: int) -> Schedule:
        """The schedule after records. clock_ms: the clock behind the last of them."""
        return replace(
            self, clock_ms=max(self.clock_ms, clock_ms), due_ms=max(self.due_ms, self.windows.closed_by(clock_ms))
        )

    def idle(self, until_ms: int) -> Schedule:
        """The schedule once it is known that no further record arrives before until_ms. The clock does not change."""
        return replace(
            self, idle_ms=max(self.idle_ms, until_ms), due_ms=max(self.due_ms, self.windows.due_through(until_ms))
        )

    def complete(self) -> Schedule:
        """The schedule after the last record: every window that a record up to the clock may belong to is due."""
        return self if self.clock_ms == NO_TIME else self.complete_at(self.windows.border_behind(self.clock_ms))

    def complete_at(self, border_ms: int) -> Schedule:
        """The schedule after the last record: every window up to this border is due."""
        return replace(self, due_ms=max(self.due_ms, border_ms))

    def closed(self, border_ms: int) -> Schedule:
        """The schedule once every close marker up to this border is committed."""
        return replace(self, closed_through_ms=max(self.closed_through_ms, border_ms))
