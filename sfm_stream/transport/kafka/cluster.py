"""The protocols of a Kafka cluster: all that this package asks of a client library.

Arguments and results are values of cluster_values.py, none is a class of the library. There are two implementations:
`kafka_python/`, over the client library, and a model in memory on which the tests explore schedules.
`tests/contract/test_cluster_contract.py` tests both alike.

A method that "asks nobody" answers from what the client knows already. All others raise only errors of this package:
BrokerAway where asking again may help, BrokerError where the cluster refuses for good, StateError where records that
had to be read are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from sfm_stream.transport.kafka.cluster_values import (
    CreationResult,
    GroupOffset,
    LogBatch,
    LogEndQuery,
    Membership,
    NewTopic,
    Rebalance,
    TopicPartition,
)
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.types import Record


class GroupReader(Protocol):
    """Reads the committed records of one topic as a member of a consumer group. It never chooses an offset by itself.

    A partition that the group assigns is paused: it gives no batch before seek() and resume().
    """

    def poll(self, wait_ms: int, max_batches: int) -> Mapping[int, Sequence[LogBatch]]:
        """Partition to its next batches. Waits up to wait_ms for them, and takes part in rebalances meanwhile."""
        ...

    def rebalances(self) -> list[Rebalance]:
        """The rebalances since the last call, in order. Asks nobody."""
        ...

    def membership(self) -> Membership:
        """The membership in the group as of now. Asks nobody."""
        ...

    def partition_count(self) -> int:
        """The number of partitions of the topic; 0 if the client does not know the topic."""
        ...

    def topic_id(self) -> str:
        """The id of the topic; "" if the client does not know it. Asks nobody."""
        ...

    def assigned(self) -> set[int]:
        """The partitions that the client has now. It may know of a rebalance that rebalances() has not returned yet."""
        ...

    def seek(self, partition: int, offset: int) -> None:
        """The next batch of the partition starts at this offset."""
        ...

    def pause(self, partition: int) -> None:
        """The partition gives no batch before resume(). What the client has fetched of it is kept."""
        ...

    def resume(self, partition: int) -> None: ...

    def position(self, partition: int) -> int | None:
        """The offset up to which the partition is read, past control records, which are in no batch; None: unknown."""
        ...

    def committed(self, partition: int) -> GroupOffset | None:
        """The committed offset of the group; None if there is none.

        Raises BrokerAway if a transaction that may change it stays open.
        """
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class PartitionReader(Protocol):
    """Reads committed records of any partition, without a group."""

    def fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> tuple[Sequence[LogBatch], int]:
        """(batches from `offset` on, the offset to read next). The latter is `offset` if nothing came within wait_ms.

        It lies behind control records and aborted ones too, which are in no batch.
        """
        ...

    def close(self) -> None: ...


class Producer(Protocol):
    """Writes in transactions, one after another, under one transactional id.

    After an error only discard() may be called: the producer does not know whether its transaction is committed.
    """

    def init_transactions(self) -> None:
        """To be called before the first transaction. It fences earlier producers of the id, whose calls then fail.

        On return the transaction that one of them may have left open is committed or aborted. May block for ever.
        """
        ...

    def begin(self) -> None: ...

    def send(self, record: Record) -> None:
        """Add a record to the transaction; it is sent before flush() or commit() returns. record.topic: a real name."""
        ...

    def flush(self) -> None:
        """On return every record that was sent is in the log of every replica in sync."""
        ...

    def send_offsets(self, offsets: Mapping[TopicPartition, GroupOffset], membership: Membership) -> None:
        """Add offsets of the group to the transaction. Raises if the membership is not of the group's generation."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def discard(self) -> None:
        """End the producer, whatever state it is in. Waits for nothing and raises nothing."""
        ...


class Admin(Protocol):
    """Asks about topics, offsets and groups, and creates topics."""

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if there is no such topic."""
        ...

    def existing(self, topics: Iterable[str]) -> set[str]:
        """Those of these topics that exist."""
        ...

    def facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        """Topic name to its facts, for topics that exist. Raises BrokerError also if settings are withheld."""
        ...

    def topics(self) -> list[str]:
        """The names of all topics that this user may see."""
        ...

    def create(self, topic: NewTopic) -> bool:
        """Create a topic, which has leaders on return. False: it exists already."""
        ...

    def create_all(self, topics: Sequence[NewTopic]) -> dict[str, CreationResult]:
        """Create topics; topic name to the result. A topic that was created may not have leaders yet."""
        ...

    def await_leaders(self, topics: Sequence[str]) -> None:
        """Wait until every partition of these topics has a leader. Raises BrokerAway if that takes too long."""
        ...

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Partition to the first offset that its log still has."""
        ...

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        """Partition to an end: its high watermark, or with `stable` its last stable offset.

        Committed records can be read up to the last stable offset. More may be appended: see ask_log_ends().
        """
        ...

    def offsets_since(self, topic: str, partitions: Iterable[int], since_ms: int) -> dict[int, int]:
        """Partition to the offset of its first record with a time stamp of since_ms or later; -1 if there is none.

        Control records count too; their time stamp is that of the commit.
        """
        ...

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition to (offset, time stamp in ms) of its first record; partitions without any are left out."""
        ...

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        """Ask for log ends, which lie behind everything that was appended. Waits for nothing and raises nothing."""
        ...

    def group_members(self, group: str) -> int:
        """The number of members of a consumer group; 0 if it does not exist. Raises BrokerAway if it is unknown now."""
        ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """Makes readers, producers and admins of one cluster. The caller closes them.

    name: the name of the cluster in error messages. transaction_ms: the brokers abort a transaction that is open for
    this long.
    """

    @property
    def name(self) -> str: ...

    @property
    def transaction_ms(self) -> int: ...

    def group_reader(self, group: str, topic: str) -> GroupReader:
        """A new member of the consumer group. It joins the group during its first polls."""
        ...

    def partition_reader(self) -> PartitionReader: ...

    def producer(self, transactional_id: str) -> Producer: ...

    def admin(self) -> Admin: ...
