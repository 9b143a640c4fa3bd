"""The roll-up: releases per CPU second through Rollup.add, and roll-up records per CPU second through Rollup.step.

Run from the root of the repository: python benchmarks/rollup.py [keys]. One hour of windows of 15 minutes, sketches of
4096 x 24 cells at epsilon 4. Medians of several runs; the steps of a record are timed apart, so that it shows where the
time goes.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.estimation.estimate import estimate
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.merge import merge_tally
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker, Release, decode, decode_rollup, encode
from sfm_stream.wire.keys import encode_key

RUNS = 5
WINDOW_MS, WINDOWS = 900_000, 4
START_MS = 1_767_225_600_000
SHAPE = SketchShape(4096, 24)
K = flip_threshold_of(Decimal(4))
ITEMS = 20_000


def sketch(rng: np.random.Generator) -> SfmSketch:
    """About what ITEMS items leave after the flips."""
    lit = 1.0 - np.exp(-ITEMS * SHAPE.rho)[:, None]
    cells = (rng.random((SHAPE.levels, SHAPE.buckets)) < lit) ^ (rng.random((SHAPE.levels, SHAPE.buckets)) < K / GRID)
    return SfmSketch(SHAPE, K, "xxh64", np.packbits(cells, bitorder="little").tobytes())


def hour(keys: int) -> list[bytes]:
    """The records of one hour; a hundred sketches are used again and again."""
    rng = np.random.default_rng(1)
    sketches = [sketch(rng) for _ in range(100)]
    records = []
    for number in range(WINDOWS):
        window = Window(START_MS + number * WINDOW_MS, START_MS + (number + 1) * WINDOW_MS)
        for key in range(keys):
            drawn = sketches[(key * WINDOWS + number) % 100]
            records.append(encode(Release("bench", 1, 0, 1, window, encode_key(key), "removed", drawn)))
    end_ms = START_MS + WINDOWS * WINDOW_MS
    return [*records, encode(CloseMarker("bench", 1, 0, 1, START_MS, end_ms, WINDOW_MS, "ab"))]


def measure(records: list[bytes]) -> tuple[float, float]:
    """(releases per CPU second, roll-up records per CPU second) of one pass."""
    rollup = Rollup("bench", 0, calendar("UTC", WINDOW_MS, START_MS, 2027))
    begun = time.process_time()
    for offset, payload in enumerate(records):
        rollup.add(offset, payload)
    added, published = time.process_time(), 0
    while (step := rollup.step()) is not None:
        published += len(step.publish)
        rollup.committed(step)
    return (len(records) - 1) / (added - begun), published / (time.process_time() - added)


def median_us(work: Callable[[], object], repeats: int = 30) -> float:
    """Median CPU time of one call, in microseconds."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return statistics.median(times) * 1e6


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    records = hour(keys)
    passes = [measure(records) for _ in range(RUNS)]
    print(f"{keys} keys, {WINDOWS} windows, {SHAPE}, medians of {RUNS} runs")
    print(f"Rollup.add   {statistics.median(rate for rate, _ in passes):10,.0f} releases per CPU second")
    print(f"Rollup.step  {statistics.median(rate for _, rate in passes):10,.0f} roll-up records per CPU second")
    release = decode(records[0])
    assert isinstance(release, Release)
    total = TallySum.like(release.sketch)
    for payload in records[:60]:
        record = decode(payload)
        assert isinstance(record, Release)
        total.add(record.sketch)
    tally = total.tally()
    parts: list[tuple[str, Callable[[], object]]] = [
        ("decode a release", lambda: decode(records[0])),
        ("TallySum.add", lambda: TallySum.add(total, release.sketch)),
        ("TallySum.tally, 60 releases", lambda: total.tally()),
        ("TallySum.add_sum, 60 releases", lambda: TallySum.like(tally).add_sum(total)),
        ("estimate, 60 releases", lambda: estimate(tally)),
        ("merge_tally, 60 releases", lambda: merge_tally(tally)),
    ]
    rollup = Rollup("bench", 0, calendar("UTC", WINDOW_MS, START_MS, 2027))
    for offset, payload in enumerate([records[0], records[-1]]):
        rollup.add(offset, payload)
    step = rollup.step()
    assert step is not None
    written = step.publish[0].value
    whole = decode_rollup(written)
    parts += [("encode a roll-up", lambda: encode(whole)), ("decode a roll-up", lambda: decode(written))]
    for name, work in parts:
        print(f"  {name:32}{median_us(work):10,.0f} us")


if __name__ == "__main__":
    main()
