"""What commands print for people: tables. It needs rich, so commands import it only where they print one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.key_notation import key_text
from sfm_stream.readable import duration, local

T = TypeVar("T")

WIDE = 160
"""Width in characters of a table that does not go to a terminal."""
TABLE_ROWS = 5000
"""A table is measured before it is printed, and held as long: some 10 KB a row."""
JOINED_KEYS = 3
"""Keys that are named in a row for several together."""
ROOMY, DETAILED = 110, 140
"""Least width in characters at which a row shows its epsilon and its end too; and where it comes from."""


def console() -> Console:
    """A console on standard output; outside a terminal it is plain and wide, so that nothing is cut."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(width=WIDE, highlight=False, no_color=True)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, or one for each TABLE_ROWS rows. heads: the titles of its columns. rows: their texts."""
    screen, tables = console(), _by_table(rows)
    for some in chain([next(tables, [])], tables):  # without a row there are heads all the same
        table = Table(*heads, box=None, pad_edge=False)
        for row in some:
            table.add_row(*map(Text, row))
        screen.print(table)


def print_answer(rows: Iterable[AnswerRow], zone: str) -> None:
    """Print the rows of an answer, times in this zone: one table, or one for each TABLE_ROWS of them."""
    screen = console()
    for some in _by_table(rows):
        screen.print(answer_table(some, zone, screen.width))


def _by_table(rows: Iterable[T]) -> Iterator[list[T]]:
    """The rows of one table after another."""
    left = iter(rows)
    while some := list(islice(left, TABLE_ROWS)):
        yield some


def answer_table(rows: Sequence[AnswerRow], zone: str, width: int) -> Table:
    """A table of an answer, times in this zone. In less than ROOMY columns a row has what fits into 80."""
    is_detailed = width >= DETAILED
    is_roomy, is_one_span = width >= ROOMY, len({row.window for row in rows}) == 1
    title = f"{local(rows[0].window.start_ms, zone)} to {local(rows[0].window.end_ms, zone)} ({zone})"
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title_style="bold")
    table.title = Text(title) if is_one_span and not is_roomy else None
    table.add_column("key", overflow="fold", min_width=8)
    columns = [("from", f"from ({zone})")] * (is_roomy or not is_one_span) + [("to", "to")] * is_roomy
    for _, head in columns:
        table.add_column(Text(head), overflow="fold", min_width=10)
    for name in ("estimate", "95 % interval", *(["epsilon"] if is_roomy else [])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("releases", justify="right", overflow="fold", min_width=14)
    for name in ("origin", "missing") if is_detailed else ():
        table.add_column(name, no_wrap=True)
    table.add_column("status", overflow="fold", min_width=11)
    for row in rows:
        estimate = row.estimate
        times = {"from": local(row.window.start_ms, zone), "to": local(row.window.end_ms, zone)}
        cells = [
            _shown_key(row),
            *(times[name] for name, _ in columns),
            _whole(estimate.value),
            f"{_whole(estimate.low)}..{_whole(estimate.high)}",
            *([f"{row.epsilon:.4g}"] if is_roomy else []),
            f"{_releases(row)} of {row.windows}",
            *([row.origin, duration(row.missing_ms) if row.missing_ms else "-"] if is_detailed else []),
            str(estimate.status) + ("" if row.complete else ", not complete" if is_roomy else ", open"),
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _shown_key(row: AnswerRow) -> str:
    """The key of a row; of one for several keys together some of them."""
    if not row.keys:
        return key_text(row.key)
    shown, more = row.keys[:JOINED_KEYS], len(row.keys) - JOINED_KEYS
    return " + ".join(map(key_text, shown)) + (f" + {more} more" if more > 0 else "")


def _releases(row: AnswerRow) -> str:
    """How many releases of which span a row is made of: 6 x day + 12 x 5m."""
    return " + ".join(f"{count} x {name}" for name, count in row.releases.items())


def _whole(value: float) -> str:
    """A number of items, rounded."""
    return "inf" if math.isinf(value) else f"{value:,.0f}"
