"""`sfm-stream generate`: page views of any size, for trying things out."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import BinaryIO

import click

from sfm_stream.cli.streams import fault
from sfm_stream.events.page_views import page_views


@click.command()
@click.option("--events", type=click.IntRange(1), default=100_000, show_default=True, help="How many records.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The same seed gives the same bytes."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file (gzip if it ends in .gz).")
def generate(events: int, seed: int, output: Path | None) -> None:
    """Write page views as JSON lines: Zipf pages, a daily rhythm, returning visitors, some late and bad records."""
    if output is None:
        _write(sys.stdout.buffer, events, seed)
        return
    try:
        with gzip.open(output, "wb") if output.suffix == ".gz" else output.open("wb") as sink:
            _write(sink, events, seed)  # type: ignore[arg-type]  # both are binary files
    except OSError as error:
        raise fault(str(output), error) from None


def _write(sink: BinaryIO, events: int, seed: int) -> None:
    for chunk in page_views(events, seed):
        sink.write(chunk)
    sink.flush()
