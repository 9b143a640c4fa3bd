"""The composition root: the one place that puts configuration, transports, workers, clock and coins together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sfm_stream.clock import now_ms
from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.position import decode_state, drawn_through_ms
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.readable import instant
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.transport.files.topic_input import TopicInput
from sfm_stream.transport.files.transport import FileTransport
from sfm_stream.types import PartitionState
from sfm_stream.units import SKETCHES
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.rollup import RollupWorker


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
    latest = config.event.latest or now_ms() + config.window.max_future_skew
    states = _epochs(config, log)
    require_nothing_lost(config, log, states)
    end_ms = epoch_end_ms(config, {n: state for n, state in states.items() if n != config.pipeline.epoch})
    ingest = IngestWorker(
        config,
        FileTransport(lines, log, _ingest_worker(config, config.pipeline.epoch)),
        source=config.files[0].path,
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
    return Embedded(ingest, rollup, lines, log)


def _ingest_worker(config: Config, epoch: int) -> str:
    return f"ingest/{config.pipeline.id}/{epoch}"


def _epochs(config: Config, log: SqliteLog) -> dict[int, PartitionState]:
    """The committed state of every epoch of the pipeline in this file."""
    found: dict[int, PartitionState] = {}
    for worker in log.workers():
        if (number := _epoch_of(config, worker)) is not None:
            for commit in log.positions(worker).values():
                found[number] = decode_state(commit)
    return found


def _epoch_of(config: Config, worker: str) -> int | None:
    """The epoch of this pipeline that a worker counts; None for a worker of another kind or pipeline."""
    prefix = _ingest_worker(config, 0)[:-1]
    number = worker.removeprefix(prefix)
    return int(number) if worker.startswith(prefix) and number.isdecimal() else None


def require_nothing_lost(config: Config, log: SqliteLog, states: dict[int, PartitionState]) -> None:
    """Raise StateError where more was released into this output than it holds, unless a new epoch begins behind that.

    states: of every epoch in the file. What the file knows and the notes beside it do not is noted: a process was
    killed between a commit and its note, or the output is older than the notes are.
    """
    epoch, start = config.pipeline.epoch, config.window.start
    drawn = {
        number: drawn_through_ms(state.closed_through_ms, state.window_ms, state.cursor)
        for number, state in states.items()
    }
    lost: dict[int, int] = {}
    for worker, end_ms in log.released.borders.items():
        number = _epoch_of(config, worker)
        if number is not None and end_ms > drawn.get(number, end_ms - 1):
            lost[number] = end_ms
    if lost and (epoch <= max(lost) or start is None or start < max(lost.values())):
        number, border_ms = max(lost.items(), key=lambda item: item[1])
        held = f"only those up to {instant(drawn[number])}" if number in drawn else "none of them"
        raise StateError(
            f"{log.path}: epoch {number} of pipeline {config.pipeline.id} has released windows up to "
            f"{instant(border_ms)} into this output, and it holds {held}: it was restored from an older copy, replaced "
            "or deleted. Counting on from here would release the same windows a second time. Raise pipeline.epoch "
            f"above {max(lost)} and set window.start to {instant(border_ms)} or a later window border"
        )
    for number, end_ms in drawn.items():
        if end_ms > states[number].start_ms:
            log.released.note(_ingest_worker(config, number), end_ms)
