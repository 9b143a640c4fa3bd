"""Trials in several processes, kept in files, so that a run can be killed anywhere, continued and extended."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.cells import Plan
from benchmarks.paper.figures import run_trial
from benchmarks.paper.items import Addresses

CHUNK = 5
"""Trials a file. A run that is killed loses at most so many for each process."""
Told = Callable[[int], None]
"""Told how many more trials are there."""


def measure(
    plan: Plan,
    trials: int,
    folder: Path,
    pool: Executor,
    addresses: Addresses | None = None,
    told: Told = lambda _: None,
) -> NDArray[np.float64]:
    """Shape (trials, cells): the estimates of trials 0 .. trials - 1, from the folder or measured now.

    They depend on the plan alone: not on the number of processes, nor on interruptions, nor on the order of chunks.
    """
    shards = folder / "trials" / f"{plan.figure}-{plan.fingerprint()}"
    shards.mkdir(parents=True, exist_ok=True)
    rows: dict[int, list[list[float]]] = {}
    jobs = {}
    for start in range(0, trials, CHUNK):
        wanted = min(CHUNK, trials - start)
        stored = _stored(shards / f"{start:06d}.json", plan)
        if len(stored) >= wanted:
            rows[start] = stored[:wanted]
            told(wanted)
        else:
            jobs[pool.submit(_chunk, plan, start, wanted, shards, addresses)] = start
    for job in as_completed(jobs):
        rows[jobs[job]] = job.result()
        told(len(rows[jobs[job]]))
    return np.array([row for start in sorted(rows) for row in rows[start]])


@contextmanager
def workers(processes: int) -> Iterator[Executor]:
    """Worker processes that end when their parent is gone, however it went."""
    with ProcessPoolExecutor(processes, initializer=_end_with_parent, initargs=(os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _chunk(plan: Plan, start: int, wanted: int, shards: Path, addresses: Addresses | None) -> list[list[float]]:
    rows = [run_trial(plan, trial, addresses) for trial in range(start, start + wanted)]
    _store(shards / f"{start:06d}.json", plan, rows)
    return rows


def _store(path: Path, plan: Plan, rows: list[list[float]]) -> None:
    """Whole or not at all: a killed process leaves at most a .part file, which nobody reads."""
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps({"cells": [str(cell) for cell in plan.cells], "rows": rows}))
    part.replace(path)


def _stored(path: Path, plan: Plan) -> list[list[float]]:
    """The rows in the file; none if it is not there, damaged or of other cells."""
    try:
        content = json.loads(path.read_text())
        right = content["cells"] == [str(cell) for cell in plan.cells]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return content["rows"] if right else []


def _end_with_parent(parent: int) -> None:
    """A worker of a killed parent would wait for work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
