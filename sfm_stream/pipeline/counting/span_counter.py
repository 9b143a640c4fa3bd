"""One released span of one partition: cells come in, windows become due, and are drawn, closed and forgotten.

The finest span, the base, gets its cells from records. Each coarser one gets the cells of every base window inside its
own when that window is closed, and directly only those records that come too late for their base window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.pipeline.counting.releases import ReleaseDraw
from sfm_stream.pipeline.counting.replay import ReplayPoint, ReplayPoints
from sfm_stream.pipeline.counting.schedule import Schedule
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import EventColumns, SpanProgress, Window
from sfm_stream.windows.store import OpenWindow, WindowStore
from sfm_stream.windows.tumbling import Tumbling


class SpanCounter:
    """The windows of one span. Holds SECRET state in `store`.

    progress: what is committed. draw: of the releases of this span. cells: the shape of the cells that it is given.
    """

    def __init__(
        self,
        span: ReleasedSpan,
        windows: Tumbling,
        progress: SpanProgress,
        clock_ms: int,
        cells: SketchShape,
        draw: ReleaseDraw,
    ) -> None:
        self.span, self.draw = span, draw
        self.store = WindowStore(cells)
        self.replay = ReplayPoints()
        self.begin_at(windows, progress, clock_ms)

    def begin_at(self, windows: Tumbling, progress: SpanProgress, clock_ms: int) -> None:
        """Begin with these windows, where they are decided so far."""
        self.windows = windows
        self.progress = replace(progress, name=self.span.name)
        closed_ms = max(progress.closed_through_ms, windows.start_ms)
        self.schedule = Schedule.begin(windows, closed_ms, clock_ms)

    def count(
        self,
        starts: NDArray[np.int64],
        columns: EventColumns,
        rows: NDArray[np.intp] | slice,
    ) -> None:
        """Set the cells of these rows, in the windows that begin at `starts`, shape (rows,)."""
        self.store.add(starts, columns.key_ids[rows], columns.cells[rows], columns.offsets[rows])

    def around(self, start_ms: int) -> int | None:
        """Start of the window that gets the cells of a base window; None where it is not released, or decided."""
        mine_ms = self.windows.grid.floor(start_ms)
        inside = self.schedule.closed_through_ms <= mine_ms < self.windows.end_ms
        return mine_ms if inside else None

    def expect(self, opened: dict[int, ReplayPoint]) -> None:
        """Take the replay points of base windows that were opened, whose cells will be absorbed here."""
        for start_ms, point in opened.items():
            if (mine_ms := self.around(start_ms)) is not None:
                self.replay.take(mine_ms, point)

    def absorb(self, start_ms: int, base: OpenWindow) -> None:
        """Take the cells of a base window that is closed."""
        if (mine_ms := self.around(start_ms)) is not None:
            self.store.absorb(mine_ms, base)

    @property
    def first_due(self) -> Window | None:
        """The first window that is due and not closed, None where there is none."""
        return next(self.schedule.due_windows(), None)

    def due_before(self, end_ms: int) -> Iterator[Window]:
        """The windows that are due and end at or before this, in order of time."""
        for window in self.schedule.due_windows():
            if window.end_ms > end_ms:
                return
            yield window

    def closed(self, progress: SpanProgress) -> list[int]:
        """Take what is committed now. Returns the starts of windows that hold something and are closed, ascending."""
        self.progress = progress
        self.schedule = self.schedule.closed(progress.closed_through_ms)
        return [start_ms for start_ms in self.store.starts() if start_ms < progress.closed_through_ms]

    def forget(self, closed: list[int]) -> None:
        """Drop the raw state of closed windows, and where replay would begin for them."""
        for start_ms in closed:
            self.store.drop(start_ms)
        self.replay.forget(self.progress.closed_through_ms)
