"""`sfm-stream estimate`: distinct counts from what is published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sfm_stream.answers.rows import Row, range_rows, rollup_rows, window_rows
from sfm_stream.cli.output import console, echo_json, row_json, rows_table
from sfm_stream.cli.question import FROM, KEY, TO, asked_keys, asked_span, require_found
from sfm_stream.composition.published import published
from sfm_stream.config.config import Config, load_config
from sfm_stream.readable import visible
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.keys import encode_key


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@KEY
@FROM
@TO
@click.option(
    "--by",
    type=click.Choice(["range", "window", "quarter", "hour", "day"]),
    help="One row for the whole span (default with --from and --to), or one a window, hour or day (default day).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document for each row.")
def estimate(
    config: Path, keys: tuple[str, ...], since: str | None, until: str | None, by: str | None, as_json: bool
) -> None:
    """Distinct counts with 95 % intervals from the output of CONFIG. Asking costs no privacy, however often.

    Times are those of rollup.zone, as they are shown. Exit code 9 where nothing that is published is an answer.
    """
    settings = load_config(config)
    grain = by or ("range" if since and until else "day")
    if grain == "range" and not (since and until):
        raise click.UsageError("--by range needs --from and --to")
    span = asked_span(settings, since, until, "window" if grain == "range" else grain)
    with published(settings) as reader:
        rows = _rows(reader, settings, grain, span, asked_keys(settings, keys))
        topic = SKETCHES if grain in ("range", "window") else ROLLUPS
        found = {encode_key(row.key) for row in rows}
        missing = require_found(reader, settings, topic, grain, keys, found, span)
    if as_json:
        for row in rows:
            echo_json(row_json(row))
    else:
        screen = console()
        screen.print(rows_table(rows, settings.calendar.zone, screen.width))
    for line in missing:
        click.echo(visible(line), err=True)


def _rows(reader: TopicReader, config: Config, grain: str, span: Window, wanted: set[bytes] | None) -> Sequence[Row]:
    pipeline, selection = config.pipeline.id, float(config.budget.epsilon_selection)
    if grain == "range":
        return list(range_rows(reader, pipeline, span, wanted, config.absence, selection))
    if grain == "window":
        return list(window_rows(reader, pipeline, span, wanted, selection))
    return list(rollup_rows(reader, pipeline, grain, span, wanted, config.absence, selection))
