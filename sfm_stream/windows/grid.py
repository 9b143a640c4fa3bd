"""The borders between windows: of a fixed length from 1970 UTC on, or of the days, weeks and months of a zone.

Borders of a zone are looked up, not computed for each record: those of one year at a time, and once. Local days exist
here and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from sfm_stream.readable import parse_duration
from sfm_stream.types import NO_TIME, Window
from sfm_stream.units import CALENDAR_UNITS, DAY_MS, FOREVER_MS, HOUR_MS, LONGEST_DAY_MS

HOUR: Final = "hour"
_DAYS: Final = {"day": 1, "week": 7, "month": 31}
_LAST_TIME_S: Final = 253_402_300_799
_FAR_YEAR: Final = 2200
"""From here on no zone leaves out a date, so that windows can be counted without a look at each border."""
_DAY: Final = timedelta(days=1)


class Grid(Protocol):
    """The borders of windows. Every time lies in one window, [border, next border). Times in ms since 1970 UTC."""

    @property
    def longest_ms(self) -> int:
        """No window is longer."""
        ...

    def floor(self, time_ms: int) -> int:
        """The last border at or before a time."""
        ...

    def ceil(self, time_ms: int) -> int:
        """The first border at or after a time."""
        ...

    def end(self, start_ms: int) -> int:
        """The end of the window that begins at a border."""
        ...

    def floors(self, times_ms: NDArray[np.int64], low_ms: int = 0, high_ms: int = FOREVER_MS) -> NDArray[np.int64]:
        """Shape (n,): floor() of each time from low_ms, a border not before 1970, to high_ms.

        Of an earlier time it is any time before low_ms, and of a later one any border: so a few records with wrong
        times cost nothing.
        """
        ...

    def ends(self, starts_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Shape (n,): end() of each border from 1970 on."""
        ...

    def count(self, low_ms: int, high_ms: int) -> int:
        """The number of windows between two borders."""
        ...


@dataclass(frozen=True, slots=True)
class FixedGrid:
    """Windows of one length; a border is at 1970 UTC."""

    size_ms: int

    @property
    def longest_ms(self) -> int:
        return self.size_ms

    def floor(self, time_ms: int) -> int:
        return time_ms - time_ms % self.size_ms

    def ceil(self, time_ms: int) -> int:
        return time_ms + -time_ms % self.size_ms

    def end(self, start_ms: int) -> int:
        return start_ms + self.size_ms

    def floors(self, times_ms: NDArray[np.int64], low_ms: int = 0, high_ms: int = FOREVER_MS) -> NDArray[np.int64]:
        return times_ms - times_ms % self.size_ms

    def ends(self, starts_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        return starts_ms + self.size_ms

    def count(self, low_ms: int, high_ms: int) -> int:
        return (high_ms - low_ms) // self.size_ms


@dataclass(frozen=True, slots=True)
class CalendarGrid:
    """The days, weeks or months of a zone. unit: of CALENDAR_UNITS. The last one before the year 10000 has no end."""

    unit: str
    zone: str

    @property
    def longest_ms(self) -> int:
        return (_DAYS[self.unit] - 1) * DAY_MS + LONGEST_DAY_MS

    def floor(self, time_ms: int) -> int:
        borders = _borders_near(self.unit, self.zone, _year(time_ms))
        return borders[bisect_right(borders, time_ms) - 1]

    def ceil(self, time_ms: int) -> int:
        start_ms = self.floor(time_ms)
        return start_ms if start_ms == time_ms else self.end(start_ms)

    def end(self, start_ms: int) -> int:
        borders = _borders_near(self.unit, self.zone, _year(start_ms))
        place = bisect_right(borders, start_ms)
        return borders[place] if place < len(borders) else FOREVER_MS

    def floors(self, times_ms: NDArray[np.int64], low_ms: int = 0, high_ms: int = FOREVER_MS) -> NDArray[np.int64]:
        if not len(times_ms):
            return times_ms
        first_ms, last_ms = int(times_ms.min()), int(times_ms.max())
        if first_ms < low_ms:
            starts, inside = np.full(len(times_ms), NO_TIME, np.int64), times_ms >= low_ms
            starts[inside] = self.floors(times_ms[inside], low_ms, high_ms)
            return starts
        start_ms, last_ms = self.floor(first_ms), max(first_ms, min(last_ms, high_ms))
        if last_ms < self.end(start_ms):
            return np.full(len(times_ms), start_ms, np.int64)
        borders = self._borders(start_ms, last_ms)[:-1]
        return borders[np.searchsorted(borders, times_ms, "right") - 1]

    def ends(self, starts_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(starts_ms):
            return starts_ms
        borders = self._borders(max(0, int(starts_ms.min())), int(starts_ms.max()))
        return borders[np.minimum(np.searchsorted(borders, starts_ms, "right"), len(borders) - 1)]

    def count(self, low_ms: int, high_ms: int) -> int:
        if high_ms > (far_ms := _borders_of(self.unit, self.zone, _FAR_YEAR)[0]):
            behind = self._place(high_ms) - self._place(max(low_ms, far_ms))
            return behind + (self.count(low_ms, far_ms) if low_ms < far_ms else 0)
        borders = self._borders(low_ms, high_ms)
        return int(np.searchsorted(borders, high_ms) - np.searchsorted(borders, low_ms))

    def _place(self, time_ms: int) -> int:
        """How many windows begin before a time of a far year, from some fixed one on: by its date alone."""
        border_ms = self.floor(time_ms)
        day = datetime.fromtimestamp(border_ms / 1000, ZoneInfo(self.zone)).date()
        number = 12 * day.year + day.month if self.unit == "month" else day.toordinal() // _DAYS[self.unit]
        return number + (border_ms < time_ms)

    def _borders(self, low_ms: int, high_ms: int) -> NDArray[np.int64]:
        """Borders, ascending: from the last one at or before low_ms to the first one behind high_ms."""
        years = range(_year(low_ms) - 1, _year(high_ms) + 2)
        every = sorted({border for year in years for border in _borders_of(self.unit, self.zone, year)})
        low, high = bisect_right(every, low_ms) - 1, bisect_right(every, high_ms)
        return np.array([*every[low : high + 1], *([FOREVER_MS] if high == len(every) else [])], np.int64)


def grid_of(name: str, zone: str) -> Grid:
    """The grid of a span by its name: "5m", "hour", "day", "week" or "month"."""
    size_ms = fixed_size_ms(name)
    return CalendarGrid(name, zone) if size_ms is None else FixedGrid(size_ms)


def fixed_size_ms(name: str) -> int | None:
    """The length of every window of a span, by its name; None where a zone decides."""
    if name in CALENDAR_UNITS:
        return None
    return HOUR_MS if name == HOUR else parse_duration(name)


def windows_between(grid: Grid, low_ms: int, high_ms: int) -> Iterator[Window]:
    """The windows between two borders, in order of time."""
    while low_ms < high_ms:
        end_ms = grid.end(low_ms)
        yield Window(low_ms, end_ms)
        low_ms = end_ms


def midnight_ms(day: date, zone: ZoneInfo) -> int:
    """Start of a local day. Where clocks skip midnight, Python's fold=0 reading is the instant of the skip."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    return round(local.astimezone(UTC).timestamp() * 1000)


def _year(time_ms: int) -> int:
    return datetime.fromtimestamp(min(time_ms // 1000, _LAST_TIME_S), UTC).year


@lru_cache(256)
def _borders_near(unit: str, zone: str, year: int) -> tuple[int, ...]:
    """The borders of a year and of the years beside it, ascending."""
    return tuple(sorted({border for each in range(year - 1, year + 2) for border in _borders_of(unit, zone, each)}))


@lru_cache(1024)
def _borders_of(unit: str, zone: str, year: int) -> tuple[int, ...]:
    """The starts of the windows that begin in a year of the zone. A date that a zone left out has none of its own."""
    if not 1 < year < 10_000:
        return ()
    info = ZoneInfo(zone)
    return tuple(midnight_ms(day, info) for day in _first_days(unit, year))


def _first_days(unit: str, year: int) -> Iterator[date]:
    """The dates of a year on which a window begins."""
    if unit == "month":
        yield from (date(year, month, 1) for month in range(1, 13))
        return
    first = date(year, 1, 1)
    days = (date(year + 1, 1, 1) - first).days if year < 9999 else 365
    step = _DAYS[unit]
    for number in range(0 if step == 1 else -first.weekday() % 7, days, step):
        yield first + number * _DAY
