"""Local days, weeks and months by asking every quarter of an hour for its date: oracle for rollup/calendar.py.

Imports nothing of it.

A day begins at the first instant that shows its date, and the day of an instant is the latest one that has begun: where
clocks go back over midnight, the old date that shows again belongs to the new day.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from zoneinfo import ZoneInfo

MINUTE_MS = 60_000


def day_borders(zone: str, low_ms: int, high_ms: int, step_ms: int = 15 * MINUTE_MS) -> list[int]:
    """Every instant in [low, high) at which a date is shown that was never shown before; low is taken to be one."""
    return [time_ms for time_ms, _ in _days(zone, low_ms, high_ms, step_ms)]


def week_borders(zone: str, low_ms: int, high_ms: int) -> list[int]:
    """Every one of them at which a week that was never shown before is shown, as ISO 8601 numbers weeks."""
    return _first_of_each(zone, low_ms, high_ms, lambda date: date.isocalendar()[:2])


def month_borders(zone: str, low_ms: int, high_ms: int) -> list[int]:
    """Every one of them at which a month that was never shown before is shown."""
    return _first_of_each(zone, low_ms, high_ms, lambda date: (date.year, date.month))


def _first_of_each(zone: str, low_ms: int, high_ms: int, label: Callable[[date], tuple[int, ...]]) -> list[int]:
    first: dict[tuple[int, ...], int] = {}
    for time_ms, day in _days(zone, low_ms, high_ms, 15 * MINUTE_MS):
        first.setdefault(label(day), time_ms)
    return sorted(first.values())


def _days(zone: str, low_ms: int, high_ms: int, step_ms: int) -> list[tuple[int, date]]:
    borders: list[tuple[int, date]] = []
    for time_ms in range(low_ms, high_ms, step_ms):
        day = datetime.fromtimestamp(time_ms // 1000, ZoneInfo(zone)).date()
        if not borders or day > borders[-1][1]:
            borders.append((time_ms, day))
    return borders
