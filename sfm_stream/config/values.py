"""How a single value of a configuration is written: durations, instants, numbers, addresses, field paths and keys.

Each function gives the value that the settings hold. It raises ValueError with a text that follows the setting's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, StrictInt, StrictStr
from pydantic.fields import FieldInfo

from sfm_stream.readable import duration, parse_duration
from sfm_stream.units import CALENDAR_UNITS
from sfm_stream.windows.grid import HOUR

_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def duration_ms(value: Any) -> int:
    """Milliseconds of a duration such as "500ms", "90s", "30m", "2h" or "1d"."""
    span_ms = parse_duration(value) if isinstance(value, str) else None
    if span_ms is None:
        raise ValueError('expected a duration in quotes, such as "30m" (units ms, s, m, h, d)')
    return span_ms


def span_name(value: Any) -> str:
    """The name of a released span: "hour", "day", "week", "month", or its length in one spelling: 300s is "5m"."""
    if isinstance(value, str):
        if value in (HOUR, *CALENDAR_UNITS):
            return value
        if (size_ms := parse_duration(value)) is not None:
            return duration(size_ms)
    raise ValueError('expected a duration in quotes, such as "5m", or one of "hour", "day", "week", "month"')


def instant_ms(value: Any) -> int:
    """Milliseconds since 1970 of a TOML date-time with an offset."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("expected a date and time with an offset, without quotes, such as 2026-01-31T00:00:00Z")
    return round(value.timestamp() * 1000)


def field_paths(value: Any) -> tuple[str, ...]:
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


def address(value: Any) -> str:
    """Where to listen, "host:port" or "[IPv6]:port"; an empty text for nowhere."""
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if value != "" and (match is None or int(match[1]) > 65535):
        raise ValueError('expected an address such as "127.0.0.1:9464", or "" for none')
    return str(value)


Address = Annotated[str, BeforeValidator(address)]
Duration = Annotated[int, BeforeValidator(duration_ms)]
SpanName = Annotated[str, BeforeValidator(span_name)]
Instant = Annotated[int, BeforeValidator(instant_ms)]
FieldPaths = Annotated[tuple[str, ...], BeforeValidator(field_paths)]
Number = Annotated[Decimal, BeforeValidator(number)]
KeyEntry = StrictStr | StrictInt | list[StrictStr | StrictInt]
"""A declared key: the value of its one field, or a list of the values of its fields."""


def time_parser(field: FieldInfo) -> object:
    """What reads an integer setting that is a time: duration_ms or instant_ms; None where it is a plain number."""

    def parsers(annotation: object) -> Iterator[object]:
        for each in getattr(annotation, "__metadata__", ()):
            yield getattr(each, "func", None)
        for inner in get_args(annotation):
            yield from parsers(inner)

    every = [*(getattr(each, "func", None) for each in field.metadata), *parsers(field.annotation)]
    return next((parser for parser in every if parser in (duration_ms, instant_ms)), None)
