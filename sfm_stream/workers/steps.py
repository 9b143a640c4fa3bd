"""Performs steps: the only place where the values of the core meet a transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sfm_stream.errors import BrokerError
from sfm_stream.transport.contract import Transport
from sfm_stream.types import Step
from sfm_stream.wire.keys import MARKER_KEY

TRIES = 50


class Pipeline(Protocol):
    """What WindowCounter, OutboxCopy and Rollup have in common.

    failed: how often in a row its step was not committed. checkpoint: a step that commits the position alone.
    """

    failed: int

    def step(self) -> Step | None: ...
    def committed(self, step: Step) -> None: ...
    def checkpoint(self) -> Step | None: ...


def perform(transport: Transport, pipeline: Pipeline, step: Step) -> bool:
    """Commit one step and tell the pipeline. False: it is not committed, and stays due.

    The next turn tries it again with the same bytes; polling comes in between, and may say that the partition is lost.
    Raises BrokerError after TRIES failures in a row: by then waiting does not help.
    """
    if transport.commit(step):
        pipeline.failed = 0
        pipeline.committed(step)
        return True
    pipeline.failed += 1
    if pipeline.failed >= TRIES:
        raise BrokerError(f"a transaction was not committed in {TRIES} tries; nothing of it is stored, start again")
    return False


def perform_due(
    transport: Transport,
    pipeline: Pipeline,
    stopping: Callable[[], bool],
    *,
    releases_only: bool = False,
    done: Callable[[Step], None] = lambda step: None,
) -> int:
    """The number of records published. Performs every step that is due, until `stopping` or one is not committed.

    releases_only: close markers are not in the number. done: called with each step once it is committed.
    """
    published = 0
    while not stopping() and (step := pipeline.step()) is not None and perform(transport, pipeline, step):
        published += sum(1 for record in step.publish if not (releases_only and record.key == MARKER_KEY))
        done(step)
    return published


def perform_checkpoint(transport: Transport, pipeline: Pipeline) -> None:
    """Commit the position of a pipeline, where it moved."""
    if (step := pipeline.checkpoint()) is not None:
        perform(transport, pipeline, step)
