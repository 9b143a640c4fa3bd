"""On a broker that makes every topic it is asked for: none that was deleted comes back by the workers of a pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NoReturn

import pytest
from kafka import KafkaAdminClient
from support.kafka_cluster import KafkaUnavailable, find_cluster
from support.kafka_runs import Run, page_views, wait_until
from support.kafka_serving import Serving, serving
from support.kafka_topics import topic_name
from support.patience import PATIENCE_S

from sfm_stream.errors import BrokerAway
from sfm_stream.transport.kafka import topic_watch
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.types import Record

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory, without_kafka: Callable[[str], NoReturn]) -> Iterator[str]:
    """Bootstrap servers of such a broker."""
    try:
        cluster = find_cluster(tmp_path_factory.mktemp("eager"))
    except KafkaUnavailable as problem:
        without_kafka(str(problem))
    cluster.more = {"auto.create.topics.enable": "true"}
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def admin(eager: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=eager) as made:
        yield made


def test_no_client_makes_a_topic_by_asking_for_it(eager, admin):
    cluster, names = KafkaPythonCluster((eager,)), [topic_name("asked") for _ in range(4)]
    with closing(cluster.partition_reader()) as reader:
        assert not reader._consumer.partitions_for_topic(names[0])
    producer = cluster.producer(topic_name("id"))
    producer._producer.config["max_block_ms"] = 3000
    producer.init_transactions()
    producer.begin()
    producer.send(Record(names[1], 0, b"k", b"v", 1_000))
    with pytest.raises(BrokerAway):
        producer.flush()
    producer.discard()
    with closing(cluster.group_reader(topic_name("group"), names[2])) as member:
        for _ in range(5):
            member.poll(200, 1)
    with closing(cluster.admin()) as asking:
        assert asking.partition_count(names[3]) == 0
    assert not set(names) & set(admin.list_topics())


@pytest.mark.parametrize("gone", ["in", "outbox", "ledger", "sketches"])
def test_a_deleted_topic_ends_every_worker_and_stays_deleted(eager, admin, tmp_path, monkeypatch, gone):
    monkeypatch.setattr(topic_watch, "EVERY_S", 1.0)
    monkeypatch.setattr(topic_watch, "CONFIRM_S", 0.3)
    run = Run(eager, tmp_path)
    run.produce(page_views(300, 2))
    topic = run.topic if gone == "in" else f"{run.id}.{gone}"
    with serving(run.config(), "ingest", first=True) as ingest:
        ingest.await_joined()
        with serving(run.config(), "publish") as publish, serving(run.config(), "rollup") as rollup:
            workers = (ingest, publish, rollup)
            for each in workers:
                each.await_joined()
            wait_until(lambda: busy(ingest), PATIENCE_S)
            admin.delete_topics([topic])
            for each in workers:
                error = each.await_error()
                assert getattr(error, "exit_code", None) == 4, repr(error)
                assert f"topic {topic} was deleted" in str(error)
    assert topic not in admin.list_topics()


def busy(ingest: Serving) -> bool:
    return ingest.services[0].observed.published > 0


def published(run: Run, admin: KafkaAdminClient) -> bool:
    """Whether anything is; who asks for a topic here that is not there makes it."""
    return f"{run.id}.sketches" in admin.list_topics() and bool(run.read("sketches"))


def test_the_command_ends_with_code_4(eager, admin, tmp_path):
    """As an operator runs it, looking as often as it does."""
    run = Run(eager, tmp_path)
    run.produce(page_views(300, 2))
    log = tmp_path / "ingest.log"
    call = [sys.executable, "-m", "sfm_stream.cli", "ingest", str(run.config()), "--first-start", "--operator", ""]
    with log.open("wb") as out:
        process = subprocess.Popen(call, stdout=out, stderr=out, env=os.environ)
    try:
        wait_until(lambda: process.poll() is not None or published(run, admin), PATIENCE_S)
        admin.delete_topics([run.topic])
        assert process.wait(PATIENCE_S) == 4, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert f"error: topic {run.topic} was deleted" in log.read_text()
    assert run.topic not in admin.list_topics()
