"""A model of Kafka in memory: the second implementation of Cluster, over a FakeBroker.

Every request to a broker goes through a Host, one call each: it may fail it, lose its answer, delay it, let others go
first, or end the process there. What fails is an error of kafka-python, and is translated as the real one is.

What is taken from kafka-python 3.0.12 on purpose: a join goes on between polls; its generation is visible before the
partitions of that generation are; a member that is thrown out while it joins is not told that it lost its partitions;
and it claims them again when it comes back, under the real CooperativeStickyAssignor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import pytest
from support.fake_kafka_broker import FakeBroker, Place, Sent
from support.fake_kafka_consumer import MODEL, FakeGroupReader, FakePartitionReader
from support.fake_kafka_host import ClientHost, Host

from sfm_stream import clock
from sfm_stream.transport.kafka import transactions
from sfm_stream.transport.kafka.cluster_values import (
    Creation,
    CreationResult,
    GroupOffset,
    LogEndQuery,
    Membership,
    NewTopic,
    TopicPartition,
)
from sfm_stream.transport.kafka.kafka_python.translation import cluster_name, translated
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.types import Record

T = TypeVar("T")
DELIVERY_S = 60.0


@dataclass(frozen=True)
class FakeCluster:
    """A Cluster. host: of its clients; without one nothing happens to them."""

    session_ms: int = 30_000
    transaction_ms: int = 30_000
    broker: FakeBroker = field(default_factory=FakeBroker)
    host: ClientHost | None = None

    @property
    def _host(self) -> ClientHost:
        return self.host or Host(self.broker)

    @property
    def name(self) -> str:
        return cluster_name(MODEL)

    def group_reader(self, group: str, topic: str) -> FakeGroupReader:
        return FakeGroupReader(self.broker, self._host, group, topic, self.session_ms / 1000)

    def partition_reader(self) -> FakePartitionReader:
        return FakePartitionReader(self.broker, self._host)

    def producer(self, transactional_id: str) -> FakeProducer:
        return FakeProducer(self.broker, self._host, transactional_id, self.transaction_ms / 1000)

    def admin(self) -> FakeAdmin:
        return FakeAdmin(self.broker, self._host)


def run_on(cluster: Any, patch: pytest.MonkeyPatch) -> None:
    """The package goes by the clock of the cluster, and runs its transactions in the calling thread."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sfm_stream.") and module is not clock:
            for asked in ("now_ms", "monotonic_s"):
                if getattr(module, asked, None) is getattr(clock, asked):
                    patch.setattr(module, asked, getattr(cluster, asked))
    patch.setattr(transactions, "_watched", lambda work, patience_s: work())


class FakeProducer:
    """A Producer. An error is final but for one: offsets of a stale member leave a transaction that can be aborted."""

    def __init__(self, broker: FakeBroker, host: ClientHost, transactional_id: str, timeout_s: float) -> None:
        self._broker, self._host, self._name, self._timeout_s = broker, host, transactional_id, timeout_s
        self._id = (-1, -1)
        self._state = "new"
        """new, ready, open or failed."""
        self._abortable = self._started = False
        self._buffer: list[tuple[Place, Sent]] = []
        self._failed: kafka_errors.KafkaError | None = None
        """Why a record of this transaction was not written."""

    @translated(MODEL)
    def init_transactions(self) -> None:
        def attempt() -> bool:
            known = self._broker.init_producer(self._name, self._timeout_s)
            if known is not None:
                self._id, self._state = (known.producer, known.epoch), "ready"
            return known is not None

        while not self._host.call("init", attempt):
            self._host.wait(0.1)

    @translated(MODEL)
    def begin(self) -> None:
        self._require("ready")
        self._state, self._started, self._failed = "open", False, None

    @translated(MODEL)
    def send(self, record: Record) -> None:
        self._require("open")
        place = (record.topic, record.partition)
        self._buffer.append((place, (record.key, record.value, record.timestamp_ms)))

    @translated(MODEL)
    def flush(self) -> None:
        self._flush()
        if self._failed is not None:
            raise self._failed

    @translated(MODEL)
    def send_offsets(self, offsets: Mapping[TopicPartition, GroupOffset], membership: Membership) -> None:
        self._require("open")
        self._add(None, membership.group)
        try:
            self._request(
                "offsets",
                lambda: self._broker.commit_offsets(*self._me, membership.group, dict(offsets), membership),
            )
        except kafka_errors.CommitFailedError:
            self._abortable = True
            raise

    @translated(MODEL)
    def commit(self) -> None:
        self._flush()
        self._require("open")
        self._end(True)

    @translated(MODEL)
    def abort(self) -> None:
        self._buffer = []
        if not self._abortable:
            self._require("open")
        self._end(False)

    def discard(self) -> None:
        self._state = "failed"

    @property
    def _me(self) -> tuple[str, int, int]:
        return (self._name, *self._id)

    def _require(self, state: str) -> None:
        if self._state != state:
            raise kafka_errors.KafkaError(f"cannot do that: the producer is {self._state}")

    def _flush(self) -> None:
        """Send what is buffered, a request for each partition. What fails is noted."""
        buffer, self._buffer = self._buffer, []
        for place in dict.fromkeys(place for place, _ in buffer):
            records = [sent for at, sent in buffer if at == place]
            try:
                self._require("open")
                self._add(place, None)
                end = self._request("produce", partial(self._broker.produce, *self._me, place, records))
                self._await_replicas(place, end)
            except kafka_errors.KafkaError as error:
                self._failed = self._failed or error

    def _add(self, place: Place | None, group: str | None) -> None:
        while not self._request("add", lambda: self._broker.add_to_transaction(*self._me, place, group)):
            self._host.wait(0.02)
        self._started = True

    def _await_replicas(self, place: Place, end: int) -> None:
        """acks=all. Raises KafkaTimeoutError, as the client does when nobody answers for so long."""
        log, until_s = self._broker.log(place), self._broker.monotonic_s() + DELIVERY_S
        while log.high < end:
            if self._broker.monotonic_s() > until_s:
                self._state = "failed"
                raise kafka_errors.KafkaTimeoutError(f"{place}: not written by all replicas in sync")
            self._host.wait(0.5)

    def _end(self, commit: bool) -> None:
        if self._started:
            self._request("end", lambda: self._broker.end_transaction(*self._me, commit))
        self._state, self._abortable = "ready", False

    def _request(self, name: str, effect: Callable[[], T]) -> T:
        try:
            return self._host.call(name, effect)
        except kafka_errors.KafkaError:
            self._state = "failed"
            raise


class FakeAdmin:
    """An Admin."""

    def __init__(self, broker: FakeBroker, host: ClientHost) -> None:
        self._broker, self._host = broker, host

    @translated(MODEL)
    def partition_count(self, topic: str) -> int:
        return self._host.call("metadata", lambda: len(self._broker.topics.get(topic, [])))

    @translated(MODEL)
    def existing(self, topics: Iterable[str]) -> set[str]:
        return self._host.call("metadata", lambda: {topic for topic in topics if topic in self._broker.topics})

    @translated(MODEL)
    def facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        known = self._broker.facts
        return self._host.call("metadata", lambda: {topic: known[topic] for topic in topics if topic in known})

    @translated(MODEL)
    def topics(self) -> list[str]:
        return self._host.call("metadata", lambda: list(self._broker.topics))

    @translated(MODEL)
    def create(self, topic: NewTopic) -> bool:
        return self._host.call("create", lambda: self._broker.make(topic))

    def create_all(self, topics: Sequence[NewTopic]) -> dict[str, CreationResult]:
        outcomes = {True: Creation.CREATED, False: Creation.EXISTS}
        return {topic.name: CreationResult(outcomes[self.create(topic)]) for topic in topics}

    def await_leaders(self, topics: Sequence[str]) -> None: ...

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._listed(topic, partitions, lambda partition: 0)

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        def end(partition: int) -> int:
            log = self._broker.log((topic, partition))
            return log.stable if stable else log.high

        return self._listed(topic, partitions, end)

    def offsets_since(self, topic: str, partitions: Iterable[int], since_ms: int) -> dict[int, int]:
        return self._listed(topic, partitions, lambda partition: self._first(topic, partition, since_ms)[0])

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        records = self._listed(topic, partitions, lambda partition: self._first(topic, partition, 0))
        return {partition: record for partition, record in records.items() if record[0] >= 0}

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        """Every replica in sync answers at once, or the request fails and nothing is told."""
        query = LogEndQuery(partitions)
        try:
            ends = self._host.call(
                "log end", lambda: {number: self._broker.log((topic, number)).end for number in query.why}
            )
        except kafka_errors.KafkaError as error:
            query.why = dict.fromkeys(query.why, f"the cluster says {type(error).__name__}")
        else:
            query.told, query.why = ends, {}
        query.over.set()
        return query

    @translated(MODEL)
    def group_members(self, group: str) -> int:
        return self._host.call("groups", lambda: len(self._broker.group(group).members))

    def close(self) -> None: ...

    @translated(MODEL)
    def _listed(self, topic: str, partitions: Iterable[int], answer: Callable[[int], T]) -> dict[int, T]:
        numbers = list(partitions)

        def answers() -> dict[int, T]:
            for number in numbers:
                self._broker.log((topic, number))
            return {number: answer(number) for number in numbers}

        return self._host.call("list", answers) if numbers else {}

    def _first(self, topic: str, partition: int, since_ms: int) -> tuple[int, int]:
        """(offset, time stamp) of the first record, control or not, stamped then or later; (-1, -1) without any."""
        log = self._broker.log((topic, partition))
        for entry in log.entries[: log.high]:
            if entry.timestamp >= since_ms:
                return entry.offset, entry.timestamp
        return -1, -1
