"""Memory of an open key: windows alone against windows, hours and days, as resident memory of a process of its own.

    python benchmarks/spans.py [KEYS] [ITEMS]

Every key has ITEMS distinct items in each of two windows of five minutes, the same ones: the first window is closed, so
that the hour and the day hold what the window held. Prints bytes for each key, of all that a process holds more.
"""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np

from sfm_stream.events.key_table import KeyTable
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import CountingPlan, Limits
from sfm_stream.pipeline.counting.position import first_state
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.key_rules import PresenceIsPublic
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import EventColumns
from sfm_stream.units import MINUTE_MS
from sfm_stream.windows.grid import fixed_size_ms, grid_of
from sfm_stream.windows.tumbling import Tumbling

START_MS = 1_767_225_600_000
SHAPE = SketchShape(4096, 24)


def resident() -> int:
    """Bytes of resident memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def plan_of(names: list[str]) -> CountingPlan:
    threshold = flip_threshold_of(1)
    spans = tuple(ReleasedSpan(name, fixed_size_ms(name), Decimal(1), threshold, Decimal(0), SHAPE) for name in names)
    grids = [grid_of(name, "UTC") for name in names]
    windows = Tumbling(grids[0], 0, 0, START_MS)
    return CountingPlan(
        "p", 1, 1, spans, XXH64, windows, "blanked", PresenceIsPublic(), "f", Limits(), tuple(grids[1:])
    )


def columns(table: KeyTable, at_ms: int, first: int, count: int, items: int) -> EventColumns:
    """One event for each item of each of `count` keys."""
    ids = np.array([table.intern(f"/page/{number:08d}") for number in range(first, first + count)], np.int32)
    rows = count * items
    hashes = np.random.default_rng(first).integers(0, 2**64, rows, np.uint64)
    times = np.full(rows, at_ms, np.int64)
    return EventColumns(
        0, 0, np.arange(rows), times, times, np.repeat(ids, items), SHAPE.cells_of(hashes), np.zeros(rows, np.uint8)
    )


def measured(names: list[str], keys: int, items: int) -> float:
    """Bytes for each key once the first window is closed and the second is as full."""
    table, plan = KeyTable(), plan_of(names)
    counter = WindowCounter(plan, 0, first_state(plan, "x", START_MS * 2, 0), table)
    counter.add(columns(table, START_MS, 0, 1, 1))
    before = resident()
    for window in range(2):
        at_ms = START_MS + window * 5 * MINUTE_MS
        for first in range(0, keys, 20_000):
            counter.add(columns(table, at_ms, first, 20_000, items))
        if window == 0:
            for span, progress in zip(counter.spans, counter.state.spans, strict=True):
                if span is counter.base:
                    closed = span.store.starts()
                    counter._absorb(closed)
                    span.closed(progress)
                    span.forget(closed)
    for span in counter.spans:
        span.store.compact()
    return (resident() - before) / keys


def main() -> None:
    if len(sys.argv) > 3:  # one of the processes that are measured
        sys.stdout.write(f"{measured(sys.argv[3].split(), int(sys.argv[1]), int(sys.argv[2]))}\n")
        return
    keys, items = (int(value) for value in [*sys.argv[1:], "500000", "10"][:2])
    found = []
    for names in ("5m", "5m hour day"):
        call = [sys.executable, __file__, str(keys), str(items), names]
        found.append(float(subprocess.run(call, check=True, capture_output=True, text=True).stdout))
        sys.stdout.write(f"{names:12} {found[-1]:6.0f} bytes of resident memory for each key of {items} items\n")
    sys.stdout.write(f"ratio {found[1] / found[0]:.2f}\n")


if __name__ == "__main__":
    main()
