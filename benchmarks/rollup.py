"""The roll-up: sketches per CPU second, through Rollup.add and Rollup.step, and where the time goes.

Run from the root of the repository: python benchmarks/rollup.py [keys]. Ten windows of a minute, sketches of 4096 x 24
cells at epsilon 4; then their hour and their day are published as they stand. Medians of several runs; the steps of a
record are timed apart.
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

from sfm_stream.estimation.estimate import estimate, estimate_many
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.pipeline.rollup.rollup import Rollup
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.wire.codec import CloseMarker, Release, decode, decode_release, decode_rollup, encode
from sfm_stream.wire.keys import encode_key

RUNS = 5
WINDOW_MS, WINDOWS = 60_000, 10
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


def measure(records: list[bytes]) -> tuple[float, float, float]:
    """(releases added, roll-ups published, sketches in all) per CPU second of one pass."""
    rollup = Rollup("bench", 0, calendar("UTC", WINDOW_MS, START_MS, 2027))
    begun = time.process_time()
    for offset, payload in enumerate(records):
        rollup.add(offset, payload)
    added, published = time.process_time(), 0
    rollup.expire(START_MS + 48 * 3_600_000)
    while (step := rollup.step()) is not None:
        published += len(step.publish)
        rollup.committed(step)
    ended, sketches = time.process_time(), len(records) - 1
    return sketches / (added - begun), published / (ended - added), sketches / (ended - begun)


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
    names = "releases added", "roll-ups published", "sketches in all"
    for name, rates in zip(names, zip(*passes, strict=True), strict=True):
        print(f"{name:20}{statistics.median(rates):10,.0f} per CPU second")
    release = decode(records[0])
    assert isinstance(release, Release)
    total = TallySum.like(release.sketch)
    for payload in records[:60]:
        record = decode(payload)
        assert isinstance(record, Release)
        total.add(record.sketch)
    tally = total.tally()
    ten = TallySum.like(release.sketch)
    for payload in records[:10]:
        ten.add(decode_release(payload).sketch)
    parts: list[tuple[str, Callable[[], object]]] = [
        ("decode a release", lambda: decode(records[0])),
        ("TallySum.add", lambda: TallySum.add(total, release.sketch)),
        ("TallySum.histogram, 60 releases", lambda: total.histogram()),
        ("TallySum.add_sum, 60 releases", lambda: TallySum.like(tally).add_sum(total)),
        ("estimate, 60 releases", lambda: estimate(tally)),
        ("estimate, 10 releases", lambda: estimate(ten.tally())),
        ("estimate_many, 32 of 10 releases", lambda: estimate_many([ten.histogram()] * 32)),
    ]
    rollup = Rollup("bench", 0, calendar("UTC", WINDOW_MS, START_MS, 2027))
    for offset, payload in enumerate([records[0], records[-1]]):
        rollup.add(offset, payload)
    rollup.expire(START_MS + 48 * 3_600_000)
    step = rollup.step()
    assert step is not None
    written = step.publish[0].value
    whole = decode_rollup(written)
    parts += [("encode a roll-up", lambda: encode(whole)), ("decode a roll-up", lambda: decode(written))]
    for name, work in parts:
        print(f"  {name:32}{median_us(work):10,.0f} us")


if __name__ == "__main__":
    main()
