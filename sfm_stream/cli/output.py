"""What commands share: how answers are shown to people and to programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import click
from rich.console import Console
from rich.table import Table

from sfm_stream.app.notation import finite, instant, key_json
from sfm_stream.query import Row
from sfm_stream.types import KeyPart

WIDE = 160
"""Columns of a table that does not go to a terminal."""


def console() -> Console:
    """A console on standard output; outside a terminal it is plain and wide, so that nothing is cut."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(width=WIDE, highlight=False, no_color=True)


def echo_json(value: object, err: bool = False) -> None:
    """One JSON document on one line, on standard output or standard error."""
    click.echo(json.dumps(value, allow_nan=False), err=err)


def key_text(key: Sequence[KeyPart]) -> str:
    """A published key for people: fields joined by " / ", all of them "(all)" where there is none."""
    return " / ".join(part.hex() if isinstance(part, bytes) else str(part) for part in key) or "(all)"


def row_json(row: Row) -> dict[str, object]:
    """A row for programs; numbers are not rounded."""
    found = row.estimate
    return {
        "key": key_json(row.key),
        "grain": row.grain,
        "from": instant(row.window.start_ms),
        "to": instant(row.window.end_ms),
        "estimate": found.value,
        "standard_error": finite(found.standard_error),
        "low": found.low,
        "high": finite(found.high),
        "confidence": found.confidence,
        "status": str(found.status),
        "epsilon": row.epsilon,
        "released": row.released,
        "windows": row.windows,
        "complete": row.complete,
        "epoch": row.epoch,
    }


def rows_table(rows: Iterable[Row], zone: str) -> Table:
    """A table for people, times in the zone of the roll-up."""
    table = Table("key", f"from ({zone})", "to", box=None, pad_edge=False, header_style="bold")
    for name in ("estimate", "95 % interval", "epsilon", "windows"):
        table.add_column(name, justify="right")
    table.add_column("status")
    for row in rows:
        found = row.estimate
        table.add_row(
            key_text(row.key),
            local(row.window.start_ms, zone),
            local(row.window.end_ms, zone),
            amount(found.value),
            f"{amount(found.low)} .. {amount(found.high)}",
            f"{row.epsilon:.4g}",
            f"{row.released} of {row.windows}",
            str(found.status) + ("" if row.complete else ", not complete"),
        )
    return table


def local(time_ms: int, zone: str) -> str:
    """A time of day for tables."""
    return datetime.fromtimestamp(time_ms / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def amount(value: float) -> str:
    """A number of items, whole."""
    return "inf" if math.isinf(value) else f"{value:,.0f}"
