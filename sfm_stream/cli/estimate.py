"""`sfm-stream estimate`: distinct counts from what is published."""

from __future__ import annotations

from pathlib import Path

import click

from sfm_stream.app.published import published
from sfm_stream.cli.output import console, echo_json, row_json, rows_table
from sfm_stream.cli.question import FROM, KEY, TO, asked_keys, asked_span
from sfm_stream.config import load_config
from sfm_stream.query import range_rows, rollup_rows, window_rows


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
    """Distinct counts with 95 % intervals from the output of CONFIG. Asking costs no privacy, however often."""
    settings = load_config(config)
    span = asked_span(since, until)
    grain = by or ("range" if since and until else "day")
    if grain == "range" and not (since and until):
        raise click.UsageError("--by range needs --from and --to")
    wanted = asked_keys(settings, keys)
    pipeline = settings.settings.pipeline.id
    with published(settings) as reader:
        if grain == "range":
            rows = list(range_rows(reader, pipeline, span, wanted))
        elif grain == "window":
            rows = list(window_rows(reader, pipeline, span, wanted))
        else:
            rows = list(rollup_rows(reader, pipeline, grain, span, wanted))
    if as_json:
        for row in rows:
            echo_json(row_json(row))
    elif rows:
        console().print(rows_table(rows, settings.settings.rollup.zone))
    else:
        click.echo("nothing is published for this question", err=True)
