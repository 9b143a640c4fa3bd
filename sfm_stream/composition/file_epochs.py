"""The epochs in one output file: what each of them has committed, and whether any of it was lost since."""

from __future__ import annotations

from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.position import decode_state
from sfm_stream.readable import instant
from sfm_stream.transport.files.released_borders import records_of, released_by
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import PartitionState
from sfm_stream.units import SKETCHES


def ingest_worker(config: Config, epoch: int) -> str:
    """The name under which the positions of an epoch are stored in the output file."""
    return f"ingest/{config.pipeline.id}/{epoch}"


def committed_states(config: Config, log: SqliteLog) -> dict[int, PartitionState]:
    """The committed state of every epoch of the pipeline in this file."""
    states: dict[int, PartitionState] = {}
    for worker in log.workers():
        if (found := _epoch_and_span(config, worker)) is not None:
            for commit in log.positions(worker).values():
                states[found[0]] = decode_state(commit)
    return states


def _epoch_and_span(config: Config, worker: str) -> tuple[int, str] | None:
    """(epoch of this pipeline that a worker counts, the span of a note); None for one of another kind or pipeline."""
    prefix = ingest_worker(config, 0)[:-1]
    number, _, span = worker.removeprefix(prefix).partition("/")
    return (int(number), span) if worker.startswith(prefix) and number.isdecimal() else None


def require_nothing_lost(config: Config, log: SqliteLog, states: dict[int, PartitionState]) -> None:
    """Raise StateError where more was released into this output than it holds, unless a new epoch begins behind that.

    states: of every epoch in the file. Beside the file lie notes of what was released into it, of each span by itself.
    A border that the file holds and the notes do not is noted now: a process was killed between a commit and its note,
    or the file was made by a version without notes.
    """
    epoch, start = config.pipeline.epoch, config.window.start
    lost: dict[int, int] = {}
    records = log.end_offset(SKETCHES, 0)
    for worker, noted in log.released.borders.items():
        number, span = _epoch_and_span(config, worker) or (0, "")
        if number and span == SKETCHES and noted > records and number in states:
            end_ms = states[number].drawn_through_ms
        elif number and span != SKETCHES and noted > _held(states, number, span, noted - 1):
            end_ms = noted
        else:
            continue
        lost[number] = max(end_ms, lost.get(number, end_ms))
    if lost and (epoch <= max(lost) or start is None or start < max(lost.values())):
        number, border_ms = max(lost.items(), key=lambda item: item[1])
        held = f"not all of them, only {_shown(states[number])}" if number in states else "none of them"
        raise StateError(
            f"{log.path}: epoch {number} of pipeline {config.pipeline.id} has released windows up to "
            f"{instant(border_ms)} into this output, and it holds {held}: it was restored from an older copy, replaced "
            "or deleted. Counting on from here would release the same windows a second time. Raise pipeline.epoch "
            f"above {max(lost)} and set window.start to {instant(border_ms)} or a later window border"
        )
    for number, state in states.items():
        for span, end_ms in state.drawn.items():
            if end_ms > state.start_ms:
                log.released.note(released_by(ingest_worker(config, number), span), end_ms)
                if number == epoch:
                    log.released.note(records_of(ingest_worker(config, number)), records)


def _held(states: dict[int, PartitionState], epoch: int, span: str, unknown_ms: int) -> int:
    """Up to when the file holds the windows of a span of an epoch."""
    return states[epoch].drawn.get(span, unknown_ms) if epoch in states else unknown_ms


def _shown(state: PartitionState) -> str:
    return ", ".join(
        f"those {f'of {span} ' if span else ''}up to {instant(end_ms)}" for span, end_ms in state.drawn.items()
    )
