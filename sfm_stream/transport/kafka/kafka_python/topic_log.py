"""Topics read without a group: committed records between two offsets, and where a partition begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event

import kafka.errors as kafka_errors
from kafka import TopicPartition
from kafka.consumer import KafkaConsumer
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from sfm_stream.clock import monotonic_s
from sfm_stream.errors import BrokerAway
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.kafka_python.log_end import LogEndAdmin, Question
from sfm_stream.types import StoredRecord

_POLL_MS = 250
_PATIENCE_S = 60.0
_ANSWERED_S = 3.0
"""How long log ends are waited for; a worker that waits does not see a signal."""
_PAUSE_S = 1.0
"""Before log ends are asked for anew that were not told."""


class TopicLog:
    """A TopicReader over a cluster. topics: real names of the topics of the pipeline; others go by their own."""

    def __init__(self, connection: Connection, topics: dict[str, str] | None = None) -> None:
        self._connection, self._topics = connection, topics or {}
        self._admin: LogEndAdmin = connection.admin()
        self._consumer: KafkaConsumer = connection.consumer()

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        """Committed records up to the last stable offset of now, partition by partition.

        offset: of the first record to give. since_ms: records stamped earlier may be left out, where the broker's
        time index allows it. patience_s: more than 0: up to the log end of now, which is behind everything that was
        committed before the call; raises BrokerAway where some of it is still undecided after this time.
        """
        name = self._topics.get(topic, topic)
        numbers = range(self.partitions(name)) if partition is None else [partition]
        if patience_s:
            stops = self.log_ends(name, numbers, patience_s)
            if missing := set(numbers) - stops.keys():
                raise BrokerAway(f"topic {name}: where partitions {sorted(missing)} end cannot be found out now")
        else:
            stops = self.ends(name, numbers, stable=True)
        starts = self.starts(name, numbers, since_ms)
        for number in numbers:
            start = max(offset, starts[number])
            for batch in self.batches(name, number, start, stops[number], patience_s or _PATIENCE_S):
                for at, arrival, key, value in zip(
                    batch.offsets().tolist(), batch.arrivals().tolist(), batch.keys(), batch.values(), strict=True
                ):
                    if at < stops[number]:
                        yield StoredRecord(at, number, key or b"", value or b"", arrival)

    def partitions(self, topic: str) -> int:
        """How many the topic has, 0 where there is none."""
        with self._connection.speaking():
            [found] = self._admin.describe_topics([topic])
            error = kafka_errors.for_code(found["error_code"])
            if error is kafka_errors.UnknownTopicOrPartitionError:
                return 0
            if error is not kafka_errors.NoError:
                raise error(f"topic {topic}")
        return len(found["partitions"])

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        """Partition to end offset: with stable that of committed reading, else the high watermark, of now.

        Neither says what was appended: see log_ends.
        """
        isolation = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(topic, partitions, OffsetSpec.LATEST, isolation)

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> Question:
        """Ask for log ends and go on at once."""
        return self._admin.ask_log_ends(topic, list(partitions))

    def log_ends(self, topic: str, partitions: Iterable[int], patience_s: float = 0) -> dict[int, int]:
        """Partition to log end: behind all that was acknowledged before the call, by whichever leader.

        Partitions are left out whose replicas in sync do not all answer, each asked as often as patience_s leave time
        for. Where a broker does not tell log ends at all it is the high watermark.
        """
        told = dict[int, int]()
        missing = set(partitions)
        for left in reversed(range(1 + int(patience_s / _ANSWERED_S))):
            told |= self._log_ends_now(topic, sorted(missing))
            missing -= told.keys()
            if not missing or not left:
                break
            Event().wait(_PAUSE_S)
        return told

    def _log_ends_now(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        question = self.ask_log_ends(topic, partitions)
        question.over.wait(_ANSWERED_S)
        refused = sorted(question.refused)
        return question.told.copy() | (self.ends(topic, refused, stable=False) if refused else {})

    def starts(self, topic: str, partitions: Iterable[int], since_ms: int = 0) -> dict[int, int]:
        """Partition to the first offset there is, or before which every record is stamped earlier than since_ms."""
        numbers = list(partitions)
        first = self._offsets(topic, numbers, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        if since_ms <= 0:
            return first
        # Asked before the look for a record: one that comes in between must not be passed over. The high watermark,
        # not the log end: the look goes no further, and what is above it has to be read.
        ends = self.ends(topic, numbers, stable=False)
        found = self._offsets(topic, numbers, since_ms, IsolationLevel.READ_UNCOMMITTED)
        reached = {number: found[number] if found.get(number, -1) >= 0 else ends[number] for number in numbers}
        return {number: max(first[number], reached[number]) for number in numbers}

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition to (offset, time stamp in ms) of its first record; partitions without any are left out."""
        places = {TopicPartition(topic, number): 0 for number in partitions}
        with self._connection.speaking():
            found = self._admin.list_partition_offsets(places, IsolationLevel.READ_UNCOMMITTED)
        return {place.partition: (at.offset, at.timestamp) for place, at in found.items() if at.offset >= 0}

    def group_members(self, group: str) -> int:
        """How many members a consumer group has now; 0 for one that does not exist.

        Raises BrokerAway where its coordinator cannot say.
        """
        with self._connection.speaking():
            found = self._admin.describe_groups([group])[group]
        if found["error"] and kafka_errors.GroupIdNotFoundError.__name__ not in found["error"]:
            raise BrokerAway(f"group {group}: its members are not known: {found['error']}")
        return len(found["members"])

    def batches(
        self, topic: str, partition: int, start: int, stop: int, patience_s: float = _PATIENCE_S
    ) -> Iterator[KafkaBatch]:
        """Batches from `start` on until everything before `stop` is read.

        Raises BrokerAway where nothing comes for patience_s: a leader is missing, or a transaction stays open.
        """
        at, waited_since = start, monotonic_s()
        while at < stop:
            found, reached = self._page(TopicPartition(topic, partition), at)
            yield from found
            if reached > at:
                at, waited_since = reached, monotonic_s()
            elif monotonic_s() - waited_since > patience_s:
                raise BrokerAway(
                    f"topic {topic}, partition {partition}: nothing can be read from offset {at} on, though it "
                    f"should reach {stop}; a broker is away, or a transaction is still open"
                )

    def close(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=1000)
        self._admin.close()

    def _page(self, place: TopicPartition, at: int) -> tuple[list[KafkaBatch], int]:
        """(what one poll brings, the offset after it)."""
        consumer = self._consumer
        with self._connection.speaking():
            if consumer.assignment() != {place}:
                consumer.assign([place])
                consumer.seek(place, at)
            elif consumer.position(place) != at:
                consumer.seek(place, at)
            found = consumer.poll(timeout_ms=_POLL_MS).get(place, [])
            return found, consumer.position(place)

    def _offsets(self, topic: str, partitions: Iterable[int], spec: int, isolation: IsolationLevel) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in partitions}
        if not wanted:
            return {}
        with self._connection.speaking():
            found = self._admin.list_partition_offsets(wanted, isolation)
        return {place.partition: answer.offset for place, answer in found.items()}
