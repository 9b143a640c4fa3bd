"""What one release costs, part by part: from raw cells through the outbox to the public topic.

Run from the root of the repository against a broker that does nothing else:

    python benchmarks/releases.py BOOTSTRAP [--events 100 1000] [--windows 2] [--share 0.1] [--kernel auto] [--plain]

One partition, 1,000 keys a window, 4096 x 24 cells, with 100 and with 1,000 distinct items a release. No event is read:
the columns of a window are given to the counter of a running ingest worker, one record behind them makes all windows
due, and from there on everything is the worker's own: draws, transactions, the outbox, the publisher, the sketch topic.
CPU time is that of all threads of this process; the broker's is not in it. Topics have names of their own and are
deleted at the end.

The parts are taken by reading the clock of a thread around some functions, which itself costs a little: `--plain`
leaves that out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.cli.memory import settle_memory
from sfm_stream.composition.kafka import open_ingest, open_outbox
from sfm_stream.composition.kafka_service import Service
from sfm_stream.config.config import Config, load_config
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.types import EventColumns
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.outbox import OutboxWorker

KEYS, BUCKETS, LEVELS = 1000, 4096, 24
START_MS = (int(time.time()) // 60 - 90) * 60_000
"""Early enough for all windows to be due now, and so late that few windows without anything follow."""
MINUTE_MS, GRACE_MS = 60_000, 3_600_000

CONFIG = """
[pipeline]
id = "{id}"
[kafka]
bootstrap = {bootstrap}
topic = "{id}-in"
timestamps = "create_time"
accept_any_clock = true
replication = 1
[event]
key = "page"
item = "user"
time = "at"
[window]
size = "1m"
grace = "1h"
start = {start}
[privacy]
epsilon = {epsilon}
count_share = {share}
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[worker]
kernel = "{kernel}"
[metrics]
operator = ""
"""

INGEST = {
    "raw cells to bits": "windows.store:CellsByKey.bits",
    "flip": "pipeline.counting.releases:flip_bits",
    "step (with both)": "pipeline.counting.counter:WindowCounter.step",
    "committed, raw state dropped": "pipeline.counting.counter:WindowCounter.committed",
    "commit, this thread": "transport.kafka.transport:KafkaTransport.commit",
    "thread of a transaction": "transport.kafka.transactions:_perform",
}
PUBLISH = {
    "poll": "transport.kafka.transport:KafkaTransport.poll",
    "read (judge each record)": "workers.outbox:OutboxWorker._read",
    "step": "pipeline.outbox:OutboxCopy.step",
    "commit, this thread": "transport.kafka.transport:KafkaTransport.commit",
    "thread of a transaction": "transport.kafka.transactions:_perform",
}


class Bench:
    """A pipeline with topics of its own, deleted at the end."""

    def __init__(self, bootstrap: str, folder: Path, epsilon: str, share: str, kernel: str) -> None:
        self.bootstrap, self.id = bootstrap, f"bench-{uuid.uuid4().hex[:8]}"
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START_MS / 1000))
        path = folder / "app.toml"
        brokers = json.dumps(bootstrap.split(","))
        text = CONFIG.format(id=self.id, bootstrap=brokers, start=start, epsilon=epsilon, share=share, kernel=kernel)
        path.write_text(text)
        self.config: Config = load_config(path)
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics({f"{self.id}-in": {"num_partitions": 1}}, wait_for_metadata=True)

    def delete(self) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.delete_topics([name for name in admin.list_topics() if name.startswith(self.id)])


@contextmanager
def spent(place: str, into: dict[str, float], label: str) -> Iterator[None]:
    """Within it, CPU time of the calling thread in a function or method is added up. place: "module:name"."""
    module, _, name = place.partition(":")
    owner = importlib.import_module(f"sfm_stream.{module}")
    *path, name = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    if (original := getattr(owner, name, None)) is None:
        yield  # another version of the code has no such part
        return

    def timed(*arguments: object, **named: object) -> object:
        before = time.thread_time()
        try:
            return original(*arguments, **named)
        finally:
            into[label] = into.get(label, 0.0) + time.thread_time() - before

    setattr(owner, name, timed)
    try:
        yield
    finally:
        setattr(owner, name, original)


def cpu_of_threads() -> dict[str, float]:
    """CPU seconds of each thread of Python that runs now."""
    clocks = {t: time.pthread_getcpuclockid(t.ident) for t in threading.enumerate() if t.ident is not None}
    return {f"{t.name} {t.ident}": time.clock_gettime(clock) for t, clock in clocks.items()}


def measured(
    service: Service, done: Callable[[], bool], parts: dict[str, str], releases: int, plain: bool
) -> tuple[float, dict[str, float]]:
    """CPU microseconds a release until `done`: of the whole process, and of each part."""
    shares: dict[str, float] = {}
    settle_memory()
    with ExitStack() as timed:
        if not plain:
            for label, place in parts.items():
                timed.enter_context(spent(place, shares, label))
        threads, before = cpu_of_threads(), time.process_time()
        main = time.thread_time()
        while not done():
            service.tick(lambda: False)
        used = time.process_time() - before
        shares["this thread, all"] = time.thread_time() - main
        for name, seconds in cpu_of_threads().items():
            if threading.current_thread().name not in name and seconds - threads.get(name, 0.0) > 1e-5 * releases / 10:
                shares[f"  {name.rsplit(' ', 1)[0]}"] = seconds - threads.get(name, 0.0)
    return used * 1e6 / releases, {label: seconds * 1e6 / releases for label, seconds in shares.items()}


def rows_at(time_ms: int, key_ids: NDArray[np.int32], cells: NDArray[np.uint32]) -> EventColumns:
    """Records of one time, which is both that of the event and of its arrival."""
    at = np.full(len(cells), time_ms, np.int64)
    return EventColumns(0, 0, np.zeros(len(cells), np.int64), at, at, key_ids, cells, np.zeros(len(cells), np.uint8))


def fill(counter: WindowCounter, items: int, windows: int) -> int:
    """Give the counter windows of so many distinct items under each key, and make them due. Returns their last end."""
    rng = np.random.default_rng(1)
    key_ids = np.array([counter.keys.intern(f"page-{number}") for number in range(KEYS)], np.int32)
    for window in range(windows):
        buckets = rng.integers(0, BUCKETS, KEYS * items, dtype=np.uint32)
        levels = np.minimum(rng.geometric(0.5, KEYS * items) - 1, LEVELS - 1).astype(np.uint32)
        cells = levels * np.uint32(BUCKETS) + buckets
        counter.add(rows_at(START_MS + window * MINUTE_MS, np.tile(key_ids, items), cells))
        counter.base.store.compact()
    end_ms = START_MS + windows * MINUTE_MS
    counter.add(rows_at(end_ms + GRACE_MS + MINUTE_MS, key_ids[:1], np.zeros(1, np.uint32)))
    return end_ms


def run(bench: Bench, items: int, windows: int, plain: bool) -> None:
    """Both halves of a release, one after the other, as two workers in one process."""
    releases = KEYS * windows
    ingest = open_ingest(bench.config, begin=True)
    worker = ingest.worker
    assert isinstance(worker, IngestWorker)
    while not worker.counters:
        ingest.tick(lambda: False)
    counter = worker.counters[0][1]
    end_ms = fill(counter, items, windows)
    to_outbox, shares = measured(
        ingest, lambda: counter.state.base.closed_through_ms >= end_ms, INGEST, releases, plain
    )
    show(f"{items} items a release, {releases} releases: raw cells to outbox", to_outbox, shares)
    ingest.close()
    service = open_outbox(bench.config)
    publisher = service.worker
    assert isinstance(publisher, OutboxWorker)
    while not publisher.partitions:  # the join of the group is no part of a release
        service.tick(lambda: False)
    left = releases - publisher.published
    to_public, shares = measured(service, lambda: publisher.published >= releases, PUBLISH, left, plain)
    show(f"{items} items a release, {left} of {releases} releases: outbox to sketch topic", to_public, shares)
    service.close()
    print(f"{items} items a release, whole: {to_outbox + to_public:.0f} us")


def show(title: str, total: float, shares: dict[str, float]) -> None:
    print(f"{title}: {total:.0f} us a release")
    for label, microseconds in shares.items():
        print(f"    {label}: {microseconds:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--events", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--windows", type=int, default=2)
    parser.add_argument("--epsilon", default="2")
    parser.add_argument("--share", default="0.1")
    parser.add_argument("--kernel", choices=["auto", "python", "native"], default="auto")
    parser.add_argument("--plain", action="store_true")
    chosen = parser.parse_args()
    for items in chosen.events:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(chosen.bootstrap, Path(folder), chosen.epsilon, chosen.share, chosen.kernel)
            try:
                run(bench, items, chosen.windows, chosen.plain)
            finally:
                bench.delete()


if __name__ == "__main__":
    main()
