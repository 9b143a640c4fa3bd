"""Logs and readings that the tests of one partition's roll-up share: windows of a quarter from T0 on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.rollup_runs import (
    HOUR_MS,
    QUARTER_MS,
    at,
    marker,
    release,
)

from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.types import KeyValue
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.wire.keys import encode_key

UTC = calendar("UTC", QUARTER_MS, 0, 2030)
KATHMANDU = calendar("Asia/Kathmandu", QUARTER_MS, at("2020-01-01"), 2030)
T0 = at("2026-01-01")
A, B = encode_key("a"), encode_key("b")


def quarter(number: int) -> int:
    """Start of a window, counted from T0."""
    return T0 + number * QUARTER_MS


def windows(*numbers: int, key: KeyValue = "a", **other: Any) -> list[bytes]:
    """A release of each of these windows."""
    return [release(quarter(number), key, **other) for number in numbers]


def closed(low: int, high: int, **other: Any) -> bytes:
    """A close marker from one window up to another."""
    return marker(quarter(low), quarter(high), **other)


def shown(records: Iterable[RollupRecord]) -> list[tuple[Any, ...]]:
    """(grain, hour of the start, key, released, decided, windows, complete) of each record."""
    return [
        (r.grain, (r.window.start_ms - T0) / HOUR_MS, r.key, r.released, r.decided, r.windows, r.complete)
        for r in records
    ]
