"""A model of Kafka in memory: a Connection whose clients behave as those of kafka-python do, over a FakeCluster.

Only the methods that the package uses are there. Every request to a broker goes through a Host, one call each: it may
fail it, lose its answer, delay it, let others go first, or end the process there.

What is taken from kafka-python 3.0.12 on purpose: a join goes on between polls; its generation is visible before the
partitions of that generation are; a member that is thrown out while it joins is not told that it lost its partitions;
and it claims them again when it comes back, under the real CooperativeStickyAssignor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import pytest
from kafka import TopicPartition
from kafka.protocol.consumer import IsolationLevel, OffsetSpec
from kafka.structs import OffsetAndTimestamp
from support.fake_kafka_broker import FakeCluster, Place, Sent
from support.fake_kafka_consumer import FakeConsumer

from sfm_stream import clock
from sfm_stream.transport.kafka.kafka_python import producer
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.kafka_python.log_end import Question

T = TypeVar("T")
DELIVERY_S = 60.0


class Host:
    """Where clients run: a process that is never disturbed, on a cluster that does everything at once."""

    live = True

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def call(self, name: str, effect: Callable[[], T]) -> T:
        """One request to a broker."""
        result = effect()
        self._cluster.write_markers()
        return result

    def wait(self, seconds: float) -> None:
        """Nothing to do here for a while."""
        self._cluster.advance(seconds)
        self._cluster.write_markers()

    def fetches(self) -> int:
        """How many batches the next fetch brings at most."""
        return 500


@dataclass(frozen=True)
class FakeConnection(Connection):
    """As Connection. host: None for one that nothing happens to."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    host: Any = None

    def __post_init__(self) -> None:
        if self.host is None:
            object.__setattr__(self, "host", Host(self.cluster))

    def consumer(self, group: str | None = None) -> FakeConsumer:
        return FakeConsumer(self.cluster, self.host, group, self.session_ms / 1000)

    def producer(self, transactional_id: str) -> FakeProducer:
        return FakeProducer(self.cluster, self.host, transactional_id, self.transaction_ms / 1000)

    def plain_producer(self, compression: str | None = None) -> PlainProducer:
        return PlainProducer(self.cluster)

    def admin(self) -> FakeAdmin:
        return FakeAdmin(self.cluster, self.host)


def run_on(cluster: Any, patch: pytest.MonkeyPatch) -> None:
    """The package goes by the clock of the cluster, and runs its transactions in the calling thread."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sfm_stream.") and module is not clock:
            for asked in ("now_ms", "monotonic_s"):
                if getattr(module, asked, None) is getattr(clock, asked):
                    patch.setattr(module, asked, getattr(cluster, asked))
    patch.setattr(producer, "_watched", lambda work, patience_s: work())


class FakeFuture:
    """Of one record."""

    def __init__(self) -> None:
        self.error: Exception | None = kafka_errors.KafkaTimeoutError("not sent")

    def get(self, timeout: float | None = None) -> None:
        if self.error is not None:
            raise self.error


class FakeProducer:
    """A transactional producer. An error is final but for one: offsets of a stale member leave it to be aborted."""

    def __init__(self, cluster: FakeCluster, host: Any, transactional_id: str, timeout_s: float) -> None:
        self._cluster, self._host, self._name, self._timeout_s = cluster, host, transactional_id, timeout_s
        self._id = (-1, -1)
        self._state = "new"
        """new, ready, open or failed."""
        self._abortable = self._started = False
        self._buffer: list[tuple[Place, Sent, FakeFuture]] = []
        self._sender = SimpleNamespace(force_close=lambda: None)

    def init_transactions(self) -> None:
        def attempt() -> bool:
            found = self._cluster.init_producer(self._name, self._timeout_s)
            if found is not None:
                self._id, self._state = (found.producer, found.epoch), "ready"
            return found is not None

        while not self._host.call("init", attempt):
            self._host.wait(0.1)

    def begin_transaction(self) -> None:
        self._require("ready")
        self._state, self._started = "open", False

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = 0,
        timestamp_ms: int | None = None,
    ) -> FakeFuture:
        self._require("open")
        future = FakeFuture()
        stamp = self._cluster.now_ms() if timestamp_ms is None else timestamp_ms
        self._buffer.append(((topic, partition), (key, value, stamp), future))
        return future

    def flush(self) -> None:
        """Send what is buffered, a request for each partition. Errors are those of the futures."""
        buffer, self._buffer = self._buffer, []
        for place in dict.fromkeys(place for place, _, _ in buffer):
            mine = [(sent, future) for at, sent, future in buffer if at == place]
            records = [sent for sent, _ in mine]
            try:
                self._require("open")
                self._add(place, None)
                end = self._request(
                    "produce", lambda place=place, sent=records: self._cluster.produce(*self._me, place, sent)
                )
                self._await_replicas(place, end)
            except kafka_errors.KafkaError as error:
                for _, future in mine:
                    future.error = error
                continue
            for _, future in mine:
                future.error = None

    def send_offsets_to_transaction(self, offsets: dict[Any, Any], membership: Any) -> None:
        self._require("open")
        self._add(None, membership.group_id)
        try:
            self._request(
                "offsets",
                lambda: self._cluster.commit_offsets(*self._me, membership.group_id, offsets, membership),
            )
        except kafka_errors.CommitFailedError:
            self._abortable = True
            raise

    def commit_transaction(self) -> None:
        self.flush()
        self._require("open")
        self._end(True)

    def abort_transaction(self) -> None:
        self._buffer = []
        if not self._abortable:
            self._require("open")
        self._end(False)

    def close(self, timeout: float | None = None) -> None:
        self._state = "failed"

    @property
    def _me(self) -> tuple[str, int, int]:
        return (self._name, *self._id)

    def _require(self, state: str) -> None:
        if self._state != state:
            raise kafka_errors.KafkaError(f"cannot do that: the producer is {self._state}")

    def _add(self, place: Place | None, group: str | None) -> None:
        while not self._request("add", lambda: self._cluster.add_to_transaction(*self._me, place, group)):
            self._host.wait(0.02)
        self._started = True

    def _await_replicas(self, place: Place, end: int) -> None:
        """acks=all. Raises KafkaTimeoutError, as the client does when nobody answers for so long."""
        log, until_s = self._cluster.log(place), self._cluster.monotonic_s() + DELIVERY_S
        while log.high < end:
            if self._cluster.monotonic_s() > until_s:
                self._state = "failed"
                raise kafka_errors.KafkaTimeoutError(f"{place}: not written by all replicas in sync")
            self._host.wait(0.5)

    def _end(self, commit: bool) -> None:
        if self._started:
            self._request("end", lambda: self._cluster.end_transaction(*self._me, commit))
        self._state, self._abortable = "ready", False

    def _request(self, name: str, effect: Callable[[], T]) -> T:
        try:
            return self._host.call(name, effect)
        except kafka_errors.KafkaError:
            self._state = "failed"
            raise


class PlainProducer:
    """Loads an input: each flush is a batch."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster, self._buffer = cluster, {}

    def send(self, topic: str, value: bytes, key: bytes, partition: int, timestamp_ms: int) -> None:
        self._buffer.setdefault((topic, partition), []).append((key, value, timestamp_ms))

    def flush(self) -> None:
        for place, sent in self._buffer.items():
            self._cluster.log(place).append(sent)
        self._buffer = {}

    def close(self) -> None:
        self.flush()


class FakeAdmin:
    def __init__(self, cluster: FakeCluster, host: Any) -> None:
        self._cluster, self._host = cluster, host

    def create_topics(self, topics: dict[str, dict[str, Any]], wait_for_metadata: bool = False) -> None:
        for name, wanted in topics.items():
            self._cluster.create(name, wanted["num_partitions"])

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        missing = kafka_errors.UnknownTopicOrPartitionError.errno

        def effect() -> list[dict[str, Any]]:
            return [
                {
                    "name": topic,
                    "error_code": 0 if topic in self._cluster.topics else missing,
                    "partitions": self._cluster.topics.get(topic, []),
                }
                for topic in topics
            ]

        return self._host.call("metadata", effect)

    def describe_groups(self, groups: list[str]) -> dict[str, dict[str, Any]]:
        return self._host.call(
            "groups", lambda: {group: {"members": list(self._cluster.group(group).members)} for group in groups}
        )

    def list_partition_offsets(
        self, wanted: dict[TopicPartition, int], isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        return self._host.call(
            "list", lambda: {place: self._offset(place, spec, isolation) for place, spec in wanted.items()}
        )

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> Question:
        """Every replica in sync answers at once, or the request fails and nothing is told."""
        question = Question(topic, partitions)
        try:
            ends = self._host.call(
                "log end", lambda: {number: self._cluster.log((topic, number)).end for number in question.why}
            )
        except kafka_errors.KafkaError as error:
            question.fail(None, list(question.why), error)
        else:
            question.told, question.why = ends, {}
        question.over.set()
        return question

    def close(self) -> None: ...

    def _offset(self, place: TopicPartition, spec: int, isolation: IsolationLevel) -> OffsetAndTimestamp:
        log = self._cluster.log(place)
        end = log.stable if isolation == IsolationLevel.READ_COMMITTED else log.high
        if spec == OffsetSpec.LATEST:
            return OffsetAndTimestamp(end, -1, -1)
        if spec == OffsetSpec.EARLIEST:
            return OffsetAndTimestamp(0, -1, -1)
        for entry in log.entries[:end]:
            if entry.commit is None and entry.timestamp >= spec:
                return OffsetAndTimestamp(entry.offset, entry.timestamp, -1)
        return OffsetAndTimestamp(-1, -1, -1)
