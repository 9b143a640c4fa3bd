"""Quarters, hours and days: the spans that windows are rolled up into. Local days exist here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import gcd
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.readable import duration, instant
from sfm_stream.types import Window
from sfm_stream.units import GRAINS, HOUR_MS, LONGEST_DAY_MS, MINUTE_MS, QUARTER_MS, SHORTEST_DAY_MS

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Spans of one zone. base: the finest grain, of which days are sums: hours, or quarters where a zone needs them.

    longest_day_ms: the longest day of the zone, which bounds what an item can lose in a day.
    """

    zone: str
    base: str
    longest_day_ms: int

    @property
    def base_ms(self) -> int:
        return QUARTER_MS if self.base == "quarter" else HOUR_MS

    @property
    def grains(self) -> tuple[str, ...]:
        return GRAINS[GRAINS.index(self.base) :]

    def span(self, grain: str, time_ms: int) -> Window:
        """The span of this grain that holds a time."""
        if grain == "day":
            return self._day(time_ms)
        size = QUARTER_MS if grain == "quarter" else HOUR_MS
        start = time_ms - time_ms % size
        return Window(start, start + size)

    def _day(self, time_ms: int) -> Window:
        zone = ZoneInfo(self.zone)
        day = datetime.fromtimestamp(time_ms // 1000, zone).date()
        start, end = _midnight_ms(day, zone), _midnight_ms(day + _DAY, zone)
        if end <= time_ms:  # clocks went back over midnight: the old date shows again after the new day has begun
            day, start, end = day + _DAY, end, _midnight_ms(day + 2 * _DAY, zone)
        if start % self.base_ms or end % self.base_ms:
            raise StateError(f"rollup.zone {self.zone}: the day {day} does not begin and end on a {self.base} of UTC")
        return Window(start, end)


def calendar(zone: str, window_ms: int, since_ms: int, until_year: int = 2100) -> Calendar:
    """The calendar of a zone for windows of this size.

    Raises ConfigError for an unknown zone, where a day between since_ms and until_year does not begin on a quarter of
    an hour of UTC or has not 22 to 26 hours, or where the base spans are not whole windows.
    """
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"rollup.zone: {zone!r} is not an IANA time zone name") from None
    step, shortest, longest = _days(info, since_ms, until_year)
    if step % QUARTER_MS:
        raise ConfigError(
            f"rollup.zone: days of {zone} do not begin on quarters of an hour of UTC since {instant(since_ms)}"
        )
    if shortest < SHORTEST_DAY_MS or longest > LONGEST_DAY_MS:
        raise ConfigError(
            f"rollup.zone: days of {zone} since {instant(since_ms)} have {shortest / HOUR_MS:g} to "
            f"{longest / HOUR_MS:g} "
            "hours, and only 22 to 26 can be rolled up; a later event.earliest may leave such days out"
        )
    days = Calendar(zone, "quarter" if step < HOUR_MS else "hour", longest)
    if days.base_ms % window_ms:
        raise ConfigError(
            f"rollup.zone: days of {zone} are sums of spans of {days.base_ms // MINUTE_MS} min of UTC, which windows "
            f"of {duration(window_ms)} do not fill; choose a window.size that divides {days.base_ms // MINUTE_MS} min"
        )
    return days


def _days(zone: ZoneInfo, since_ms: int, until_year: int) -> tuple[int, int, int]:
    """(largest step, at most an hour, of which every day border is a multiple; shortest day; longest day), in ms."""
    day = datetime.fromtimestamp(since_ms // 1000, zone).date()
    step, lengths = HOUR_MS, {24 * HOUR_MS}
    start = _midnight_ms(day, zone)
    while day.year < until_year:
        step = gcd(step, start)
        day += _DAY
        end = _midnight_ms(day, zone)
        lengths.add(end - start)
        start = end
    lengths.discard(0)  # a date that was left out, where a zone crossed the date line
    return step, min(lengths), max(lengths)


def _midnight_ms(day: date, zone: ZoneInfo) -> int:
    """Start of a local day. Where clocks skip midnight, Python's fold=0 reading is the instant of the skip."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    return round(local.astimezone(UTC).timestamp() * 1000)
