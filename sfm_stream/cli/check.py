"""`sfm-stream check`: would this configuration run, and what does extraction make of the data?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import click

from sfm_stream.cli.config import describe
from sfm_stream.cli.noise_warnings import noise_of, warn_of_noise
from sfm_stream.cli.output import echo_json
from sfm_stream.composition.sample import Sample, SampleRow, file_batches, sample
from sfm_stream.config.config import STDIN, Config, load_config
from sfm_stream.planning.costs import RECORDS_PER_S
from sfm_stream.readable import duration, instant
from sfm_stream.transport.files.format_guess import format_hint
from sfm_stream.types import Reason
from sfm_stream.units import HOUR_MS

SHOWN = 10


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--records", type=click.IntRange(1), default=1000, show_default=True, help="Records to look at.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def check(config: Path, records: int, as_json: bool) -> None:
    """Validate CONFIG, read some of its input without counting it, and show what would be counted.

    Of a file these are the first records; of a topic the last ones, read without joining any group, after the topics
    of the pipeline were looked at. Keys and items are shown as short digests under a key made for this one call:
    equal ones look equal, and nothing can be looked up. Exit code 4 where no record of the sample could be counted.
    """
    loaded = load_config(config)
    missing, looked_at, restart = _look(loaded, records)
    hint = "" if loaded.on_cluster else format_hint(loaded.input_path)
    if as_json:
        shown = None if looked_at is None else _as_json(looked_at) | {"looks_like": hint or None}
        facts = {"valid": True, "missing_topics": missing, "sample": shown, "statement": describe(loaded)}
        echo_json(facts | {"noise": noise_of(loaded), "restart": restart})
    else:
        _say(loaded, missing, looked_at)
        if restart is not None:
            click.echo(_of_restart(restart))
        warn_of_noise(loaded)
        if hint:
            click.echo(hint)
    if looked_at is not None and looked_at.reasons and not looked_at.reasons[Reason.OK]:
        raise click.exceptions.Exit(4)


def _look(loaded: Config, records: int) -> tuple[list[str], Sample | None, dict[str, Any] | None]:
    """(names of topics that do not exist yet, a sample of the input, what a restart reads again on a cluster)."""
    if loaded.on_cluster:
        from sfm_stream.composition.kafka_cluster import cluster_of  # the client takes its time to load
        from sfm_stream.composition.kafka_read_again import read_again
        from sfm_stream.composition.kafka_sample import sample_topic
        from sfm_stream.composition.kafka_topics import missing_topics

        missing = missing_topics(loaded, cluster_of(loaded))
        again = read_again(loaded)
        restart = dataclasses.asdict(again) | {"cpu_s": round(again.records / RECORDS_PER_S, 1)}
        return missing, sample_topic(loaded, records), restart
    return [], None if loaded.input_path == STDIN else sample(loaded, file_batches(loaded), records), None


def _of_restart(restart: dict[str, Any]) -> str:
    return (
        f"a restart reads the open windows again, at most {duration(restart['longest_ms'])}: {restart['records']:,} "
        f"records came to one partition in that time, {restart['cpu_s']:g} s of a processor at {RECORDS_PER_S:,} a "
        f"second; keep the input for more than {-(-restart['kept_ms'] // HOUR_MS)}h"
    )


def _say(loaded: Config, missing: list[str], looked_at: Sample | None) -> None:
    fingerprint = loaded.own_fingerprint
    click.echo(f"configuration is valid{f', fingerprint {fingerprint}' if fingerprint else ''}\n")
    click.echo(describe(loaded) + "\n")
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
    from sfm_stream.planning.costs import window_bytes  # formulas of the planner, which one span does not need

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


def _as_json(looked_at: Sample) -> dict[str, object]:
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
