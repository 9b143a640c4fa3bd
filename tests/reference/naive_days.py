"""Local days by asking every quarter of an hour for its date: oracle for rollup/calendar.py. Imports nothing of it.

A day begins at the first instant that shows its date, and the day of an instant is the latest one that has begun: where
clocks go back over midnight, the old date that shows again belongs to the new day.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

MINUTE_MS = 60_000


def day_borders(zone: str, low_ms: int, high_ms: int, step_ms: int = 15 * MINUTE_MS) -> list[int]:
    """Every instant in [low, high) at which a date is shown that was never shown before; low is taken to be one."""
    borders, latest = [], None
    for time_ms in range(low_ms, high_ms, step_ms):
        date = datetime.fromtimestamp(time_ms // 1000, ZoneInfo(zone)).date()
        if latest is None or date > latest:
            borders.append(time_ms)
            latest = date
    return borders
