"""The windows of released spans in a stretch of time, from 1970 UTC and from the local days of a zone."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from reference.naive_days import day_borders

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
Windows = list[tuple[int, int]]


@lru_cache
def _days(zone: str, low: int, high: int) -> list[int]:
    """The borders of local days between two days of UTC. That of the first day found is none."""
    return day_borders(zone, low * DAY_MS, high * DAY_MS)[1:]


def windows_of(span: str, zone: str, low_ms: int, high_ms: int) -> Windows:
    """(start, end) of the windows of a span that lie wholly in [low_ms, high_ms]. span: "5s", "30m", "hour", "day"."""
    if span == "day":
        days = pairwise(_days(zone, low_ms // DAY_MS - 2, high_ms // DAY_MS + 2))
        return [(start, end) for start, end in days if low_ms <= start and end <= high_ms]
    size_ms = HOUR_MS if span == "hour" else int(span[:-1]) * {"s": 1000, "m": MINUTE_MS}[span[-1]]
    first = -(-low_ms // size_ms) * size_ms
    return [(start, start + size_ms) for start in range(first, high_ms - size_ms + 1, size_ms)]
