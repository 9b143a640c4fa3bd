"""The only module that asks what time it is."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Wall clock in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """A clock for measuring spans, in seconds."""
    return time.monotonic()
