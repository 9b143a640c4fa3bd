"""What close markers say: how far each partition has decided the windows of each released span, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sfm_stream.answers.span_name import span_name
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import Grid, grid_of
from sfm_stream.wire.codec import CloseMarker, Release
from sfm_stream.wire.heads import ReleaseHead

_NOWHERE = Window(0, 0)


@dataclass(slots=True)
class EpochSpans:
    """The released spans of one epoch. partitions: how many the input has. zone: of its days.

    names: of the spans, the finest first, as close markers list them; before the first marker those of the releases.
    decided: name, then partition -> in which time every window of the span is decided, as far as markers were met.
    """

    partitions: int
    zone: str
    names: tuple[str, ...] = ()
    decided: dict[str, dict[int, Window]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The finest span."""
        return self.names[0]

    @property
    def grids(self) -> list[Grid]:
        """Of the spans, the coarsest first."""
        return [grid_of(name, self.zone) for name in reversed(self.names)]

    def note(self, record: Release | ReleaseHead | CloseMarker) -> None:
        """Take any record of the epoch."""
        name = span_name(record)
        if isinstance(record, CloseMarker):
            self.names = record.spans or (name,)
            of_span = self.decided.setdefault(name, {})
            known = of_span.get(record.partition)
            low_ms = min(known.start_ms, record.start_ms) if known else record.start_ms
            high_ms = max(known.end_ms, record.through_ms) if known else record.through_ms
            of_span[record.partition] = Window(low_ms, high_ms)
        elif name not in self.names and not self.decided:
            names = {*self.names, name}
            self.names = tuple(sorted(names, key=lambda each: grid_of(each, self.zone).longest_ms))

    def base_decided(self, partition: int | None) -> Window:
        """The time in which this partition has decided every base window; None: in which all partitions have."""
        of_base = self.decided.get(self.base, {})
        if partition is not None:
            return of_base.get(partition, _NOWHERE)
        if len(of_base) < self.partitions:
            return _NOWHERE
        low_ms = max(decided.start_ms for decided in of_base.values())
        return Window(low_ms, min(decided.end_ms for decided in of_base.values()))

    def has_decided(self, partition: int, span: Window) -> bool:
        """Whether this partition has decided every window that lies in a span of time."""
        return not any(
            (border_ms := grid.floor(span.end_ms)) > through_ms and grid.floor(border_ms - 1) >= span.start_ms
            for grid, through_ms in self._reached(partition)
        )

    def through_ms(self, partition: int) -> int:
        """The latest time such that this partition has decided every window that ends at or before it."""
        (_, base_ms), *coarser = self._reached(partition)
        return min([base_ms, *(grid.end(through_ms) - 1 for grid, through_ms in coarser)])

    def last_borders(self) -> set[int]:
        """Both ends of the last window of each coarser span that ends where a partition has come, or before."""
        reached = [decided.end_ms for decided in self.decided.get(self.base, {}).values()]
        ends = {(grid, grid.floor(through_ms)) for grid in self.grids[:-1] for through_ms in reached}
        return {border for grid, end_ms in ends for border in (grid.floor(max(0, end_ms - 1)), end_ms)}

    def _reached(self, partition: int) -> list[tuple[Grid, int]]:
        """The grid of each span, the finest first, and the border through which this partition has decided it.

        Without a marker of it that is its first border of the epoch, before which it has no window.
        """
        first_ms = self.base_decided(partition).start_ms
        grids = {name: grid_of(name, self.zone) for name in self.names}
        return [
            (grid, self.decided.get(name, {}).get(partition, Window(first_ms, grid.ceil(first_ms))).end_ms)
            for name, grid in grids.items()
        ]


@dataclass(slots=True)
class DecidedSpans:
    """The released spans of every epoch of a pipeline, as its markers and releases show them. zone: of its days."""

    zone: str
    epochs: dict[int, EpochSpans] = field(default_factory=dict)
    first_ms: dict[int, int] = field(default_factory=dict)
    """Epoch -> the earliest time that it is known to have counted."""

    def note(self, record: Release | ReleaseHead | CloseMarker) -> None:
        """Take any record of the pipeline."""
        self.epochs.setdefault(record.epoch, EpochSpans(record.partitions, self.zone)).note(record)
        start_ms = record.start_ms if isinstance(record, CloseMarker) else record.window.start_ms
        self.first_ms[record.epoch] = min(start_ms, self.first_ms.get(record.epoch, FOREVER_MS))

    def is_marked(self, epoch: int) -> bool:
        """Whether a marker of this epoch is known, which names all its spans."""
        return epoch in self.epochs and bool(self.epochs[epoch].decided)

    def is_complete(self, partitions: Iterable[int], span: Window) -> bool:
        """Whether no release of these partitions can come any more whose window lies in a span of time."""
        return all(self._is_decided(partition, span) for partition in partitions)

    def through_ms(self) -> int:
        """The latest time through which every partition that ever decided anything has decided all windows; or 0."""
        reached: dict[int, int] = {}
        for epoch in self.epochs.values():
            for partition in epoch.decided.get(epoch.base, {}):
                through_ms = epoch.through_ms(partition)
                reached[partition] = max(through_ms, reached.get(partition, 0))
        newest = self.epochs[max(self.epochs)].partitions if self.epochs else 0
        return min((through_ms for partition, through_ms in reached.items() if partition < newest), default=0)

    def grids_over(self, gap: Window) -> list[tuple[Window, list[Grid]]]:
        """The gap in the parts that belong to one epoch each, with the grids of its spans, the coarsest first.

        An epoch begins where it is first known to have counted, and the first one also stands for what lies before.
        """
        begins = sorted((first_ms, epoch) for epoch, first_ms in self.first_ms.items())
        parts = []
        for number, (begin_ms, epoch) in enumerate(begins):
            next_ms = begins[number + 1][0] if number + 1 < len(begins) else FOREVER_MS
            low_ms = max(gap.start_ms, begin_ms if number else 0)
            high_ms = min(gap.end_ms, next_ms)
            if low_ms < high_ms:
                parts.append((Window(low_ms, high_ms), self.epochs[epoch].grids))
        return parts

    def _is_decided(self, partition: int, span: Window) -> bool:
        """Whether each epoch of a partition is decided in its part of a span, up to where the next epoch begins."""
        epochs = [each for _, each in sorted(self.epochs.items()) if each.base_decided(partition) != _NOWHERE]
        begins = [each.base_decided(partition).start_ms for each in epochs[1:]]
        parts = [Window(span.start_ms, min(end_ms, span.end_ms)) for end_ms in (*begins, span.end_ms)]
        return bool(epochs) and all(
            epoch.has_decided(partition, part)
            for epoch, part in zip(epochs, parts, strict=True)
            if part.start_ms < part.end_ms
        )
