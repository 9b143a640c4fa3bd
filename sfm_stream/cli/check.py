"""`sfm-stream check`: would this configuration run, and what does extraction make of the data?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from sfm_stream.cli.check_report import sample_json, say, say_restart
from sfm_stream.cli.noise_warnings import noise_of, warn_of_noise
from sfm_stream.cli.output import echo_json
from sfm_stream.composition.file_sample import sample_file
from sfm_stream.composition.sample import Sample
from sfm_stream.config.config import STDIN, Config, load_config
from sfm_stream.planning.costs import RECORDS_PER_S
from sfm_stream.transport.files.format_guess import format_hint
from sfm_stream.types import Reason


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
    statement, noise = loaded.statement, noise_of(loaded)
    if as_json:
        shown = None if looked_at is None else sample_json(looked_at) | {"looks_like": hint or None}
        facts = {"valid": True, "missing_topics": missing, "sample": shown, "statement": statement}
        echo_json(facts | {"noise": noise, "restart": restart})
    else:
        say(loaded, statement, missing, looked_at)
        if restart is not None:
            say_restart(restart)
        warn_of_noise(noise)
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
    return [], None if loaded.input_path == STDIN else sample_file(loaded, records), None
