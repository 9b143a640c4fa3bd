"""What the operator listener says of a running worker agrees with what the topics say."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.protocol.consumer import OffsetSpec
from prometheus_client.parser import text_string_to_metric_families
from support.kafka_runs import Event, Run, closed_through, wait_until
from support.patience import PATIENCE_S

pytestmark = pytest.mark.kafka
Series = dict[tuple[str, str], float]
"""(name, partition) to the value of the ingest worker, or of no worker."""


@contextmanager
def running(config: Path) -> Iterator[str]:
    """`sfm-stream ingest` as an operator starts it; its listener's address, once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    call = [sys.executable, "-m", "sfm_stream.cli", "ingest", str(config), "--first-start"]
    log = config.with_suffix(".log").open("wb")
    process = subprocess.Popen([*call, "--operator", f"127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        wait_until(lambda: status(f"http://127.0.0.1:{port}/ready") == 200, 60)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(PATIENCE_S) in (0, 143)
    finally:
        process.kill()
        log.close()


def status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)
    except OSError:
        return 0


def scrape(address: str) -> Series:
    with urllib.request.urlopen(f"{address}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("sfm_"), sample.labels.get("partition", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("worker", "ingest") == "ingest"
    }


def committed(run: Run) -> dict[int, int]:
    """Partition to the offset from which a successor of the ingest worker would read, from the ledger."""
    found = {}
    for partition, _, key, value, _, _ in run.read("ledger"):
        if key is not None and key.startswith(b"ingest/"):
            found[partition] = msgspec.json.decode(value or b"")[1]
    return found


def test_lag_hold_back_and_clock_delay_agree_with_the_topics(kafka, tmp_path):
    run = Run(kafka, tmp_path, settings={"grace": "10m"})
    now = int(time.time() * 1000)
    events = [Event(f"p{n % 8}", f"u{n}", now - 60_000 + n * 10, now - 60_000 + n * 10) for n in range(1000)]
    run.produce(events)
    places = [TopicPartition(run.topic, partition) for partition in range(run.partitions)]
    with running(run.config()) as address, KafkaAdminClient(bootstrap_servers=kafka) as admin:
        wait_until(lambda: scrape(address).get(("events_counted_total", "")) == 1000, 60)
        wait_until(lambda: all(scrape(address).get(("position_lag_records", str(p))) == 0 for p in range(3)), 30)
        wait_until(lambda: len(committed(run)) == 3, 30)
        ends = {
            place.partition: at.offset
            for place, at in admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST)).items()
        }

        def agree() -> bool:
            """The metrics of the last look with what the topics hold: soon after each commit, until the next one."""
            series, held, closed = scrape(address), committed(run), closed_through(run.read("outbox"))
            return all(
                series["hold_back_records", str(p)] == ends[p] - held[p] > 0
                and round(series["closed_through_timestamp_seconds", str(p)] * 1000) == closed[p]
                for p in range(run.partitions)
            )

        wait_until(agree, 60)
        series = scrape(address)
        for partition in range(run.partitions):
            last_ms = max(event.arrival_ms for event in run.events[partition])
            looked_ms = round(series["last_turn_timestamp_seconds", ""] * 1000)
            delay_ms = round(series["clock_delay_seconds", str(partition)] * 1000)
            assert looked_ms <= last_ms + delay_ms <= time.time() * 1000

        # Records of an open transaction are in the log and cannot be read yet: that is lag.
        with KafkaProducer(bootstrap_servers=kafka, transactional_id=run.id) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(50):
                producer.send(run.topic, b"{}", b"p1", partition=0, timestamp_ms=now + number)
            producer.flush()
            wait_until(lambda: scrape(address)["position_lag_records", "0"] == 50, 30)
            producer.abort_transaction()
        wait_until(lambda: scrape(address)["position_lag_records", "0"] == 0, 30)
        assert status(f"{address}/live") == 200
    said = (tmp_path / "app.log").read_text()
    assert "Traceback" not in said
    assert "u1" not in said
