"""What is asked of a Kafka cluster: the one view that all of this package has of a client library.

The values that cross are those of cluster_values.py. There are two implementations: `kafka_python/`, over the client
library, and the model in memory on which the tests explore schedules. `tests/contract/` holds both to the same words.

Every method that asks the cluster raises only errors of this package: BrokerAway where asking again may help,
BrokerError where the cluster refuses for good, StateError where records that had to be read are gone.
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
    """Reads one topic of committed records as a member of a consumer group. It never chooses a position by itself.

    A partition that the group has given brings nothing until it is sought and resumed.
    """

    def poll(self, wait_ms: int, max_batches: int) -> Mapping[int, Sequence[LogBatch]]:
        """Partition to its next batches. Waits up to wait_ms for some; takes part in what the group does."""
        ...

    def rebalances(self) -> list[Rebalance]:
        """Those since the last call, in order. Asks nobody."""
        ...

    def membership(self) -> Membership:
        """As it is now. Asks nobody."""
        ...

    def partition_count(self) -> int:
        """Of the topic, as the client knows it; 0 where it has not heard of the topic."""
        ...

    def topic_id(self) -> str:
        """Of the topic, as the client knows it; "" where it does not. Asks nobody."""
        ...

    def assigned(self) -> set[int]:
        """Partitions that the client takes for given to it now: a rebalance may be ahead of what poll() has told."""
        ...

    def seek(self, partition: int, offset: int) -> None:
        """The next batch of the partition starts at this offset."""
        ...

    def pause(self, partition: int) -> None:
        """It brings nothing until it is resumed; what the client has fetched of it is kept."""
        ...

    def resume(self, partition: int) -> None: ...

    def position(self, partition: int) -> int | None:
        """How far the partition is read, past control records too, which no batch shows; None where that is open."""
        ...

    def committed(self, partition: int) -> GroupOffset | None:
        """The group's; None without any. Raises BrokerAway where a transaction that may change it stays open."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class PartitionReader(Protocol):
    """Reads committed records of any partition, without a group."""

    def fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> tuple[Sequence[LogBatch], int]:
        """(batches from `offset` on, the offset after them). The offset is the old one where nothing came in wait_ms.

        It is past control and aborted records too, of which there is no batch.
        """
        ...

    def close(self) -> None: ...


class Producer(Protocol):
    """Writes in transactions, one after another, under one transactional id.

    After an error nothing may be called but discard(): whether its transaction is committed is not known here.
    """

    def init_transactions(self) -> None:
        """Needed before the first transaction: what an earlier producer of the id left open is decided after it.

        It ends that producer, whose calls fail from now on. May wait for ever.
        """
        ...

    def begin(self) -> None: ...

    def send(self, record: Record) -> None:
        """Send it some time before flush() or commit() returns. record.topic is the topic's real name."""
        ...

    def flush(self) -> None:
        """All that was sent is in the log, of every replica in sync, when this returns."""
        ...

    def send_offsets(self, offsets: Mapping[TopicPartition, GroupOffset], membership: Membership) -> None:
        """Make these the group's with the commit. Raises where the membership is not of the group's generation."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def discard(self) -> None:
        """End it, whatever state it is in. Waits for nothing and raises nothing."""
        ...


class Admin(Protocol):
    """Asks about topics, offsets and groups, and makes topics."""

    def partition_count(self, topic: str) -> int:
        """0 where there is no such topic."""
        ...

    def existing(self, topics: Iterable[str]) -> set[str]:
        """Those of these that exist."""
        ...

    def facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        """By name; topics that do not exist are left out. Raises BrokerError also where settings are withheld."""
        ...

    def topics(self) -> list[str]:
        """Names of all that this user may see."""
        ...

    def create(self, topic: NewTopic) -> bool:
        """Whether it was made; False where it is there already. It has leaders on return."""
        ...

    def create_all(self, topics: Sequence[NewTopic]) -> dict[str, CreationResult]:
        """By name. A topic that was made may not have leaders yet."""
        ...

    def await_leaders(self, topics: Sequence[str]) -> None:
        """Until every partition of these has one. Raises BrokerAway."""
        ...

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Partition to the first offset that its log still has."""
        ...

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        """Partition to its end: with stable the last stable offset, up to which committed records can be read; else
        the high watermark. What was appended may reach further: see ask_log_ends()."""
        ...

    def offsets_since(self, topic: str, partitions: Iterable[int], since_ms: int) -> dict[int, int]:
        """Partition to the offset of its first record that is stamped since_ms or later; -1 where there is none.

        Control records count, which carry the time of their commit.
        """
        ...

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition to (offset, time stamp in ms) of its first record; partitions without any are left out."""
        ...

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        """Ask for log ends, behind all that was appended, and go on at once. Raises nothing."""
        ...

    def group_members(self, group: str) -> int:
        """How many the consumer group has now; 0 for one that does not exist. Raises BrokerAway where that is open."""
        ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """Makes what speaks to a cluster; each is closed by whoever asked for it.

    name: of the cluster, as the first words of an error. transaction_ms: a transaction that is open for this long is
    aborted.
    """

    @property
    def name(self) -> str: ...

    @property
    def transaction_ms(self) -> int: ...

    def group_reader(self, group: str, topic: str) -> GroupReader:
        """A new member of the group, which joins it in its first polls."""
        ...

    def partition_reader(self) -> PartitionReader: ...

    def producer(self, transactional_id: str) -> Producer: ...

    def admin(self) -> Admin: ...
