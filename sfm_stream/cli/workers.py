"""`sfm-stream ingest`, `publish` and `rollup`: the long-lived workers of a pipeline on a cluster.

What needs the client of a cluster is imported where it is used: the client takes longer to load than most commands run.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfm_stream.composition.run_to_end import Stop
from sfm_stream.config.config import Config, load_config
from sfm_stream.errors import SfmStreamError
from sfm_stream.observe.logs import configure
from sfm_stream.observe.monitor import Monitor, monitoring
from sfm_stream.workers.loop import serve

if TYPE_CHECKING:
    from sfm_stream.composition.kafka import Service

_log = logging.getLogger(__name__)
_CONFIG = click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
_OPERATOR = click.option(
    "--operator", metavar="ADDRESS", help="Where its metrics and health are, in place of metrics.operator; '': nowhere."
)


@click.command()
@_CONFIG
@click.option("--first-start", is_flag=True, help="Create topics and positions where this epoch never ran.")
@click.option("--no-publish", is_flag=True, help="Leave the copy to the sketch topic to `sfm-stream publish`.")
@_OPERATOR
def ingest(config: Path, first_start: bool, no_publish: bool, operator: str | None) -> None:
    """Count the topic of CONFIG and release each window once. Start as many as there is work for."""
    from sfm_stream.composition.kafka import open_ingest, open_outbox

    loaded = _load(config)
    with Stop().listening() as stopping, monitoring(loaded, operator) as monitor:
        services = [open_ingest(loaded, first_start)]
        if not no_publish:
            services.append(open_outbox(loaded))
        _serve(services, stopping, monitor)


@click.command()
@_CONFIG
@_OPERATOR
def publish(config: Path, operator: str | None) -> None:
    """Copy committed releases of CONFIG's pipeline from its outbox to its public sketch topic."""
    from sfm_stream.composition.kafka import open_outbox

    loaded = _load(config)
    with Stop().listening() as stopping, monitoring(loaded, operator) as monitor:
        _serve([open_outbox(loaded)], stopping, monitor)


@click.command()
@_CONFIG
@_OPERATOR
def rollup(config: Path, operator: str | None) -> None:
    """Merge the released windows of CONFIG's pipeline into hours and days, and publish those."""
    from sfm_stream.composition.kafka import open_rollup

    loaded = _load(config)
    with Stop().listening() as stopping, monitoring(loaded, operator, public=True) as monitor:
        observer = monitor.public.published if monitor.public is not None else None
        _serve([open_rollup(loaded, observer)], stopping, monitor)


@click.command()
@_CONFIG
@click.option("--from", "source", required=True, help="The topic to read.")
@click.option("--partitions", type=click.IntRange(1), required=True, help="Of the topic of CONFIG, if it is made now.")
@_OPERATOR
def repartition(config: Path, source: str, partitions: int, operator: str | None) -> None:
    """Copy a topic that is not keyed by the counting key into the topic of CONFIG, which then is.

    Runs until it is stopped; several may run. Every record keeps its bytes and its time stamp.
    """
    from sfm_stream.composition.kafka import open_repartition

    loaded = _load(config)
    with Stop().listening() as stopping, monitoring(loaded, operator) as monitor:
        _serve([open_repartition(loaded, source, partitions)], stopping, monitor)


def _load(path: Path) -> Config:
    loaded = load_config(path)
    configure(loaded.logs.format, loaded.logs.level)
    return loaded


def _serve(services: Sequence[Service], stopping: Stop, monitor: Monitor) -> None:
    monitor.watch(services)
    # What is there now stays: not looking through it again and again is a quarter of the speed.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        serve(services, stopping, monitor.beat)
    except SfmStreamError:
        raise
    except Exception:
        _log.exception("a worker failed")  # shown by type and place: the message may hold a key
        raise click.exceptions.Exit(1) from None
