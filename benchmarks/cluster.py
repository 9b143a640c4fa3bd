"""Kafka to outbox to sketch topic: events per CPU second and the share of each step; publisher, roll-up and restart.

Run from the root of the repository against a broker that does nothing else:

    python benchmarks/cluster.py BOOTSTRAP [--events 1000000] [--part ingest|copy|restart|days|all] [--batch-bytes 1]

One partition, JSON events of about 115 bytes, 1,000 pages, in batches of about a thousand as a busy producer sends
them (--batch-bytes 1: one in each); windows of one minute, 4096 x 24 cells. All runs in this process: CPU time is
that of all its threads, the broker's is not in it. Topics get names of their own and are deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sfm_stream.cli.memory import settle_memory
from sfm_stream.composition.kafka import open_ingest, open_outbox, open_rollup
from sfm_stream.composition.kafka_cluster import cluster_of
from sfm_stream.composition.kafka_service import Service
from sfm_stream.config.config import Config, load_config
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.workers.ingest import IngestWorker

PAGES, USERS, MINUTES = 1000, 200_000, 4
START_MS = int(time.time()) // 3600 * 3_600_000 - 2 * 3_600_000

CONFIG = """
[pipeline]
id = "{id}{suffix}"
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
grace = "{grace}"
start = {start}
[privacy]
epsilon = 2
keys = "presence_is_public"
max_epsilon_per_item_day = 1000000
[metrics]
operator = ""
{spans}
"""
NOON = round(12 - START_MS / 3_600_000 % 24)
"""What to add to UTC for a zone in which it is noon: its day is open while this runs."""
DAYS = f"""
[rollup]
zone = "Etc/GMT{-NOON:+d}"
[[spans]]
size = "hour"
epsilon = 1
[[spans]]
size = "day"
epsilon = 1
"""


def _utc(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ms / 1000))


class Bench:
    """A pipeline with topics of its own, deleted at the end."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.id = bootstrap, f"bench-{uuid.uuid4().hex[:8]}"
        fields = {"id": self.id, "bootstrap": json.dumps(bootstrap.split(",")), "start": _utc(START_MS)}
        path = folder / "app.toml"
        path.write_text(CONFIG.format(**fields, suffix="", grace="10s", spans=""))
        self.config: Config = load_config(path)
        path.write_text(CONFIG.format(**fields, suffix="-held", grace="12h", spans=""))
        self.held: Config = load_config(path)
        fields["start"] = _utc(START_MS - 12 * 3_600_000)
        path.write_text(CONFIG.format(**fields, suffix="-days", grace="10s", spans=DAYS))
        self.days: Config = load_config(path)
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics({f"{self.id}-in": {"num_partitions": 1}}, wait_for_metadata=True)

    def produce(self, events: int, batch_bytes: int) -> None:
        rng = random.Random(1)
        step = MINUTES * 60_000 / events
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=200, batch_size=batch_bytes)
        for number in range(events):
            at = START_MS + int(number * step)
            page = f"page-{int(PAGES * rng.random() ** 2)}"
            event = {"page": page, "user": f"user-{rng.randrange(USERS):08d}", "at": at, "country": "de", "agent": "m"}
            producer.send(f"{self.id}-in", json.dumps(event).encode(), page.encode(), partition=0, timestamp_ms=at)
        producer.flush()
        producer.close()

    def delete(self) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.delete_topics([name for name in admin.list_topics() if name.startswith(self.id)])


@contextmanager
def spent(owner: type, name: str, into: dict[str, float], label: str) -> Iterator[None]:
    """Within it, CPU time of this thread in a method is added up."""
    original = getattr(owner, name)

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


def turn(service: Service, done: Callable[[], bool]) -> float:
    """CPU seconds of this process, all threads, until `done`."""
    settle_memory()
    before = time.process_time()
    while not done():
        service.tick(lambda: False)
    return time.process_time() - before


def read_to_end(bench: Bench, service: Service, events: int) -> float:
    worker = service.worker
    assert isinstance(worker, IngestWorker)
    return turn(service, lambda: worker.report.read >= events)


def ingest(bench: Bench, events: int) -> None:
    """Everything, then by steps: what the poll costs alone, then decoding, extraction, windows, and the rest."""
    log = TopicLog(cluster_of(bench.config))
    before = time.process_time()
    end = log.ends(f"{bench.id}-in", [0], stable=True)[0]
    for _ in log.batches(f"{bench.id}-in", 0, 0, end):
        pass
    print(
        f"reading whole batches, not looked into: {events / (time.process_time() - before):,.0f} events per CPU second"
    )
    log.close()
    plain(bench, events)
    service = open_ingest(bench.config, begin=True)
    shares: dict[str, float] = {}
    with (
        spent(KafkaTransport, "poll", shares, "poll"),
        spent(KafkaBatch, "_read", shares, "records to columns"),
        spent(PythonExtractor, "columns", shares, "extract (with the former)"),
        spent(WindowCounter, "add", shares, "windows"),
        spent(WindowCounter, "step", shares, "draws and encoding"),
        spent(KafkaTransport, "commit", shares, "commit (this thread)"),
    ):
        used = read_to_end(bench, service, events)
    worker = service.worker
    assert isinstance(worker, IngestWorker)
    releasing = shares["draws and encoding"] + shares.get("commit (this thread)", 0.0)
    print(
        f"Kafka to outbox: {events / used:,.0f} events per CPU second, {worker.report.releases} releases on the way; "
        f"without their draws and commits {events / (used - releasing):,.0f}"
    )
    for label, seconds in shares.items():
        print(f"  {label}: {seconds / used:.0%}")
    release_all(service)
    service.close()


def plain(bench: Bench, events: int) -> None:
    """What the client takes by itself, and with what a hand-written loop would do with each record."""
    for label, use in (("kafka-python, poll alone", False), ("with msgspec and a set for each page and minute", True)):
        consumer = KafkaConsumer(
            bootstrap_servers=bench.bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=5000,
        )
        place = TopicPartition(f"{bench.id}-in", 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        seen: dict[tuple[str, int], set[str]] = {}
        before, read = time.process_time(), 0
        while read < events:
            for records in consumer.poll(timeout_ms=1000).values():
                read += len(records)
                if use:
                    for record in records:
                        event = msgspec.json.decode(record.value)
                        seen.setdefault((event["page"], event["at"] // 60_000), set()).add(event["user"])
        print(f"{label}: {events / (time.process_time() - before):,.0f} events per CPU second")
        consumer.close()


def release_all(service: Service) -> None:
    """Wait until all windows with events are released, by the wall clock where nothing else closes them."""
    worker = service.worker
    assert isinstance(worker, IngestWorker)
    wanted = START_MS + MINUTES * 60_000
    turn(service, lambda: all(c[1].state.base.closed_through_ms >= wanted for c in worker.counters.values()))
    worker.checkpoint()


def copy(bench: Bench) -> None:
    """Outbox to sketch topic, then sketch topic to roll-ups."""
    log = TopicLog(cluster_of(bench.config))
    releases = sum(1 for record in log.read(f"{bench.id}.outbox") if record.key)
    service = open_outbox(bench.config)
    used = turn(service, lambda: service.worker.published >= releases)  # type: ignore[union-attr]
    print(f"publisher: {releases / used:,.0f} sketches per CPU second ({releases} sketches)")
    service.close()
    rollup = open_rollup(bench.config)
    used = turn(rollup, lambda: rollup.worker.published >= PAGES)  # type: ignore[union-attr]
    print(f"roll-up: {releases / used:,.0f} sketches per CPU second, {PAGES} estimates of an hour among it")
    rollup.close()
    log.close()


def restart(bench: Bench, events: int) -> None:
    """A worker that finds no window closed reads everything again, before it is where the last one was."""
    open_ingest(bench.held, begin=True).close()
    before, used = time.monotonic(), time.process_time()
    service = open_ingest(bench.held, begin=False)
    read_to_end(bench, service, events)
    wall, used = time.monotonic() - before, time.process_time() - used
    print(f"restart: {wall * 1e6 / events:.1f} s a million held-back records ({used * 1e6 / events:.1f} CPU seconds)")
    service.close()


def restart_with_days(bench: Bench, events: int) -> None:
    """A worker whose day is open reads that day again, though every window of it but the last is closed."""
    service = open_ingest(bench.days, begin=True)
    used = read_to_end(bench, service, events)
    print(f"windows, hours and a day: {events / used:,.0f} events per CPU second, releases of windows on the way")
    release_all(service)
    service.close()
    before, used = time.monotonic(), time.process_time()
    service = open_ingest(bench.days, begin=False)
    read_to_end(bench, service, events)
    wall, used = time.monotonic() - before, time.process_time() - used
    worker = service.worker
    assert isinstance(worker, IngestWorker)
    assert not worker.report.releases, "nothing is released again"
    print(f"restart in a day: {wall * 1e6 / events:.1f} s a million of its records ({used * 1e6 / events:.1f} CPU)")
    service.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--part", choices=["ingest", "copy", "restart", "days", "all"], default="all")
    parser.add_argument("--batch-bytes", type=int, default=130_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(chosen.bootstrap, Path(folder))
        try:
            bench.produce(chosen.events, chosen.batch_bytes)
            if chosen.part in ("restart", "all"):
                restart(bench, chosen.events)
            if chosen.part in ("days", "all"):
                restart_with_days(bench, chosen.events)
            if chosen.part in ("ingest", "copy", "all"):
                ingest(bench, chosen.events)
            if chosen.part in ("copy", "all"):
                copy(bench)
        finally:
            bench.delete()


if __name__ == "__main__":
    main()
