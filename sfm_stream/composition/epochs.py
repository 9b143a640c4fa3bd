"""The borders of an epoch: it may not begin before an earlier one has ended, and ends where a later one begins."""

from __future__ import annotations

from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.readable import instant
from sfm_stream.types import PartitionState
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import fixed_size_ms


def epoch_end_ms(config: Config, others: dict[int, PartitionState]) -> int:
    """The border at which this epoch ends: where the next epoch begins; FOREVER_MS without one.

    others: epoch to its committed state, for every other epoch of the pipeline. Raises StateError with the remedy if
    this epoch would begin before an earlier one has ended.
    """
    epoch, start = config.pipeline.epoch, config.window.start
    for number, state in sorted(others.items()):
        if number > epoch:
            return state.start_ms
        drawn, size_ms = state.drawn_through_ms, fixed_size_ms(state.base.name)
        # A day, week or month that an epoch covers in part only is not released; a zone that is not known here decides.
        if start is None or start < drawn or (size_ms is not None and start % size_ms):
            raise StateError(
                f"epoch {epoch} of pipeline {config.pipeline.id} follows epoch {number}: set window.start to "
                f"a border of its windows ({state.base.name}) not before {instant(drawn)}, up to which it "
                "has released"
            )
    return FOREVER_MS
