"""`sfm-stream first-start`: the first start of an epoch by itself, for a one-time job."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("first-start")
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
def first_start(config: Path) -> None:
    """Create the topics and positions of CONFIG's epoch where it never ran, and count nothing.

    What `sfm-stream ingest --first-start` does before it counts. Does nothing where the epoch has begun before.
    """
    from sfm_stream.composition.kafka import begin_epoch
    from sfm_stream.config.config import load_config
    from sfm_stream.observe.logs import configure

    loaded = load_config(config)
    configure(loaded.logs.format, loaded.logs.level)
    begin_epoch(loaded)
