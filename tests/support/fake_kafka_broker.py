"""The broker's side of the model of Kafka: logs, transactions and the clock. Single-threaded, no I/O.

What it models: control markers, which the coordinator writes one after another once a transaction is decided; the last
stable offset and what read_committed hides; producer epochs, which initialising and time-outs raise; the time-out of
transactions; a replica that is away and still counts as in sync, so that the high watermark of a log stands. It does
not model leaders, retention or compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import kafka.errors as kafka_errors
import numpy as np
from numpy.typing import NDArray
from support.fake_kafka_groups import Group

from sfm_stream.transport.kafka.cluster_values import Membership, NewTopic
from sfm_stream.transport.kafka.topic_facts import CREATE_TIME, LOG_APPEND_TIME, TopicFacts
from sfm_stream.types import NO_TIME

Place = tuple[str, int]
"""Topic and partition."""
Sent = tuple[bytes | None, bytes | None, int]
"""Key, value, time stamp."""


@dataclass(slots=True)
class Entry:
    """One offset of a log. commit: of a control marker, what it says. batch: entries of one produce request.

    appended: whether the broker stamped it.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    producer: int = -1
    transactional: bool = False
    commit: bool | None = None
    aborted: bool = False
    batch: int = -1
    appended: bool = False

    @property
    def hidden(self) -> bool:
        """From a committed reader, or from any."""
        return self.aborted or self.commit is not None


class FakeBatch:
    """A LogBatch over some entries."""

    def __init__(self, partition: int, next_offset: int, entries: list[Entry]) -> None:
        self.partition, self.first, self.next_offset = partition, entries[0].offset, next_offset
        self._entries = entries
        self.timestamp_type = LOG_APPEND_TIME if entries[0].appended else CREATE_TIME

    @property
    def count(self) -> int:
        return len(self._entries)

    def offsets(self) -> NDArray[np.int64]:
        return np.array([entry.offset for entry in self._entries], np.int64)

    def arrivals(self) -> NDArray[np.int64]:
        return np.array([max(entry.timestamp, NO_TIME) for entry in self._entries], np.int64)

    def keys(self) -> list[bytes | None]:
        return [entry.key for entry in self._entries]

    def values(self) -> list[bytes | None]:
        return [entry.value for entry in self._entries]


class Log:
    """One partition."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.open: dict[int, int] = {}
        """Producer to the first offset of its open transaction."""
        self.epochs: dict[int, int] = {}
        self.held: tuple[int, float] | None = None
        """Where the high watermark stands, and until when: a replica in sync is away."""
        self._batches = 0

    @property
    def end(self) -> int:
        """The log end: behind everything that was appended."""
        return len(self.entries)

    @property
    def high(self) -> int:
        """The high watermark: behind everything that the replicas in sync have."""
        return self.end if self.held is None else self.held[0]

    @property
    def stable(self) -> int:
        return min([self.high, *self.open.values()])

    def hold(self, until_s: float) -> None:
        self.held = (self.high, until_s)

    def append(
        self, sent: Iterable[Sent], producer: int = -1, transactional: bool = False, appended_ms: int | None = None
    ) -> None:
        """appended_ms: where the broker stamps records, the time by its clock."""
        self._batches += 1
        if transactional:
            self.open.setdefault(producer, self.end)
        for key, value, sent_ms in sent:
            stamp_ms = sent_ms if appended_ms is None else appended_ms
            entry = Entry(self.end, key, value, stamp_ms, producer, transactional, batch=self._batches)
            entry.appended = appended_ms is not None
            self.entries.append(entry)

    def mark(self, producer: int, epoch: int, commit: bool, stamp_ms: int = 0) -> None:
        self.epochs[producer] = max(epoch, self.epochs.get(producer, -1))
        first = self.open.pop(producer, None)
        if first is not None and not commit:
            for entry in self.entries[first:]:
                entry.aborted |= entry.producer == producer and entry.transactional
        self._batches += 1
        self.entries.append(Entry(self.end, None, None, stamp_ms, producer, True, commit, batch=self._batches))

    def batches(self, partition: int, start: int, most: int) -> tuple[list[FakeBatch], int]:
        """(batches that a committed reader gets from `start` on, the position after them)."""
        found: list[FakeBatch] = []
        at, stop = start, self.stable
        while at < stop and len(found) < most:
            number, records = self.entries[at].batch, []
            while at < stop and self.entries[at].batch == number:
                records += [] if self.entries[at].hidden else [self.entries[at]]
                at += 1
            if records:
                found.append(FakeBatch(partition, at, records))
        while at < stop and self.entries[at].hidden:
            at += 1
        return found, at

    def values(self, *, committed: bool) -> list[Entry]:
        """Entries that carry a record, those of aborted and open transactions among them unless `committed`."""
        if not committed:
            return [entry for entry in self.entries[: self.high] if entry.commit is None]
        return [entry for entry in self.entries[: self.stable] if not entry.hidden]


@dataclass(slots=True)
class Transaction:
    """The coordinator's record of one transactional id. state: empty, ongoing, or deciding, while markers are due."""

    producer: int
    epoch: int = 0
    state: str = "empty"
    last: bool | None = None
    """How the last transaction was decided."""
    places: list[Place] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    since_s: float = 0.0
    timeout_s: float = 0.0
    due: int = 0
    """Markers that are not written yet."""


class FakeBroker:
    """Topics, transactions, groups, and the clock they share."""

    def __init__(self, clock_ms: int = 1_767_225_600_000) -> None:
        self.topics: dict[str, list[Log]] = {}
        self.facts: dict[str, TopicFacts] = {}
        self.groups: dict[str, Group] = {}
        self.transactions: dict[str, Transaction] = {}
        self.markers: list[Callable[[], None]] = []
        """Writes of control markers that are due; they may be done in any order."""
        self.members: list[Any] = []
        """The client's side of every consumer in a group."""
        self.clock_s = clock_ms / 1000
        self.wall_ms: int | None = None
        """Where it is set, the clock on the wall stands still there; spans are still measured."""
        self.counts = {"committed": 0, "aborted": 0, "fenced": 0, "timed out": 0, "stale commits": 0}
        self._producers = 0

    # Clock

    def now_ms(self) -> int:
        return self.wall_ms if self.wall_ms is not None else int(self.clock_s * 1000)

    def monotonic_s(self) -> float:
        return self.clock_s

    def advance(self, seconds: float) -> None:
        """Time passes: consumers that are alive say so, and what is overdue times out."""
        self.clock_s += seconds
        for member in self.members:
            member.beat()
        for group in self.groups.values():
            group.expire(self.clock_s)
        for log in self.logs():
            if log.held is not None and log.held[1] <= self.clock_s:
                log.held = None
        for transaction in self.transactions.values():
            if transaction.state == "ongoing" and self.clock_s - transaction.since_s > transaction.timeout_s:
                self.counts["timed out"] += 1
                transaction.epoch += 1
                self._decide(transaction, False)

    # Topics

    def create(self, name: str, partitions: int) -> bool:
        return self.make(NewTopic(name, partitions, 1, {}))

    def make(self, topic: NewTopic) -> bool:
        """False where it is there already."""
        if topic.name in self.topics:
            return False
        self.topics[topic.name] = [Log() for _ in range(topic.partitions)]
        topic_id = str(UUID(int=len(self.topics)))
        self.facts[topic.name] = TopicFacts(topic.name, topic_id, topic.partitions, topic.replication, topic.configs)
        return True

    def log(self, place: Place) -> Log:
        try:
            return self.topics[place[0]][place[1]]
        except (KeyError, IndexError):
            raise kafka_errors.UnknownTopicOrPartitionError(str(place)) from None

    def logs(self) -> list[Log]:
        return [log for logs in self.topics.values() for log in logs]

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(lambda: self.clock_s))

    # Transactions

    def init_producer(self, name: str, timeout_s: float) -> Transaction | None:
        """The id with a new epoch, its last transaction decided; None while that is not in every log yet."""
        transaction = self.transactions.get(name)
        if transaction is None:
            self._producers += 1
            transaction = self.transactions[name] = Transaction(self._producers, epoch=-1)
        if transaction.state == "ongoing":
            self.counts["fenced"] += 1
            transaction.epoch += 1
            self._decide(transaction, False)
        if transaction.state == "deciding":
            return None
        transaction.epoch, transaction.timeout_s = transaction.epoch + 1, timeout_s
        transaction.state, transaction.last = "empty", None
        return transaction

    def add_to_transaction(self, name: str, producer: int, epoch: int, place: Place | None, group: str | None) -> bool:
        """Take a partition or a group into the transaction. False: the one before is not in every log yet."""
        transaction = self._owned(name, producer, epoch)
        if transaction.state == "deciding":
            return False
        if transaction.state == "empty":
            transaction.state, transaction.since_s = "ongoing", self.clock_s
        if place is not None and place not in transaction.places:
            self.log(place)
            transaction.places.append(place)
        if group is not None and group not in transaction.groups:
            transaction.groups.append(group)
        return True

    def produce(self, name: str, producer: int, epoch: int, place: Place, sent: list[Sent]) -> int:
        """Records of a transaction; the end behind them, which the high watermark has to reach before they count as
        written. The leader asks the coordinator whether the transaction is open (KIP-890, part 1)."""
        log = self.log(place)
        if epoch < log.epochs.get(producer, -1):
            raise kafka_errors.InvalidProducerEpochError(str(place))
        transaction = self._owned(name, producer, epoch)
        if transaction.state != "ongoing" or place not in transaction.places:
            raise kafka_errors.InvalidTxnStateError(str(place))
        log.append(sent, producer, transactional=True)
        return log.end

    def commit_offsets(
        self, name: str, producer: int, epoch: int, group: str, offsets: dict[Any, Any], membership: Membership
    ) -> None:
        """Offsets that become the group's when the transaction is committed. Raises CommitFailedError if stale."""
        transaction = self._owned(name, producer, epoch)
        if transaction.state != "ongoing" or group not in transaction.groups:
            raise kafka_errors.InvalidTxnStateError(group)
        if not self.group(group).knows(membership.member, membership.generation):
            self.counts["stale commits"] += 1
            raise kafka_errors.CommitFailedError("metadata mismatch")
        self.group(group).pending.setdefault(producer, {}).update(offsets)

    def end_transaction(self, name: str, producer: int, epoch: int, commit: bool) -> None:
        """Decide it. The answer does not wait for the markers."""
        transaction = self._owned(name, producer, epoch)
        if transaction.state == "ongoing":
            self._decide(transaction, commit)
        elif transaction.last is not commit:
            raise kafka_errors.InvalidTxnStateError(name)

    def write_markers(self) -> None:
        """All that are due."""
        while self.markers:
            self.markers.pop(0)()

    def _owned(self, name: str, producer: int, epoch: int) -> Transaction:
        transaction = self.transactions.get(name)
        if transaction is None or transaction.producer != producer:
            raise kafka_errors.InvalidProducerIdMappingError(name)
        if transaction.epoch != epoch:
            raise kafka_errors.ProducerFencedError(name)
        return transaction

    def _decide(self, transaction: Transaction, commit: bool) -> None:
        self.counts["committed" if commit else "aborted"] += 1
        transaction.state, transaction.last = "deciding", commit
        producer, epoch = transaction.producer, transaction.epoch
        writes: list[Callable[[], None]] = []
        for place in transaction.places:
            writes.append(partial(self._mark, place, producer, epoch, commit))
        for group in transaction.groups:
            writes.append(partial(self._settle, group, producer, commit))
        transaction.places, transaction.groups, transaction.due = [], [], len(writes)
        self.markers += [partial(self._written, transaction, write) for write in writes]
        if not writes:
            transaction.state = "empty"

    def _written(self, transaction: Transaction, write: Callable[[], None]) -> None:
        write()
        transaction.due -= 1
        if not transaction.due:
            transaction.state = "empty"

    def _mark(self, place: Place, producer: int, epoch: int, commit: bool) -> None:
        self.log(place).mark(producer, epoch, commit, self.now_ms())

    def _settle(self, group: str, producer: int, commit: bool) -> None:
        self.group(group).settle(producer, commit)
