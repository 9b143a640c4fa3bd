"""Times and spans in words for people, in the zone of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from sfm_stream.readable import local
from sfm_stream.types import Window
from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS
from sfm_stream.windows.grid import grid_of

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def moment(time_ms: int, zone: str) -> datetime:
    """A time as its zone shows it."""
    return datetime.fromtimestamp(time_ms / 1000, ZoneInfo(zone))


def time_words(time_ms: int, zone: str) -> str:
    """A time: Wed 16 Jan 2013 07:00; in the hour that clocks show twice with its offset."""
    clock = local(time_ms, zone).split(" ", 1)[1]
    return f"{_date(moment(time_ms, zone))} {clock}"


def span_words(window: Window, grain: str, zone: str) -> str:
    """A span: January 2013; Wed 16 Jan 2013; Wed 16 Jan 2013 06:00 to 07:00."""
    start, months = moment(window.start_ms, zone), grid_of("month", zone)
    if months.floor(window.start_ms) == window.start_ms and months.end(window.start_ms) == window.end_ms:
        return f"{MONTHS[start.month - 1]} {start.year}"
    if grain == "week":
        return f"Week from {_date(start)}"
    if grain == "day":
        hours = (window.end_ms - window.start_ms) / HOUR_MS
        return _date(start) + ("" if hours == 24 else f" ({hours:g} hours)")
    days = grid_of("day", zone)
    if days.floor(window.start_ms) == window.start_ms and days.floor(window.end_ms) == window.end_ms:
        last = moment(window.end_ms - 1, zone)
        return _date(start) if _date(last) == _date(start) else f"{_date(start)} to {_date(last)}"
    end = time_words(window.end_ms, zone)
    if days.floor(window.start_ms) == days.floor(window.end_ms - 1):
        end = local(window.end_ms, zone).split(" ", 1)[1]
    return f"{time_words(window.start_ms, zone)} to {end}"


def axis_times(start_ms: int, end_ms: int, zone: str, most: int, least_ms: int = 0) -> list[tuple[int, str, bool]]:
    """(time, label, whether a coarser unit begins) for an axis: borders of hours, days, weeks, months or years.

    All are borders of the zone. The finest unit is chosen that is usually least_ms long or longer, and of which there
    are at most `most` in the span.
    """
    for step_ms, borders in _steps(zone):
        if step_ms >= least_ms and (end_ms - start_ms) / step_ms <= most + 1:
            found = [each for each in borders(start_ms, end_ms) if start_ms <= each[0] <= end_ms]
            if len(found) <= most:
                return found
    return []


_Borders = Callable[[int, int], Iterator[tuple[int, str, bool]]]


def _steps(zone: str) -> Iterator[tuple[int, _Borders]]:
    """Units with their usual length, the finest first."""
    for minutes in (5, 15):
        yield minutes * MINUTE_MS, lambda low, high, m=minutes: _clock(low, high, zone, m)  # type: ignore[misc]
    for hours in (1, 3, 6, 12):
        yield hours * HOUR_MS, lambda low, high, m=hours * 60: _clock(low, high, zone, m)  # type: ignore[misc]
    for days in (1, 2, 7):
        yield days * DAY_MS, lambda low, high, n=days: _days(low, high, zone, n)  # type: ignore[misc]
    for months in (1, 3, 12, 60, 240, 1200):
        yield months * 30 * DAY_MS, lambda low, high, n=months: _months(low, high, zone, n)  # type: ignore[misc]


def _clock(start_ms: int, end_ms: int, zone: str, minutes: int) -> Iterator[tuple[int, str, bool]]:
    step_ms = min(minutes * MINUTE_MS, QUARTER_MS)
    for time_ms in range(start_ms - start_ms % step_ms, end_ms + 1, step_ms):
        shown = moment(time_ms, zone)
        if (of_day := 60 * shown.hour + shown.minute) % minutes == 0:
            yield time_ms, f"{shown:%H:%M}" if of_day else _short_date(shown), not of_day


def _days(start_ms: int, end_ms: int, zone: str, every: int) -> Iterator[tuple[int, str, bool]]:
    grid = grid_of("day", zone)
    time_ms = grid.ceil(start_ms)
    while time_ms <= end_ms:
        shown = moment(time_ms, zone)
        # A week begins on Monday; ordinal 1 was one.
        if shown.toordinal() % every == (1 if every == 7 else 0):
            yield time_ms, _short_date(shown), shown.day == 1
        time_ms = grid.end(time_ms)


def _months(start_ms: int, end_ms: int, zone: str, every: int) -> Iterator[tuple[int, str, bool]]:
    grid = grid_of("month", zone)
    time_ms = grid.ceil(start_ms)
    while time_ms <= end_ms:
        shown = moment(time_ms, zone)
        if (12 * shown.year + shown.month - 1) % every == 0:
            is_year = shown.month == 1
            yield time_ms, str(shown.year) if is_year else MONTHS[shown.month - 1][:3], is_year
        time_ms = grid.end(time_ms)


def _date(shown: datetime) -> str:
    return f"{DAYS[shown.weekday()]} {_short_date(shown)} {shown.year}"


def _short_date(shown: datetime) -> str:
    return f"{shown.day} {MONTHS[shown.month - 1][:3]}"
