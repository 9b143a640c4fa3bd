"""What `check` says: of a configuration, of a sample of its input, and of a restart; as text or JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from sfm_stream.composition.sample import Sample, SampleRow
from sfm_stream.config.config import Config
from sfm_stream.planning.costs import RECORDS_PER_S, window_bytes
from sfm_stream.readable import duration, instant
from sfm_stream.types import Reason
from sfm_stream.units import HOUR_MS

SHOWN = 10
"""Rows of a sample that are shown."""


def say(loaded: Config, statement: str, missing: list[str], looked_at: Sample | None) -> None:
    """Print what a valid configuration promises, which topics are missing, and what its input looks like."""
    fingerprint = loaded.own_fingerprint
    click.echo(f"configuration is valid{f', fingerprint {fingerprint}' if fingerprint else ''}\n")
    click.echo(statement + "\n")
    if loaded.whole:
        click.echo("the input is counted whole, in any order, and released at its end (input.order)\n")
    if len(loaded.budget.spans) > 1:
        click.echo(_of_spans(loaded) + "\n")
    if missing:
        click.echo(f"topics that `sfm-stream ingest --first-start` has yet to make: {', '.join(missing)}\n")
    if looked_at is None:
        click.echo("the input is standard input; it is left alone")
        return
    from sfm_stream.cli.screen import print_table  # rich, which programs that read JSON need not wait for

    heads = ("partition", "offset", "event time (UTC)", "key", "item cell", "outcome")
    print_table(heads, map(_cells, looked_at.rows[:SHOWN]))
    total = sum(looked_at.reasons.values())
    click.echo(f"\n{total:,} records looked at: " + ", ".join(_counts(looked_at.reasons)))
    if looked_at.late:
        click.echo(
            f"{looked_at.late:,} of them come too late for their window and would be dropped: raise window.grace"
            + ("" if loaded.on_cluster else ", or sort the input, or count it whole (input.complete, input.order)")
        )


def _of_spans(loaded: Config) -> str:
    """What several released spans cost in memory, and of a file in order of time what a restart reads again."""
    spans = loaded.budget.spans
    few, many = (f"{len(spans) * window_bytes(loaded.cells, items):,.0f}" for items in (10, 1000))
    memory = f"an open key of 10 items takes {few} bytes in one window of each span, one of 1,000 items {many}"
    if loaded.on_cluster or loaded.whole:
        return memory
    longest = f"window of {spans[-1].name}" if spans[-1].size_ms else spans[-1].name
    return f"{memory}; a restart reads again from the first record of the oldest open window, up to a {longest} before"


def _cells(row: SampleRow) -> tuple[str, ...]:
    event = "" if row.event_ms is None else instant(row.event_ms)
    return str(row.partition), str(row.offset), event, row.key or "", row.cell or "", row.reason.name.lower()


def _counts(reasons: Counter[Reason]) -> list[str]:
    return [f"{reason.name.lower()} {count:,}" for reason, count in sorted(reasons.items())]


def say_restart(restart: dict[str, Any]) -> None:
    """Print what a restart reads again on a cluster."""
    click.echo(
        f"a restart reads the open windows again, at most {duration(restart['longest_ms'])}: {restart['records']:,} "
        f"records came to one partition in that time, {restart['cpu_s']:g} s of a processor at {RECORDS_PER_S:,} a "
        f"second; keep the input for more than {-(-restart['kept_ms'] // HOUR_MS)}h"
    )


def sample_json(looked_at: Sample) -> dict[str, object]:
    """A sample as a JSON object."""
    return {
        "records": [
            {
                "partition": row.partition,
                "offset": row.offset,
                "event_time": None if row.event_ms is None else instant(row.event_ms),
                "key": row.key,
                "item_cell": row.cell,
                "outcome": row.reason.name.lower(),
            }
            for row in looked_at.rows[:SHOWN]
        ],
        "late": looked_at.late,
        "outcomes": {reason.name.lower(): count for reason, count in sorted(looked_at.reasons.items())},
    }
