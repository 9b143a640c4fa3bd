"""`sfm-stream estimate`: distinct counts from what is published."""

from __future__ import annotations

from pathlib import Path

import click

from sfm_stream.app.published import published
from sfm_stream.cli.output import console, echo_json, parse_instant, row_json, rows_table
from sfm_stream.config import Config, load_config
from sfm_stream.query import range_rows, rollup_rows, window_rows
from sfm_stream.sketch.keys import encode_key
from sfm_stream.types import KeyPart, Window


@click.command()
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--key", "keys", multiple=True, help="Only this key; fields of a longer key are joined by commas.")
@click.option("--from", "since", help="Start of the span: a time, UTC where it has no offset.")
@click.option("--to", "until", help="End of the span, exclusive.")
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
    span = Window(parse_instant(since) if since else 0, parse_instant(until) if until else 1 << 62)
    if span.start_ms >= span.end_ms:
        raise click.UsageError("--from is not before --to")
    grain = by or ("range" if since and until else "day")
    if grain == "range" and not (since and until):
        raise click.UsageError("--by range needs --from and --to")
    wanted = {encoded for key in keys for encoded in _encodings(settings, key)} or None
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


def _encodings(config: Config, text: str) -> list[bytes]:
    """Canonical bytes that a key on the command line may mean: a number is looked for as text and as an integer."""
    fields = len(config.settings.event.key)
    parts = text.split(",") if fields > 1 else [text] if fields else []
    if len(parts) != fields:
        raise click.BadParameter(f"a key has {fields} fields, joined by commas", param_hint="--key")
    choices: list[tuple[KeyPart, ...]] = [()]
    for part in parts:
        readings: list[KeyPart] = [part]
        if part.lstrip("-").isdecimal() and str(int(part)) == part:
            readings.append(int(part))
        choices = [(*head, reading) for head in choices for reading in readings]
    return [encode_key(choice) for choice in choices]
