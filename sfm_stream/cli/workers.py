"""`sfm-stream ingest`, `publish`, `rollup` and `repartition`: the long-lived workers of a pipeline on a cluster.

The client of a cluster and the metrics are imported where they are used: they take longer to load than most commands
run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfm_stream import kernels
from sfm_stream.cli.memory import settle_memory
from sfm_stream.cli.noise_warnings import noise_of
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import Config, load_config
from sfm_stream.errors import SfmStreamError
from sfm_stream.observe.logs import configure
from sfm_stream.workers.loop import serve

if TYPE_CHECKING:
    from sfm_stream.composition.kafka_service import Service
    from sfm_stream.observe.monitor import Monitor

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

    def opened(loaded: Config, monitor: Monitor) -> list[Service]:
        for line in noise_of(loaded):
            _log.warning(line)
        return [open_ingest(loaded, first_start), *([] if no_publish else [open_outbox(loaded)])]

    _serve(config, operator, opened)


@click.command()
@_CONFIG
@_OPERATOR
def publish(config: Path, operator: str | None) -> None:
    """Copy committed releases of CONFIG's pipeline from its outbox to its public sketch topic."""
    from sfm_stream.composition.kafka import open_outbox

    _serve(config, operator, lambda loaded, monitor: [open_outbox(loaded)])


@click.command()
@_CONFIG
@_OPERATOR
def rollup(config: Path, operator: str | None) -> None:
    """Merge the released windows of CONFIG's pipeline into hours and days, and publish those."""
    from sfm_stream.composition.kafka import open_rollup

    def opened(loaded: Config, monitor: Monitor) -> list[Service]:
        return [open_rollup(loaded, None if monitor.public is None else monitor.public.published)]

    _serve(config, operator, opened, public=True)


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

    _serve(config, operator, lambda loaded, monitor: [open_repartition(loaded, source, partitions)])


def _serve(
    config: Path,
    operator: str | None,
    opened: Callable[[Config, Monitor], Sequence[Service]],
    public: bool = False,
) -> None:
    """Open the services of a configuration and serve them until a signal comes, under a monitor.

    public: whether published figures have a listener too.
    """
    from sfm_stream.observe.monitor import monitoring

    loaded = load_config(config)
    configure(loaded.logs.format, loaded.logs.level)
    with Stop().listening() as stopping, monitoring(loaded, operator, public=public) as monitor:
        services = opened(loaded, monitor)
        kernel = kernels.in_use()
        reason = "" if loaded.worker.kernel == kernel else kernels.why_not()
        _log.info("computes with the %s kernel%s", kernel, reason and f", as {reason}", extra={"kernel": kernel})
        monitor.watch(services)
        settle_memory()
        try:
            serve(services, stopping, monitor.beat)
        except SfmStreamError:
            raise
        except Exception:
            _log.exception("a worker failed")  # shown by type and place: the message may hold a key
            raise click.exceptions.Exit(1) from None
