"""True distinct counts of JSON lines, with plain sets and the standard library. Shares no code with the package."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


def exact_counts(
    lines: Iterable[bytes], key: str, item: str, time: str, window: timedelta, zone: str = "UTC"
) -> dict[tuple[str, str, datetime, datetime], int]:
    """(grain, key, start, end) -> number of distinct items; grains window, hour and day (of the zone).

    time: a field with ISO 8601 text or milliseconds. Lines without a usable item are left out.
    """
    seen: dict[tuple[str, str, datetime, datetime], set[object]] = defaultdict(set)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for line in lines:
        event = json.loads(line)
        if event.get(item) is None:
            continue
        at = event[time]
        moment = datetime.fromisoformat(at) if isinstance(at, str) else epoch + timedelta(milliseconds=at)
        start = epoch + (moment - epoch) // window * window
        hour = epoch + (moment - epoch) // timedelta(hours=1) * timedelta(hours=1)
        local = moment.astimezone(ZoneInfo(zone))
        midnight = datetime(local.year, local.month, local.day, tzinfo=ZoneInfo(zone))
        following = local.date() + timedelta(days=1)
        next_midnight = datetime(following.year, following.month, following.day, tzinfo=ZoneInfo(zone))
        for grain, begin, end in (
            ("window", start, start + window),
            ("hour", hour, hour + timedelta(hours=1)),
            ("day", midnight.astimezone(UTC), next_midnight.astimezone(UTC)),
        ):
            seen[grain, event[key], begin, end].add(event[item])
    return {place: len(items) for place, items in seen.items()}
