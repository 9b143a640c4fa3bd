"""Runs one configuration with coins that never flip, and dies by SIGKILL where it is told to.

    python kill_worker.py CONFIG POINT COUNT, or --fork (support/forks.py)

POINT: never; draw (after the COUNT-th draw of coins); before-commit, after-commit (around the COUNT-th transaction,
of ingest and roll-up together); before-note (of the COUNT-th border, its transaction committed); bytes (once the
input has been read to position COUNT).
"""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

from support.embedded_runs import NoFlips, run_here
from support.forks import arguments_of_this_fork

from sfm_stream.composition import files as wiring
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.transport.files.released_borders import ReleasedBorders
from sfm_stream.transport.files.sqlite_log import SqliteLog


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingCoins(NoFlips):
    def __init__(self, point: str, count: int) -> None:
        self.left = count if point == "draw" else -1

    def digits(self, count):
        drawn = super().digits(count)
        self.left -= 1
        if self.left == 0:
            die()
        return drawn


def plant(point: str, count: int) -> None:
    """Put the death into the seams of the real classes."""
    append, read, note, left = SqliteLog.append, LineInput.read, ReleasedBorders.note_all, [count]

    def dying_append(self, worker, step):
        left[0] -= 1
        if left[0] == 0 and point == "before-commit":
            die()
        done = append(self, worker, step)
        if left[0] == 0 and point == "after-commit":
            die()
        return done

    def dying_note(self, ends):
        left[0] -= any(end > self.borders.get(worker, 0) for worker, end in ends.items())
        if left[0] == 0:
            die()
        note(self, ends)

    def dying_read(self, partition):
        batch = read(self, partition)
        if (getattr(batch, "next_offset", None) or 0) >= count:
            die()
        return batch

    # Small chunks, so that a death can come between any two of many batches.
    wiring.LineInput = partial(LineInput, chunk_bytes=8192)  # type: ignore[assignment,misc]
    if point in ("before-commit", "after-commit"):
        SqliteLog.append = dying_append  # type: ignore[method-assign]
    if point == "before-note":
        ReleasedBorders.note_all = dying_note  # type: ignore[method-assign]
    if point == "bytes":
        LineInput.read = dying_read  # type: ignore[method-assign]


if __name__ == "__main__":
    path, where, after = arguments_of_this_fork()
    plant(where, int(after))
    run_here(Path(path), DyingCoins(where, int(after)))
