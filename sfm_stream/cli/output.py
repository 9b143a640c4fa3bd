"""What commands share: how answers are shown to people and to programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfm_stream.answers.key_notation import finite, key_json, key_text
from sfm_stream.answers.rows import Row
from sfm_stream.readable import instant, local

WIDE = 160
"""Columns of a table that does not go to a terminal."""
ROOMY = 110
"""From so many columns on a row shows its epsilon and its end too."""


def console() -> Console:
    """A console on standard output; outside a terminal it is plain and wide, so that nothing is cut."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(width=WIDE, highlight=False, no_color=True)


def echo_json(value: object, err: bool = False) -> None:
    """One JSON document on one line, on standard output or standard error."""
    click.echo(json.dumps(value, allow_nan=False), err=err)


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


def rows_table(rows: Sequence[Row], zone: str, width: int) -> Table:
    """A table for people, times in the zone of the roll-up. In less than ROOMY columns a row has what fits into 80."""
    is_roomy, is_one_span = width >= ROOMY, len({row.window for row in rows}) == 1
    title = f"{local(rows[0].window.start_ms, zone)} to {local(rows[0].window.end_ms, zone)} ({zone})"
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title_style="bold")
    table.title = Text(title) if is_one_span and not is_roomy else None
    table.add_column("key", overflow="fold", min_width=8)
    columns = [("from", f"from ({zone})")] * (is_roomy or not is_one_span) + [("to", "to")] * is_roomy
    for _, head in columns:
        table.add_column(Text(head), overflow="fold", min_width=10)
    for name in ("estimate", "95 % interval", *(["epsilon"] if is_roomy else []), "windows"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", overflow="fold", min_width=11)
    for row in rows:
        found = row.estimate
        times = {"from": local(row.window.start_ms, zone), "to": local(row.window.end_ms, zone)}
        cells = [
            key_text(row.key),
            *(times[name] for name, _ in columns),
            amount(found.value),
            f"{amount(found.low)}..{amount(found.high)}",
            *([f"{row.epsilon:.4g}"] if is_roomy else []),
            f"{row.released} of {row.windows}",
            str(found.status) + ("" if row.complete else ", not complete" if is_roomy else ", open"),
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def amount(value: float) -> str:
    """A number of items, whole."""
    return "inf" if math.isinf(value) else f"{value:,.0f}"
