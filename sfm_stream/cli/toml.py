"""Settings as TOML that reads back as the same settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfm_stream.config.tables import Settings, SettingsTable
from sfm_stream.config.values import instant_ms, time_parser
from sfm_stream.readable import duration


def toml_lines(settings: Settings) -> Iterator[str]:
    """Every table that is there, with its defaults filled in; a setting without a value is left out."""
    for name in type(settings).model_fields:
        content = getattr(settings, name)
        tables = content if isinstance(content, tuple) else () if content is None else (content,)
        for table in tables:
            yield f"[[{name}]]" if isinstance(content, tuple) else f"[{name}]"
            yield from (f"{setting} = {value}" for setting, value in _values(table).items())
            yield ""


def _values(table: SettingsTable) -> dict[str, str]:
    fields = type(table).model_fields
    return {
        name: _text(value, time_parser(fields[name])) for name in fields if (value := getattr(table, name)) is not None
    }


def _text(value: Any, parser: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if parser is instant_ms:
            return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return str(value) if parser is None else _quoted(duration(value))
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, str | Path):
        return _quoted(str(value))
    if isinstance(value, SettingsTable):
        return "{" + ", ".join(f"{name} = {text}" for name, text in _values(value).items()) + "}"
    return "[" + ", ".join(_text(each, None) for each in value) + "]"


def _quoted(text: str) -> str:
    """A basic string. JSON's differs in DEL, which TOML wants escaped, and beyond U+FFFF."""
    return "".join(
        f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
        for char in text
    ).join('""')
