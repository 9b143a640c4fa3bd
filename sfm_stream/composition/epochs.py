"""Where an epoch of a pipeline may begin, and where it must end, beside the other epochs."""

from __future__ import annotations

from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.readable import duration, instant
from sfm_stream.types import PartitionState
from sfm_stream.units import FOREVER_MS


def epoch_end_ms(config: Config, others: dict[int, PartitionState]) -> int:
    """Where this epoch must end: FOREVER_MS, unless a later one began.

    others: epoch to the committed state, of every other epoch of the pipeline. Raises StateError with the remedy where
    this epoch would begin before an earlier one has ended.
    """
    epoch, start = config.pipeline.epoch, config.window.start
    for number, state in sorted(others.items()):
        if number > epoch:
            return state.start_ms
        drawn, window_ms = state.drawn_through_ms, state.span.size_ms
        if start is None or start < drawn or start % window_ms:
            raise StateError(
                f"epoch {epoch} of pipeline {config.pipeline.id} follows epoch {number}: set window.start to "
                f"a border of its windows ({duration(window_ms)}) not before {instant(drawn)}, up to which it "
                "has released"
            )
    return FOREVER_MS
