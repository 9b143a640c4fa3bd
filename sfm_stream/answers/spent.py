"""What each epoch and released span of a pipeline has spent so far, from its published records alone.

Close markers say which windows are decided: each is paid for, whether or not a key was released in it. So is a window
that is being released, of which there are releases and no marker yet. What a window costs is fixed for an epoch. The
settings of a configuration are known to be those of an epoch by the fingerprint in its markers; of another epoch a
release says what its bits and its count cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from sfm_stream.answers.published_records import close_markers, decoded, heads_of_ends
from sfm_stream.answers.span_name import span_name
from sfm_stream.config.config import Config
from sfm_stream.errors import NothingFound
from sfm_stream.privacy.epsilon import decimals, epsilon_of
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS, SKETCHES
from sfm_stream.windows.grid import Grid, grid_of
from sfm_stream.wire.codec import Release

_Run: TypeAlias = tuple[int, str]
"""What close markers are in sequence of: an epoch, and the name of a released span."""
_Setting: TypeAlias = tuple[str, int]
"""What a marker says of the settings of its epoch: their fingerprint, and how many partitions there are."""
_WINDOWS_TRIED = 100
"""Windows of a span at its end, and as many at its beginning, in which a release is looked for."""


@dataclass(frozen=True, slots=True)
class Price:
    """What an item loses in one window of a span in which it is active, under one key.

    bits, count: epsilon of the parts of a release. selection, delta: of the selection of the key.
    """

    bits: Decimal
    count: Decimal
    selection: Decimal
    delta: Decimal

    @property
    def epsilon(self) -> Decimal:
        with decimals():
            return self.bits + self.count + self.selection


@dataclass(frozen=True, slots=True)
class SpentSpan:
    """The windows of one released span that one epoch has decided, in whichever partition is furthest.

    decided: from the start of the first to the end of the last, one that is being released included. price: None where
    it is not known: the epoch had other settings than the configuration, and none of its first and last windows has a
    release. is_configured: whether the epoch has the settings of the configuration; else the selection is taken from
    that and may have been another.
    """

    epoch: int
    name: str
    zone: str
    decided: Window
    price: Price | None
    is_configured: bool

    @property
    def grid(self) -> Grid:
        return grid_of(self.name, self.zone)

    @property
    def windows(self) -> int:
        """How many windows are decided."""
        return self.grid.count(self.decided.start_ms, self.decided.end_ms)

    def around(self, time: Window) -> Window | None:
        """The time from the start of the first to the end of the last of them that overlap this time, or a longer one.

        None where none does.
        """
        grid = self.grid
        low_ms, high_ms = max(time.start_ms, self.decided.start_ms), min(time.end_ms, self.decided.end_ms)
        if low_ms >= high_ms:
            return None
        low_ms, high_ms = grid.floor(low_ms), grid.ceil(high_ms)
        if self._is_of_another_zone:
            low_ms, high_ms = grid.floor(low_ms - 1), grid.end(high_ms)
        return Window(low_ms, high_ms)

    @property
    def _is_of_another_zone(self) -> bool:
        """Whether its days were those of another zone, each of which overlaps two days of this one."""
        return self.grid.floor(self.decided.start_ms) != self.decided.start_ms

    def windows_in(self, time: Window) -> int:
        """How many of them lie in this time, or overlap it, at most."""
        around = self.around(time)
        if around is None:
            return 0
        # Of another zone one more overlaps it than there are days in it, and around it are two more.
        return min(self.windows, self.grid.count(around.start_ms, around.end_ms) - self._is_of_another_zone)


def spent(reader: TopicReader, config: Config) -> tuple[SpentSpan, ...]:
    """What the pipeline of a configuration has spent, by epoch and, in each, from the finest span to the coarsest.

    Raises NothingFound where no window is decided, or being released.
    """
    times, expected, settings = dict[_Run, Window](), set[_Run](), dict[int, set[_Setting]]()
    for marker in close_markers(reader, config.pipeline.id, 0, FOREVER_MS):  # of a topic there are very many
        run, window = (marker.epoch, span_name(marker)), Window(marker.start_ms, marker.through_ms)
        times[run] = _around(times.get(run, window), window)
        expected.update((marker.epoch, name) for name in marker.spans)
        settings.setdefault(marker.epoch, set()).add((marker.fingerprint, marker.partitions))
    for run, window in _being_released(reader, config, times, expected):
        times[run] = _around(times.get(run, window), window)
    if not times:
        raise NothingFound(f"pipeline {config.pipeline.id} has decided no window yet, and so it has spent nothing")
    zone, found = config.calendar.zone, []
    for (epoch, name), time in times.items():
        found.append(_spent_span(reader, config, epoch, name, time, settings.get(epoch, set())))
    return tuple(sorted(found, key=lambda span: (span.epoch, grid_of(span.name, zone).longest_ms)))


def _around(one: Window, other: Window) -> Window:
    """The time from where the first of two begins to where the last one ends."""
    return Window(min(one.start_ms, other.start_ms), max(one.end_ms, other.end_ms))


def _being_released(
    reader: TopicReader, config: Config, decided: Mapping[_Run, Window], expected: Set[_Run]
) -> set[tuple[_Run, Window]]:
    """Windows that have releases, and are not in what is decided.

    A partition releases one window after the other, so these are the first that is not decided of each run, or behind
    all that the newest epoch has decided. expected: runs that markers tell of, and that need not have begun.
    """
    zone, found = config.calendar.zone, set[tuple[_Run, Window]]()
    newest = max((epoch for epoch, _ in decided), default=0)
    begins = {run: window.end_ms for run, window in decided.items()}
    for epoch, name in expected - decided.keys():
        first_ms = min(window.start_ms for run, window in decided.items() if run[0] == epoch)
        begins[epoch, name] = grid_of(name, zone).ceil(first_ms)
    ends = {(end_ms, end_ms) for (_, name), ms in begins.items() for end_ms in [grid_of(name, zone).end(ms)]}
    behind_ms = 1 + max((window.end_ms for run, window in decided.items() if run[0] == newest), default=-1)
    for since_ms, until_ms in {*ends, (behind_ms, FOREVER_MS)}:
        for head in heads_of_ends(reader, config.pipeline.id, since_ms, until_ms):
            run = head.epoch, span_name(head)
            if run not in decided or head.window.end_ms > decided[run].end_ms:
                found.add((run, head.window))
    return found


def _spent_span(
    reader: TopicReader, config: Config, epoch: int, name: str, decided: Window, settings: Set[_Setting]
) -> SpentSpan:
    """settings: in the markers of the epoch, of any span."""
    is_configured = bool(settings) and all(
        fingerprint == config.fingerprint(partitions) for fingerprint, partitions in settings
    )
    zone = config.calendar.zone
    price = _configured(config, name) if is_configured else None
    if price is None:
        price = _released(reader, config, epoch, name, decided)
    return SpentSpan(epoch, name, zone, decided, price, is_configured)


def _configured(config: Config, name: str) -> Price | None:
    """The price of a span as it is configured; None for one that the configuration does not have."""
    budget = config.budget
    # A span of a fixed length may have two names, "1h" and "hour": its grid is the same.
    grid = grid_of(name, config.calendar.zone)
    for span in budget.spans:
        if grid_of(span.name, config.calendar.zone) == grid:
            return Price(span.bits_epsilon, span.count_epsilon, budget.epsilon_selection, budget.delta_selection)
    return None


def _released(reader: TopicReader, config: Config, epoch: int, name: str, decided: Window) -> Price | None:
    """The price that a release shows, with the selection of the configuration; None where none is found."""
    budget = config.budget
    for end_ms in _ends(grid_of(name, config.calendar.zone), decided):
        for stored in reader.look_up(SKETCHES, end_ms, end_ms):
            record = decoded(SKETCHES, stored)
            if not isinstance(record, Release) or record.pipeline != config.pipeline.id:
                continue
            if record.epoch == epoch and span_name(record) == name:
                bits = Decimal(epsilon_of(record.sketch.flip_threshold))
                count = Decimal(0) if record.sketch.count is None else record.sketch.count.epsilon
                return Price(bits, count, budget.epsilon_selection, budget.delta_selection)
    return None


def _ends(grid: Grid, decided: Window) -> Iterator[int]:
    """The ends of the last windows, from the last one back, then those of the first ones."""
    end_ms = decided.end_ms
    for _ in range(_WINDOWS_TRIED):
        if end_ms <= decided.start_ms:
            return
        yield end_ms
        end_ms = grid.floor(end_ms - 1)
    first_ms = grid.end(decided.start_ms)
    for _ in range(_WINDOWS_TRIED):
        if first_ms > end_ms:
            return
        yield first_ms
        first_ms = grid.end(first_ms)
