"""One point of a curve, in a process of its own:   python -m benchmarks.curves.point JSON

The batches of a topic are made in memory and read the way the worker of a partition reads them, a poll after another.
Both kernels take the same batches in turn. It prints one JSON document: kernel to what was measured.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

from kafka import TopicPartition
from kafka.record import MemoryRecords

from benchmarks.curves.wire import batches
from sfm_stream import kernels
from sfm_stream.config.config import parse_config
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.transport.kafka.kafka_python.batch_runs import MOST_BYTES
from sfm_stream.transport.kafka.kafka_python.hooks.whole_batches import WholeBatches
from sfm_stream.units import FOREVER_MS
from sfm_stream.workers.ingest_partition import IngestPartition, IngestSetup
from sfm_stream.workers.ingest_report import IngestReport

START_MS = 1_767_225_600_000
MINUTE_MS = 60_000
PLACE = TopicPartition("curve", 0)
POLL_BATCHES, FETCH_BYTES = 16, 2 << 20
"""Of a poll at most; of a fetch of one partition."""
PAGE = 4096
MEMORY_EVENTS = 5_000
"""So many events are made at a time where memory is measured."""
CONFIG = """
[pipeline]
id = "curve"
[kafka]
bootstrap = ["127.0.0.1:1"]
topic = "curve"
timestamps = "create_time"
accept_any_clock = true
[event]
key = "page"
item = "user"
time = "ts"
[window]
size = "1m"
grace = "1d"
start = 2026-01-01T00:00:00Z
[sketch]
buckets = {buckets}
[privacy]
epsilon = 2
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[limits]
max_open_keys = 100000000
"""


Fetched: TypeAlias = list[tuple[int, bytes]]


class Batches(WholeBatches):
    """What the reader of a group has of one fetch."""

    most_bytes = MOST_BYTES


@dataclass(frozen=True)
class Point:
    """warm: whether every key is open before anything is measured. items: of each key and window; 0: one an event."""

    measure: str
    keys: int = 1_000
    windows: int = 1
    buckets: int = 4096
    a_batch: int | None = None
    codec: str = "none"
    events: int = 200_000
    items: int = 0
    repetitions: int = 3


def fetches(point: Point, pages: Sequence[int], draw: random.Random) -> list[tuple[int, bytes]]:
    """(first offset, bytes) of the events of these pages, as fetches of the partition give them."""
    span_ms, people = point.windows * MINUTE_MS, point.items or 1_000_000
    records = []
    for page in pages:
        at_ms, user = START_MS + int(draw.random() * span_ms), int(draw.random() * people)
        value = b'{"page":"/page/%07d","user":"user-%06d","ts":%d,"from":"/page/0742","agent":"Firefox/128"}'
        records.append((b"/page/%07d" % page, value % (page, user, at_ms)))
    found: list[tuple[int, bytearray]] = []
    for first, _, raw in batches(records, START_MS + span_ms, point.a_batch, point.codec):
        if not found or len(found[-1][1]) + len(raw) > FETCH_BYTES:
            found.append((first, bytearray()))
        found[-1][1].extend(raw)
    return [(first, bytes(fetched)) for first, fetched in found]


def partition(point: Point) -> IngestPartition:
    """One that has begun and holds nothing."""
    config = parse_config(CONFIG.format(buckets=point.buckets), Path())
    setup = IngestSetup(config, "curve", SYSTEM_COINS, False, None, IngestReport())
    made = IngestPartition(setup, 0, None, START_MS + 10**12, FOREVER_MS, lambda: 1)
    made.begin(START_MS, 0)
    return made


def read(into: IngestPartition, given: Sequence[tuple[int, bytes]]) -> float:
    """CPU seconds of reading what was fetched: checksums and all else that the client of a partition does with it."""
    begun = time.process_time()
    for first, fetched in given:
        of_one = Batches(first, PLACE, MemoryRecords(fetched))
        while of_one:
            if taken := of_one.take(POLL_BATCHES):
                into.read(taken)
    return time.process_time() - begun


def cost(point: Point) -> float:
    """ns an event with every key open."""
    warm, measured = _events(point)
    into = partition(point)
    read(into, warm)
    return read(into, measured) / point.events * 1e9


def _events(point: Point) -> tuple[Fetched, Fetched]:
    """(one event of each key, the events that are measured), made once for all repetitions."""
    if point not in _MADE:
        draw = random.Random(1)
        each = draw.sample(range(point.keys), point.keys)
        _MADE[point] = fetches(point, each, draw), fetches(point, draw.choices(range(point.keys), k=point.events), draw)
    return _MADE[point]


_MADE: dict[Point, tuple[Fetched, Fetched]] = {}


def release(point: Point) -> float:
    """us a release, from raw cells to the record, for keys of `items` items."""
    into = partition(point)
    draw = random.Random(1)
    pages = [page for page in range(point.keys) for _ in range(point.items)]
    read(into, fetches(point, pages, draw))
    counter = into.counter
    assert counter is not None
    counter.finish()
    begun, releases = time.process_time(), 0
    while (step := counter.step()) is not None:
        releases += sum(len(record.key) > 0 for record in step.publish)
        counter.committed(step)
    return (time.process_time() - begun) / releases * 1e6


def memory(point: Point) -> float:
    """Bytes of resident memory for each open key with `items` items, the key and its id among them."""
    draw, some = random.Random(1), MEMORY_EVENTS // point.items

    def fill(into: IngestPartition, first: int) -> None:
        read(into, fetches(point, [page for page in range(first, first + some) for _ in range(point.items)], draw))

    # What it takes to make and to read some events stays with the process, and is there before anything is measured.
    fill(partition(point), 0)
    into = partition(point)
    gc.collect()
    before = _resident()
    for first in range(0, point.keys, some):
        fill(into, first)
    gc.collect()
    return (_resident() - before) / point.keys


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def main() -> None:
    given = json.loads(sys.argv[1])
    point, names = Point(**given["point"]), given["kernels"]
    work: Callable[[Point], float] = {"cost": cost, "release": release, "memory": memory}[point.measure]
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(point.repetitions):
        for name in names:
            kernels.choose(name)
            found[name].append(work(point))
    print(json.dumps({name: [median(each), min(each), max(each)] for name, each in found.items()}))


if __name__ == "__main__":
    main()
