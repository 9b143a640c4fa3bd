"""On a real broker: a topic keyed by user is copied into one keyed by page, and counted there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer
from support.kafka_oracle import judge
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, Worker, closed_through, page_views, wait_until, workers
from support.kafka_topics import make_topic, produce, read_all, topic_name
from support.patience import PATIENCE_S, patiently
from unit.events.test_hostile_neighbours import ITEMS

from sfm_stream.composition.kafka import open_repartition
from sfm_stream.config.config import load_config

pytestmark = pytest.mark.kafka
MINUTES, SOURCES = 20, 4


class Command:
    """A command of its own process; `said` is what it wrote."""

    def __init__(self, log: Path, *call: str) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sfm_stream.cli", *call], stdout=out, stderr=out, env=os.environ
            )

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def command(log: Path, *call: str) -> Iterator[Command]:
    started = Command(log, *call)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def fill(run: Run, topic: str, count: int = 6000) -> list[tuple[int, bytes | None, int]]:
    """Events keyed by user, some records without use among them; (partition, value, time stamp) of each."""
    events = page_views(count, MINUTES)
    rows = [(e.user.encode(), e.value, e.arrival_ms, zlib.crc32(e.user.encode()) % SOURCES) for e in events]
    rows[700:700] = [(b"k", b"no JSON", START_MS + 1, 1), (None, b"{}", START_MS + 1, 2), (b"k", None, START_MS + 1, 3)]
    produce(run.bootstrap, topic, rows)
    for event in events:
        run.events[run.partition(event.page)].append(event)
    return [(partition or 0, value, stamp or 0) for _, value, stamp, partition in rows]


def count_of(bootstrap: str, topic: str) -> int:
    try:
        return len(read_all(bootstrap, topic))
    except LookupError:
        return 0


def hold_at(copy, reached: Callable[[], bool]) -> None:
    """Once it has begun let it run a fifth of a second at a time, and look while it is stopped and cannot move on."""
    before = copy.said.count("assigned")
    wait_until(lambda: copy.process.poll() is not None or copy.said.count("assigned") > before, 60, every_s=0.02)
    copy.process.send_signal(signal.SIGSTOP)
    for _ in patiently(lambda: copy.said):
        if copy.process.poll() is not None or reached():
            break
        copy.process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        copy.process.send_signal(signal.SIGSTOP)


def test_a_copy_that_is_killed_and_started_again_holds_each_record_once_and_is_counted_right(kafka, tmp_path):
    raw = make_topic(kafka, topic_name("raw"), SOURCES, {"retention.ms": 3_600_000_000})
    run = Run(kafka, tmp_path)
    copied = topic_name("copied")
    config = run.config("copied.toml", topic=copied, room=4096)  # 100 transactions, a few in the time between two looks
    rows = fill(run, raw)
    call = ("repartition", str(config), "--from", raw, "--partitions", "3", "--operator", "")
    log = tmp_path / "repartition.log"
    for share in (1, 2, 3):  # in the middle of the work
        with command(log, *call) as copy:
            hold_at(copy, lambda: count_of(kafka, copied) >= len(rows) * share // 4)
            assert copy.process.poll() is None, copy.said
            copy.process.kill()
            copy.process.wait()
    assert count_of(kafka, copied) < len(rows), "no kill came in the middle"
    with command(log, *call) as copy:
        wait_until(lambda: copy.process.poll() is not None or count_of(kafka, copied) >= len(rows), 60)
        copy.process.terminate()
        assert copy.process.wait(PATIENCE_S) == 0, copy.said
    require_copy(kafka, copied, rows)

    run.config(topic=copied)
    with workers() as started:
        started.append(Worker(run.config(topic=copied), first=True))
        wait_until(lambda: released(run), 120, started)
        assert started[0].stop() == 0
    assert judge(run).require().releases > 100


def require_copy(kafka: str, copied: str, rows: list[tuple[int, bytes | None, int]]) -> None:
    """Each record once, with its bytes and its stamp, and those of a source partition in their order."""
    found = read_all(kafka, copied)
    assert sorted((value or b"", stamp) for _, _, _, value, stamp, _ in found) == sorted(
        (value or b"", stamp) for _, value, stamp in rows
    )
    place = {(value or b"", stamp): (source, row) for row, (source, value, stamp) in enumerate(rows)}
    last: dict[tuple[int, int], int] = {}
    for partition, _, _, value, stamp, _ in found:
        source, row = place[value or b"", stamp]
        assert last.get((partition, source), -1) < row
        last[partition, source] = row


def released(run: Run) -> bool:
    try:
        ends = closed_through(run.read("sketches"))
    except LookupError:
        return False
    return len(ends) == run.partitions and min(ends.values()) >= START_MS + MINUTES * MINUTE_MS


def test_two_processes_share_the_copying(kafka, tmp_path):
    raw = make_topic(kafka, topic_name("raw"), SOURCES)
    run = Run(kafka, tmp_path)
    copied = topic_name("copied")
    rows = fill(run, raw, 2000)
    call = ("repartition", str(run.config(topic=copied)), "--from", raw, "--partitions", "3", "--operator", "")
    with command(tmp_path / "one.log", *call) as one, command(tmp_path / "two.log", *call) as two:
        wait_until(lambda: count_of(kafka, copied) >= len(rows), 60)
        for copy in (one, two):
            assert copy.process.poll() is None, copy.said
    require_copy(kafka, copied, rows)


def padded(event: Event) -> bytes:
    return event.value[:-1] + b',"pad":"%b"}' % (b"x" * 4000)


def test_a_partition_that_stands_is_waited_for_in_order_within_the_bound(kafka, tmp_path, monkeypatch):
    """An open transaction holds one of three partitions up; the others are not read on, and nothing overtakes it."""
    bound = 1 << 20
    monkeypatch.setattr("sfm_stream.workers.repartition._PAUSE_BYTES", bound)
    raw = make_topic(kafka, topic_name("raw"), 3)
    run = Run(kafka, tmp_path)
    copied = topic_name("copied")
    events = page_views(4500, MINUTES)
    rows = [(b"old", padded(event), event.arrival_ms, number % 3) for number, event in enumerate(events)]
    hostile = [
        (b"old", item_record(item, f"p{number % 8}"), START_MS + MINUTES * MINUTE_MS + number, number % 2)
        for number, item in enumerate(item for _, item in ITEMS.values() if len(item) < 2000)
    ]
    with KafkaProducer(
        bootstrap_servers=kafka, acks="all", transactional_id=topic_name("open"), transaction_timeout_ms=600_000
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        first = (b"old", padded(events[0])[:-1] + b" }", START_MS, 2)
        producer.send(raw, key=first[0], value=first[1], timestamp_ms=first[2], partition=first[3]).get(60)
        produce(kafka, raw, rows + hostile)
        service = open_repartition(load_config(run.config(topic=copied, room=1 << 20)), raw, 3)
        held: list[set[int]] = []
        holds = service.transport.hold
        monkeypatch.setattr(service.transport, "hold", lambda partitions: (held.append(partitions), holds(partitions)))
        most = 0

        def tick() -> int:
            nonlocal most
            service.tick(lambda: False)
            most = max(most, sum(source.size_bytes for source in service.worker.partitions.values()))
            return service.worker.moved

        try:
            wait_until(lambda: tick() or {0, 1} in held, 300, every_s=0)
            stood = [service.transport.position(partition) for partition in (0, 1)]
            for _ in range(20):
                assert tick() == 0, "nothing is copied that the standing partition may have to come before"
            assert [service.transport.position(partition) for partition in (0, 1)] == stood, "not read on"
            assert max(stood) < 1500
            producer.commit_transaction()
            wait_until(lambda: tick() == len(rows) + len(hostile) + 1, 300, every_s=0)
        finally:
            service.close()
    # A poll brings two partitions at most 2 MiB each, and as much of the third is in hand later.
    assert most < bound + 3 * (3 << 20) < sum(len(row[1]) for row in rows)
    found = read_all(kafka, copied)
    require_copy(kafka, copied, [(row[3], row[1], row[2]) for row in [first, *rows, *hostile]])
    stamps: dict[int, list[int]] = {}
    for partition, _, _, _, stamp, _ in found:
        stamps.setdefault(partition, []).append(stamp)
    assert len(stamps) == 3
    assert all(each == sorted(each) for each in stamps.values())
    page = {value: f"p{number % 8}" for number, (_, value, _, _) in enumerate(hostile)}
    placed = [(partition, key, page[value]) for partition, _, key, value, _, _ in found if value in page]
    assert len(placed) == len(hostile)
    assert all((partition, key) == (run.partition(its), its.encode()) for partition, key, its in placed)


def item_record(item: bytes, page: str) -> bytes:
    return b'{"user":%b,"at":%d,"page":"%b"}' % (item, START_MS, page.encode())


def test_without_it_ingest_stops_and_advises_it(kafka, tmp_path):
    run = Run(kafka, tmp_path, settings={"limits": "max_consecutive_invalid = 200"})
    # All of it in one partition: two thirds of the pages belong elsewhere, and in the end nothing but those comes.
    elsewhere = [e for e in page_views(3000, MINUTES) if run.partition(e.page) != 0]
    produce(kafka, run.topic, [(e.user.encode(), e.value, e.arrival_ms, 0) for e in elsewhere])
    file = str(run.config())
    with command(tmp_path / "ingest.log", "ingest", file, "--first-start", "--operator", "") as ingest:
        assert ingest.process.wait(PATIENCE_S) == 4, ingest.said
    [error] = [line for line in ingest.said.splitlines() if line.startswith("error: ")]
    assert "limits.max_consecutive_invalid = 200" in error
    assert "mostly key_misplaced" in error
    assert "sfm-stream repartition" in error
    assert read_all(kafka, f"{run.id}.outbox") == []


@pytest.mark.parametrize(
    ("source", "problem"), [("nobody-made-this", "there is no topic"), ("itself", "the same topic")]
)
def test_a_source_that_cannot_be_is_refused(kafka, tmp_path, source, problem):
    run = Run(kafka, tmp_path)
    source = run.topic if source == "itself" else source
    with command(tmp_path / "log", "repartition", str(run.config()), "--from", source, "--partitions", "3") as copy:
        assert copy.process.wait(PATIENCE_S) == 3
    assert f"error: --from: {problem}" in copy.said
