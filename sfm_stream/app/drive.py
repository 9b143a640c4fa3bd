"""Perform steps: the only place where the core's values meet a transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sfm_stream.errors import StateError
from sfm_stream.pipeline.publish import MARKER_KEY
from sfm_stream.transport.base import Transport
from sfm_stream.types import Step

TRIES = 3


class Pipeline(Protocol):
    """What WindowCounter and Rollup have in common."""

    def step(self) -> Step | None: ...
    def committed(self, step: Step) -> None: ...


def perform(transport: Transport, pipeline: Pipeline, step: Step) -> None:
    """Commit one step and tell the pipeline. The same bytes are sent again where nothing was begun."""
    for _ in range(TRIES):
        if transport.commit(step):
            pipeline.committed(step)
            return
    raise StateError(f"a transaction could not be begun in {TRIES} tries; nothing of it is stored, start again")


def drain(
    transport: Transport, pipeline: Pipeline, stopping: Callable[[], bool], *, releases_only: bool = False
) -> int:
    """Perform every step that is due, or until it is time to stop; returns how many records were published.

    releases_only: leave close markers out of the number.
    """
    published = 0
    while not stopping() and (step := pipeline.step()) is not None:
        perform(transport, pipeline, step)
        published += sum(1 for record in step.publish if not (releases_only and record.key == MARKER_KEY))
    return published
