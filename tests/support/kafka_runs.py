"""Pipelines on a real cluster, for tests: their configuration, events, worker processes, and what the topics hold."""

from __future__ import annotations

import atexit
import json
import random
import signal
import subprocess
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import xxhash
from kafka.partitioner import murmur2 as java_murmur2
from support.forks import Forks
from support.kafka_topics import Read, make_topic, produce, read_all
from support.patience import PATIENCE_S, patiently

from sfm_stream.wire.codec import CloseMarker, Release, decode

WORKER = Path(__file__).resolve().parents[1] / "integration" / "kafka_worker.py"
BUCKETS, LEVELS = 64, 24
MINUTE_MS = 60_000
START_MS = int(time.time()) // 3600 * 3_600_000 - 2 * 3_600_000
"""A full hour not long ago: all windows from here to now get closed once the input is read."""

CONFIG = """
[pipeline]
id = "{id}"
epoch = {epoch}
[kafka]
bootstrap = {bootstrap}
topic = "{topic}"
timestamps = "{timestamps}"
accept_any_clock = true
replication = {replication}
downtime = "1h"
session_timeout = "{session}"
transaction_timeout = "{transaction}"
{kafka}
[event]
key = {key}
item = "user"
{time}
[window]
size = "{size}"
grace = "{grace}"
start = {start}
clock_margin = "{margin}"
max_future_skew = "1h"
[sketch]
buckets = 64
levels = 24
[privacy]
{privacy}
max_epsilon_per_item_day = 1000000
{metrics}
[limits]
max_transaction_bytes = {room}
{limits}
{spans}
"""

DEFAULTS: dict[str, object] = {
    "epoch": 1,
    "timestamps": "create_time",
    "replication": 1,
    "session": "2s",
    "transaction": "2s",
    "size": "1m",
    "grace": "30s",
    "start": datetime.fromtimestamp(START_MS / 1000, UTC).isoformat(),
    "kafka": "",
    "limits": "",
    "room": 8192,
    "metrics": "",
    "spans": "",
    "time": 'time = "at"',
    "key": '"page"',
    "margin": "1s",
    "privacy": 'epsilon = 2\nkeys = "presence_is_public"',
}


@dataclass(frozen=True)
class Event:
    page: str
    user: str
    at_ms: int
    arrival_ms: int

    @property
    def value(self) -> bytes:
        return json.dumps({"page": self.page, "user": self.user, "at": self.at_ms}).encode()


@dataclass
class Run:
    """One pipeline with topics of its own. events: what was produced, by partition, in order."""

    bootstrap: str
    folder: Path
    partitions: int = 3
    settings: dict[str, object] = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"run-{uuid.uuid4().hex[:10]}")
    events: dict[int, list[Event]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        make_topic(self.bootstrap, self.topic, self.partitions, self.settings.pop("topic_config", {}))  # type: ignore[arg-type]
        self.config()

    @property
    def topic(self) -> str:
        return f"{self.id}-in"

    def config(self, name: str = "app.toml", **settings: object) -> Path:
        path = self.folder / name
        servers = json.dumps(self.bootstrap.split(","))
        fields = DEFAULTS | {"bootstrap": servers, "topic": self.topic, "id": self.id} | self.settings | settings
        # In one piece: a worker that was given the path before may read it right now.
        written = path.with_name(f"{path.name}.new")
        written.write_text(CONFIG.format(**fields))
        written.replace(path)
        return path

    def partition(self, page: str) -> int:
        digest: int = java_murmur2(page.encode())
        return (digest & 0x7FFFFFFF) % self.partitions

    def produce(self, events: Iterable[Event], **options: object) -> None:
        listed = list(events)
        produce(
            self.bootstrap,
            self.topic,
            [(e.page.encode(), e.value, e.arrival_ms, self.partition(e.page)) for e in listed],
            **options,  # type: ignore[arg-type]
        )
        if not options.get("abort"):
            for event in listed:
                self.events[self.partition(event.page)].append(event)

    def read(self, name: str, isolation: str = "read_committed") -> list[Read]:
        return read_all(self.bootstrap, f"{self.id}.{name}", isolation)


def page_views(
    count: int, minutes: int, pages: int = 8, users: int = 400, seed: int = 1, behind_ms: int = 20_000
) -> list[Event]:
    """Events in order of arrival, evenly spaced, a quarter of their event times behind_ms before it."""
    rng = random.Random(seed)
    step = minutes * MINUTE_MS / count
    events = []
    for number in range(count):
        arrival = START_MS + round(number * step)
        at = max(START_MS, arrival - rng.choice([0, 0, 0, behind_ms]))
        events.append(Event(f"p{rng.randrange(pages)}", f"u{rng.randrange(users)}", at, arrival))
    return events


@cache
def _workers() -> Forks:
    made = Forks(WORKER)
    atexit.register(made.close)
    return made


class Worker:
    """A worker process, of one pipeline or several. point, count: where it dies by itself (see kafka_worker.py)."""

    def __init__(
        self, config: Path | Sequence[Path], *roles: str, point: str = "never", count: int = 0, first: bool = False
    ) -> None:
        configs = [config] if isinstance(config, Path) else config
        self.log = configs[0].with_name(f"worker-{uuid.uuid4().hex[:6]}.log")
        call = [",".join(map(str, configs)), ",".join(roles or ("ingest", "publish")), point, count]
        self.process = _workers().start(*call, "first" if first else "again", out=self.log, err=self.log)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def stopped(self) -> bool:
        """Whether it is held by SIGSTOP."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Ask it to end, once it listens to signals: before, one would end it at once. Its exit code."""
        wait_until(lambda: not self.running or "listens to signals" in self.said(), 60, [self], 0.1)
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop: {self.said()}") from None

    def said(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def workers() -> Iterator[list[Worker]]:
    """A list of workers, none of which outlives the block."""
    started: list[Worker] = []
    try:
        yield started
    finally:
        for worker in started:
            worker.kill()


def wait_until(
    done: Callable[[], bool], timeout_s: float, started: Iterable[Worker] = (), every_s: float = 0.5
) -> None:
    """Fails with what these workers said once PATIENCE_S are over, or timeout_s where that is more."""

    def said() -> str:
        return "\n".join(f"--- {w.log.name} ({w.process.poll()}):\n{w.said()[-3000:]}" for w in started)

    for _ in patiently(said, every_s, timeout_s):
        if done():
            return


def closed_through(records: Iterable[Read], epoch: int = 1) -> dict[int, int]:
    """Partition to the end of its last close marker."""
    ends: dict[int, int] = {}
    for partition, _, _, value, _, _ in records:
        record = decode(value or b"")
        if isinstance(record, CloseMarker) and record.epoch == epoch:
            ends[partition] = max(ends.get(partition, 0), record.through_ms)
    return ends


def expected_cells(
    events: Iterable[Event], size_ms: int, start_ms: int = START_MS, until_ms: int = 1 << 62
) -> dict[tuple[bytes, int], set[tuple[int, int]]]:
    """(key, window start) to the cells (level from 0, bucket) of its items: by the definition, item by item."""
    cells: dict[tuple[bytes, int], set[tuple[int, int]]] = defaultdict(set)
    for event in events:
        if start_ms <= event.at_ms < until_ms:
            cells[event.page.encode(), event.at_ms - event.at_ms % size_ms].add(cell(event.user))
    return cells


def cell(user: str, buckets: int = BUCKETS) -> tuple[int, int]:
    """(level from 0, bucket) of an item, by the definition."""
    digest = xxhash.xxh64_intdigest(user.encode())
    rest_bits = 64 - (buckets.bit_length() - 1)
    bucket, rest = digest >> rest_bits, digest & ((1 << rest_bits) - 1)
    return min((rest & -rest).bit_length() - 1 if rest else LEVELS - 1, LEVELS - 1), bucket


def cells_of(release: Release) -> set[tuple[int, int]]:
    """The lit cells of a release, but for the last level, where the test's coins leave their mark."""
    bits, shape = int.from_bytes(release.sketch.bits, "little"), release.sketch.shape
    return {divmod(place, shape.buckets) for place in range(shape.buckets * (shape.levels - 1)) if bits >> place & 1}
