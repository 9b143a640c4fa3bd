"""Extraction against a bare decoding loop over the same bytes, in events per CPU second.

Run from the root of the repository: python benchmarks/extract.py [events]. Medians of several runs, taken in turns so
that whatever else the machine does falls on both alike.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.shape import SketchShape

RUNS = 11
BATCH_RECORDS = 1000
START_MS = 1_700_000_000_000
SCHEMA = EventSchema(
    key=("page",), item="user", time="at", time_unit="ms", earliest_ms=START_MS, latest_ms=START_MS + 10**9
)


class Event(msgspec.Struct):
    """What a program that only decodes would write."""

    page: str
    user: str
    at: int


@dataclass(frozen=True)
class Batch:
    """Records in memory."""

    first: int
    records: list[bytes | None]
    partition: int = 0

    @property
    def next_offset(self) -> int:
        return self.first + len(self.records)

    @property
    def count(self) -> int:
        return len(self.records)

    def offsets(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.next_offset)

    def arrivals(self) -> NDArray[np.int64] | None:
        return None

    def keys(self) -> list[bytes | None]:
        return [None] * len(self.records)

    def values(self) -> list[bytes | None]:
        return self.records


def records(count: int) -> list[bytes]:
    """About 120 bytes each: 1,000 pages, one user in a billion, integer milliseconds."""
    draw = random.Random(1)
    return [
        b'{"page":"page-%d","user":"user-%09d","at":%d,"session":"%08x","referrer":"/p/%d","spent":%d}'
        % (
            draw.randrange(1000),
            draw.randrange(10**9),
            START_MS + number * 7,
            draw.getrandbits(32),
            draw.randrange(10**6),
            draw.randrange(5000),
        )
        for number in range(count)
    ]


def main(count: int) -> None:
    """Print one line for each contender, and what share of the rate of each loop extraction reaches."""
    lines = records(count)
    batches = [Batch(at, list(lines[at : at + BATCH_RECORDS])) for at in range(0, count, BATCH_RECORDS)]

    def loop(decode: Callable[[bytes], object]) -> None:
        for line in lines:
            decode(line)

    def extract(batches_a_poll: int) -> None:
        extractor = PythonExtractor(format_of(SCHEMA), SketchShape(4096, 24), keys=KeyTable())
        for at in range(0, len(batches), batches_a_poll):
            extractor.columns(batches[at : at + batches_a_poll])

    contenders: dict[str, Callable[[], None]] = {
        "loop, typed decoder": lambda: loop(msgspec.json.Decoder(Event).decode),
        "loop, untyped decoder": lambda: loop(msgspec.json.Decoder().decode),
        "extract, 1 batch a poll": lambda: extract(1),
        "extract, 8 batches a poll": lambda: extract(8),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(RUNS):
        for name, work in contenders.items():
            taken[name].append(cpu_seconds(work))
    print(f"{count} records of {sum(map(len, lines)) / count:.0f} bytes, batches of {BATCH_RECORDS}, {RUNS} runs")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name:26} {count / median:10,.0f} events per CPU second  {median / count * 1e9:5.0f} ns", end="")
        for rival in ("typed", "untyped"):
            loops = taken[f"loop, {rival} decoder"]
            share = statistics.median(one / own for one, own in zip(loops, seconds, strict=True))
            print(f"  {share:5.0%} of {rival}", end="")
        print()


def cpu_seconds(work: Callable[[], None]) -> float:
    """CPU time of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
