"""The composition root on files: the ingest worker and the roll-up worker of `run`, with their transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sfm_stream import kernels
from sfm_stream.clock import now_ms
from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.composition.file_epochs import committed_states, ingest_worker, require_nothing_lost
from sfm_stream.config.config import Config
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_input import TopicInput
from sfm_stream.transport.files.transport import FileTransport
from sfm_stream.units import SKETCHES
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.rollup import RollupWorker


@dataclass(frozen=True, slots=True)
class FileWorkers:
    """Everything that `run` drives."""

    ingest: IngestWorker
    rollup: RollupWorker
    lines: LineInput
    log: SqliteLog


@contextmanager
def file_workers(config: Config, coins: Coins = SYSTEM_COINS) -> Iterator[FileWorkers]:
    """Both workers of a pipeline over one input file and one SQLite output file, open for this block.

    Raises StateError where going on from what the output file holds would release something twice.
    """
    kernels.choose(config.worker.kernel)
    source = config.files[0]
    with (
        closing(LineInput(config.input_path, complete=source.complete, whole=config.whole)) as lines,
        closing(SqliteLog(str(config.output_path))) as log,
    ):
        latest = config.event.latest or now_ms() + config.window.max_future_skew
        states = committed_states(config, log)
        require_nothing_lost(config, log, states)
        end_ms = epoch_end_ms(config, {n: state for n, state in states.items() if n != config.pipeline.epoch})
        ingest = IngestWorker(
            config,
            FileTransport(lines, log, ingest_worker(config, config.pipeline.epoch)),
            source=source.path,
            first_latest_ms=latest,
            epoch_end=lambda partition: end_ms,
            coins=coins,
            marks=lines,
        )
        rollup = RollupWorker(
            config.pipeline.id,
            config.calendar,
            FileTransport(TopicInput(log, SKETCHES), log, f"rollup/{config.pipeline.id}"),
            history=log,
            max_bytes=config.limits.max_transaction_bytes,
        )
        yield FileWorkers(ingest, rollup, lines, log)
