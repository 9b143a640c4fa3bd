"""Quarters, hours, days, weeks and months of a zone.

Quarters and hours are those of UTC. A local day begins at the first instant that shows its date; a week is the days
from Monday to Sunday, and a month those of one date's month, so both begin and end where days do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import gcd
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.readable import duration, instant, local
from sfm_stream.types import Window
from sfm_stream.units import GRAINS, HOUR_MS, LONGEST_DAY_MS, MINUTE_MS, QUARTER_MS, SHORTEST_DAY_MS
from sfm_stream.windows.grid import CalendarGrid, FixedGrid

_MILLISECOND = timedelta(milliseconds=1)
_FIXED = {"quarter": FixedGrid(QUARTER_MS), "hour": FixedGrid(HOUR_MS)}


@dataclass(frozen=True, slots=True)
class Calendar:
    """Spans of one zone. base: the finest grain, of which days are sums: hours, or quarters where a zone needs them.

    longest_day_ms: the longest day of the zone, which bounds what an item can lose in a day. day_step_ms: every day
    begins on a multiple of it; at most an hour.
    """

    zone: str
    base: str
    longest_day_ms: int
    day_step_ms: int = HOUR_MS

    @property
    def base_ms(self) -> int:
        return QUARTER_MS if self.base == "quarter" else HOUR_MS

    @property
    def grains(self) -> tuple[str, ...]:
        """The grains that roll-ups are made of, the finest first."""
        return GRAINS[GRAINS.index(self.base) :]

    def span(self, grain: str, time_ms: int) -> Window:
        """The quarter, hour, day, week or month that holds a time. Raises StateError for a day off the base."""
        fixed = _FIXED.get(grain)
        grid = fixed or CalendarGrid(grain, self.zone)
        start_ms = grid.floor(time_ms)
        end_ms = grid.end(start_ms)
        if fixed is None and (start_ms % self.base_ms or end_ms % self.base_ms):
            raise StateError(
                f"rollup.zone {self.zone}: the {grain} {local(start_ms, self.zone)[:10]} does not begin and end on a "
                f"{self.base} of UTC"
            )
        return Window(start_ms, end_ms)


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
    days = Calendar(zone, "quarter" if step < HOUR_MS else "hour", longest, step)
    if days.base_ms % window_ms:
        raise ConfigError(
            f"rollup.zone: days of {zone} are made of spans of {days.base_ms // MINUTE_MS} min of UTC, which windows "
            f"of {duration(window_ms)} do not fill; choose a window.size that divides {days.base_ms // MINUTE_MS} min, "
            'or "day"'
        )
    return days


def _days(zone: ZoneInfo, since_ms: int, until_year: int) -> tuple[int, int, int]:
    """(largest step, at most an hour, of which every day border is a multiple; shortest day; longest day), in ms.

    A day begins at the date's number of days, less the offset of the zone at its midnight, as `midnight_ms` says. So
    only days at whose end there is another offset have another length.
    """
    first = datetime.fromtimestamp(since_ms // 1000, zone).toordinal()
    step, lengths, before = HOUR_MS, {24 * HOUR_MS}, None
    for number in range(first, date(until_year, 1, 1).toordinal() + 1):
        offset = zone.utcoffset(datetime.fromordinal(number))
        if offset != before and offset is not None:
            step = gcd(step, offset // _MILLISECOND)
            if before is not None:
                lengths.add(24 * HOUR_MS - (offset - before) // _MILLISECOND)
            before = offset
    lengths.discard(0)  # a date that was left out, where a zone crossed the date line
    return step, min(lengths), max(lengths)
