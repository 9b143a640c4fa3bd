"""The configuration file as typed settings: one TOML file, every table and key known, every value checked.

Only shapes and ranges of single settings are checked here; config.py checks what they mean together.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")


def duration_ms(value: Any) -> int:
    """Milliseconds of a duration such as "500ms", "90s", "30m", "2h" or "1d"."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('expected a duration in quotes, such as "30m" (units ms, s, m, h, d)')
    return int(match[1]) * _UNITS_MS[match[2]]


def instant_ms(value: Any) -> int:
    """Milliseconds since 1970 of a TOML date-time with an offset."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("expected a date and time with an offset, without quotes, such as 2026-01-31T00:00:00Z")
    return round(value.timestamp() * 1000)


def paths(value: Any) -> tuple[str, ...]:
    """Field paths from one text or a list of them."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(path, str) and path for path in listed):
        raise ValueError("expected a field name, or a list of field names (an empty list: one count for the stream)")
    return tuple(listed)


def number(value: Any) -> Decimal:
    """An exact decimal from a TOML number; text and booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return value if isinstance(value, Decimal) else Decimal(repr(value))


Duration = Annotated[int, BeforeValidator(duration_ms)]
Instant = Annotated[int, BeforeValidator(instant_ms)]
Paths = Annotated[tuple[str, ...], BeforeValidator(paths)]
Number = Annotated[Decimal, BeforeValidator(number)]
KeyEntry = StrictStr | StrictInt | list[StrictStr | StrictInt]


class Table(BaseModel):
    """A TOML table: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PipelineTable(Table):
    id: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    epoch: Annotated[StrictInt, Field(ge=1, lt=1 << 31)] = 1


class InputTable(Table):
    path: Annotated[StrictStr, Field(min_length=1)]
    """A file of JSON lines, plain or gzip, or "-" for standard input."""
    complete: StrictBool = False
    """The end of this input is its end for ever: all windows are closed there."""


class EventTable(Table):
    key: Paths
    item: Annotated[StrictStr, Field(min_length=1)]
    time: Annotated[StrictStr, Field(min_length=1)]
    time_unit: StrictStr
    naive_time: Literal["refuse", "utc"] = "refuse"
    float_items: StrictBool = False
    earliest: Instant = 631_152_000_000
    latest: Instant | None = None
    max_key_bytes: Annotated[StrictInt, Field(ge=1, le=65536)] = 1024
    max_record_bytes: Annotated[StrictInt, Field(ge=64, le=16 << 20)] = 1 << 20


class WindowTable(Table):
    size: Duration
    grace: Duration
    start: Instant | None = None
    max_future_skew: Duration = 3_600_000


class SketchTable(Table):
    buckets: StrictInt = 4096
    levels: StrictInt = 24
    hash: Literal["xxh64", "blake2b"] = "xxh64"
    hash_key_file: Path | None = None


class DeclaredFrom(Table):
    """Keys that take effect in a later window."""

    since: Instant
    keys: list[KeyEntry]


class PrivacyTable(Table):
    epsilon: Number
    keys: Literal["declared", "selected", "presence_is_public"]
    max_epsilon_per_item_day: Number
    declared: list[KeyEntry] = []
    declared_from: list[DeclaredFrom] = []
    epsilon_selection: Number | None = None
    delta_selection: Number | None = None


class RollupTable(Table):
    zone: StrictStr = "UTC"
    deadline: Duration = 3_600_000
    """How long after its end an hour or a day that is not final is published as it stands."""


class OutputTable(Table):
    path: Annotated[StrictStr, Field(min_length=1)]


class LimitsTable(Table):
    max_gap_windows: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_consecutive_invalid: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_open_keys: Annotated[StrictInt, Field(ge=1)] = 5_000_000
    max_raw_bytes: Annotated[StrictInt, Field(ge=1 << 20)] = 4 << 30
    max_transaction_bytes: Annotated[StrictInt, Field(ge=1 << 16)] = 8 << 20


class Settings(Table):
    """The whole file."""

    pipeline: PipelineTable
    input: InputTable
    event: EventTable
    window: WindowTable
    sketch: SketchTable = SketchTable()
    privacy: PrivacyTable
    rollup: RollupTable = RollupTable()
    output: OutputTable
    limits: LimitsTable = LimitsTable()
