"""Records that are appended and not readable yet, on three real brokers: what a leader tells, and what is counted."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError
from support.kafka_cluster import Cluster
from support.kafka_oracle import judge
from support.kafka_runs import Event, Run, Worker, closed_through, wait_until, workers
from support.kafka_topics import make_topic, read_all, topic_name

from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.kafka_python.hooks.log_ends import ReplicaAnswers
from sfm_stream.transport.kafka.topic_log import TopicLog

pytestmark = pytest.mark.kafka
SIZE_MS, PAGES = 5_000, 9
PATIENCE_S = 180


@contextmanager
def producing(bootstrap: str, **options: Any) -> Iterator[KafkaProducer]:
    """acks=all; a broker that stands still is given up after some seconds."""
    options = {"request_timeout_ms": 5_000, "delivery_timeout_ms": 120_000, "linger_ms": 0} | options
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all", **options)
    try:
        yield producer
    finally:
        producer.close(timeout=5)


@contextmanager
def log_of(cluster: Cluster) -> Iterator[TopicLog]:
    log = TopicLog(KafkaPythonCluster(tuple(cluster.bootstrap.split(","))))
    try:
        yield log
    finally:
        log.close()


def leadership_of(log: TopicLog, topic: str) -> dict[str, Any]:
    """Leader, epoch and replicas in sync of partition 0."""
    [found] = log._admin._client.describe_topics([topic])
    return dict(found["partitions"][0])


def settled(ask: Callable[[], ReplicaAnswers], done: Callable[[ReplicaAnswers], bool]) -> ReplicaAnswers:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answers = ask()
        answers.over.wait(2)
        if done(answers):
            return answers
        assert time.monotonic() < deadline, (answers.told, answers.refused, answers.why)
        time.sleep(0.2)


def test_the_leader_tells_the_debugging_replica_what_it_has_appended(kafka_three: Cluster) -> None:
    """And replicas answer for the leader's epoch only: kafka_python/hooks/log_ends.py builds on that."""
    topic = make_topic(kafka_three.bootstrap, topic_name("log-end"))
    with producing(kafka_three.bootstrap) as producer, log_of(kafka_three) as log:
        for _ in range(5):
            producer.send(topic, b"read", partition=0).get(timeout=PATIENCE_S)
        leadership = leadership_of(log, topic)
        leader, epoch = leadership["leader_id"], leadership["leader_epoch"]
        answers = settled(lambda: log.ask_log_ends(topic, [0]), lambda q: bool(q.told))
        assert answers.told == {0: 5}
        assert answers._ends[0].keys() == set(kafka_three.brokers)

        def of_epoch(wanted: int) -> str:
            asked, client = ReplicaAnswers([0]), log._admin._client
            asked._leaderships = answers._leaderships
            client._manager.run(client._ask, topic, asked, leader, {0: wanted})
            return asked.why[0]

        assert "UnknownLeaderEpoch" in of_epoch(epoch + 1)
        frozen = next(broker for broker in leadership["isr_nodes"] if broker != leader)
        kafka_three.pause(frozen)
        futures = [producer.send(topic, b"appended", partition=0) for _ in range(7)]
        # The leader has them, nobody can read them, and nothing is told: the frozen one has not said whom it follows.
        answers = settled(lambda: log.ask_log_ends(topic, [0]), lambda q: q._ends[0].get(leader) == 12)
        if frozen in leadership_of(log, topic)["isr_nodes"]:
            assert log.ends(topic, [0], stable=False) == {0: 5}
            assert not answers.told
        for future in futures:
            future.get(timeout=PATIENCE_S)
        answers = settled(lambda: log.ask_log_ends(topic, [0]), lambda q: bool(q.told))
        assert answers.told == log.ends(topic, [0], stable=False) == {0: 12}
        kafka_three.resume(frozen)
        kafka_three.await_brokers()
        kafka_three.pause(leader)
        answers = settled(lambda: log.ask_log_ends(topic, [0]), lambda q: bool(q.told))
        assert answers._leaderships[0].epoch > epoch
        kafka_three.resume(leader)
        kafka_three.await_brokers()
        settled(lambda: log.ask_log_ends(topic, [0]), lambda q: bool(q.told))
        leader = leadership_of(log, topic)["leader_id"]
        assert "FencedLeaderEpoch" in of_epoch(epoch)


class Stream(threading.Thread):
    """Events, one after the other to each partition, each of another user. acked: those that were acknowledged."""

    def __init__(self, run: Run) -> None:
        super().__init__(daemon=True)
        self.run_, self.acked, self.ended = run, [], threading.Event()
        self.failed = 0
        self.start()

    def run(self) -> None:
        with producing(self.run_.bootstrap) as producer:
            for number in itertools.count():
                if self.ended.wait(0.02):
                    break
                page, user = f"p{number % PAGES}", f"u{number}"
                try:
                    producer.send(
                        self.run_.topic,
                        json.dumps({"page": page, "user": user}).encode(),
                        key=page.encode(),
                        partition=self.run_.partition(page),
                    ).add_callback(lambda _, user=user: self.acked.append(user)).add_errback(self._lost)
                except KafkaError:
                    self.failed += 1
            producer.flush(timeout=PATIENCE_S)

    def _lost(self, error: BaseException) -> None:
        self.failed += 1

    def end(self) -> None:
        self.ended.set()
        self.join(2 * PATIENCE_S)
        assert not self.is_alive()


def until_just_before_a_border(rng: random.Random) -> None:
    """A window ends in 0.1 to 1.1 s from the return."""
    before_s = rng.uniform(0.1, 1.1)
    time.sleep((SIZE_MS / 1000 - before_s - time.time()) % (SIZE_MS / 1000))


def harms(cluster: Cluster) -> list[tuple[str, list[int]]]:
    """A broker that was away leads and coordinates nothing any more: from the second on a follower and no more."""
    first, second, third = cluster.brokers
    return [
        ("kill", [third]),
        ("kill", [third]),
        ("pause", [third]),
        ("pause", [third, first]),  # fewer than min.insync.replicas are left
        ("kill", [second]),  # which leads all partitions by then
    ]


def test_every_acknowledged_event_is_counted_whatever_becomes_of_a_broker(kafka_three: Cluster, tmp_path: Path) -> None:
    """Followers and leaders die or stand still shortly before a window ends, two of three at once as well.

    Windows may close 1 s after their end, and a broker that is away counts as in sync for 4 s. With the high watermark
    in place of the log end the second kill ends the worker, for events arrive before a time that it took to have
    passed; its successor finds windows closed without them.
    """
    begin_ms = (int(time.time() * 1000) // SIZE_MS + 4) * SIZE_MS
    run = Run(
        kafka_three.bootstrap,
        tmp_path,
        settings={
            "topic_config": {"message.timestamp.type": "LogAppendTime"},
            "timestamps": "log_append_time",
            "replication": 3,
            "session": "6s",
            "transaction": "10s",
            "size": "5s",
            "grace": "0s",
            "start": datetime.fromtimestamp(begin_ms / 1000, UTC).isoformat(),
            "time": "",
        },
    )
    rng = random.Random(10)
    with workers() as started:
        started.append(Worker(run.config(), first=True))

        def supervised(done: Callable[[], bool]) -> bool:
            if not started[-1].running:  # as a supervisor does: it may have started while a broker was away
                started.append(Worker(run.config(), first=True))
            return done()

        stream = Stream(run)
        wait_until(lambda: supervised(lambda: closed(run) > begin_ms), PATIENCE_S, started)
        for what, brokers in harms(kafka_three):
            until_just_before_a_border(rng)
            for broker in brokers:
                getattr(kafka_three, what)(broker)
            time.sleep(rng.uniform(5.5, 7))
            kafka_three.heal()
        stream.end()
        kept = read_all(run.bootstrap, run.topic)
        last_ms = max(record[4] for record in kept)
        wait_until(lambda: supervised(lambda: closed(run) > last_ms), PATIENCE_S, started)
        assert started[-1].stop() == 0, started[-1].said()
        assert not [said[-3000:] for said in (worker.said() for worker in started) if "StateError" in said]
    # An event counts at its time stamp, so none is ever late: what is in the log has to be counted, all of it.
    for partition, _, _, value, stamp_ms, _ in kept:
        event = json.loads(value or b"")
        if stamp_ms >= begin_ms:
            run.events[partition].append(Event(event["page"], event["user"], stamp_ms, stamp_ms))
    users = {json.loads(record[3] or b"")["user"] for record in kept}
    assert set(stream.acked) <= users, "Kafka itself lost acknowledged events"
    assert len(stream.acked) > 500, (len(stream.acked), stream.failed)
    judge(run, size_ms=SIZE_MS, start_ms=begin_ms).require()


def closed(run: Run) -> int:
    """Up to where every partition is closed in public; 0 while that cannot be told."""
    try:
        ends = closed_through(run.read("sketches"))
    except (LookupError, KafkaError, TimeoutError):
        return 0
    return min(ends.values()) if len(ends) == run.partitions else 0
