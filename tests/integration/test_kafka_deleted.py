"""On a broker that makes every topic it is asked for: none that was deleted comes back by the workers of a pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaTimeoutError
from support.kafka_cluster import KafkaUnavailable, find_cluster
from support.kafka_runs import Run, page_views, wait_until
from support.kafka_serving import Serving, serving
from support.kafka_topics import topic_name
from support.patience import PATIENCE_S

from sfm_stream.transport.kafka import topic_watch
from sfm_stream.transport.kafka.kafka_python.client import Connection

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
    link, names = Connection((eager,)), [topic_name("asked") for _ in range(4)]
    with link.consumer() as reader, link.plain_producer() as plain:
        assert not reader.partitions_for_topic(names[0])
        plain.config["max_block_ms"] = 3000
        with pytest.raises(KafkaTimeoutError):
            plain.send(names[1], b"v").get(timeout=PATIENCE_S)
    with link.consumer(topic_name("group")) as member:
        member.subscribe([names[2]])
        for _ in range(5):
            member.poll(timeout_ms=200)
    with link.admin() as asking:
        asking.describe_topics([names[3]])
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
