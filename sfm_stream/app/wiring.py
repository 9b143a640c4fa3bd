"""The composition root: the one place that puts configuration, transports, workers, clock and coins together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sfm_stream.app.ingest import IngestWorker, require_epoch_start
from sfm_stream.app.rollup import RollupWorker
from sfm_stream.clock import now_ms
from sfm_stream.config import Config
from sfm_stream.pipeline.state import decode_state
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.transport.embedded import EmbeddedTransport, TopicInput
from sfm_stream.transport.lines import LineInput
from sfm_stream.transport.sqlite import SqliteLog
from sfm_stream.types import SKETCHES, PartitionState


@dataclass(frozen=True, slots=True)
class Embedded:
    """Everything that `run` drives."""

    ingest: IngestWorker
    rollup: RollupWorker
    lines: LineInput
    log: SqliteLog


@contextmanager
def embedded(config: Config, coins: Coins = SYSTEM_COINS) -> Iterator[Embedded]:
    """Both workers of a pipeline over one file of input and one SQLite file of output, open for this block."""
    lines = LineInput(config.input_path, complete=config.files[0].complete, whole=config.whole)
    try:
        log = SqliteLog(str(config.output_path))
        try:
            yield _workers(config, lines, log, coins)
        finally:
            log.close()
    finally:
        lines.close()


def _workers(config: Config, lines: LineInput, log: SqliteLog, coins: Coins) -> Embedded:
    settings = config.settings
    latest = settings.event.latest or now_ms() + settings.window.max_future_skew
    end_ms = require_epoch_start(config, _other_epochs(config, log))
    ingest = IngestWorker(
        config,
        EmbeddedTransport(lines, log, _ingest_worker(config, settings.pipeline.epoch)),
        source=config.files[0].path,
        first_latest_ms=latest,
        epoch_end=lambda partition: end_ms,
        coins=coins,
        marks=lines,
    )
    rollup = RollupWorker(
        settings.pipeline.id,
        config.calendar,
        EmbeddedTransport(TopicInput(log, SKETCHES), log, f"rollup/{settings.pipeline.id}"),
        history=log,
        max_bytes=settings.limits.max_transaction_bytes,
    )
    return Embedded(ingest, rollup, lines, log)


def _ingest_worker(config: Config, epoch: int) -> str:
    return f"ingest/{config.settings.pipeline.id}/{epoch}"


def _other_epochs(config: Config, log: SqliteLog) -> dict[int, PartitionState]:
    """The committed state of every other epoch of the pipeline in this file."""
    prefix = _ingest_worker(config, 0)[:-1]
    found: dict[int, PartitionState] = {}
    for worker in log.workers():
        number = worker.removeprefix(prefix)
        if worker.startswith(prefix) and number.isdecimal() and int(number) != config.settings.pipeline.epoch:
            for commit in log.positions(worker).values():
                found[int(number)] = decode_state(commit)
    return found
