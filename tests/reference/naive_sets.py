"""What questions ask, of the events themselves: plain sets of items."""

from __future__ import annotations

from collections.abc import Iterable

Visit = tuple[int, str, str]
"""Time in milliseconds, key, item."""


def items(visits: Iterable[Visit], keys: Iterable[str], low_ms: int, high_ms: int) -> set[str]:
    """The items under at least one of these keys in a span."""
    wanted = set(keys)
    return {item for at, key, item in visits if key in wanted and low_ms <= at < high_ms}
