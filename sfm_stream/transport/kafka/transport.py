"""The Transport over a Kafka cluster: a consumer group as input, transactions as output, a ledger of positions.

What holds it together: a step is one transaction, which carries its records, its ledger entries and the offsets of the
group under the generation in which the partition was assigned. A worker that lost the partition cannot commit it any
more; one that gets it reads the ledger only when nothing that was sent before is undecided.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from threading import Event
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import MemberState, OffsetAndMetadata

from sfm_stream.clock import now_ms
from sfm_stream.errors import BrokerAway, StateError, UsageError
from sfm_stream.transport.contract import InputEvent
from sfm_stream.transport.kafka.idle_ends import IdleEnds
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.kafka_python.producer import Transactions, UnknownOutcome
from sfm_stream.transport.kafka.kafka_python.rebalance import Rebalance
from sfm_stream.transport.kafka.kafka_python.topic_log import TopicLog
from sfm_stream.transport.kafka.ledger import Entry, Ledger, entry_key, entry_value
from sfm_stream.transport.kafka.route import Route
from sfm_stream.types import Assigned, Record, Revoked, Step

_log = logging.getLogger(__name__)

POLL_MS = 200
FIRST = "/first"
"""Ends the name of a transaction that wrote a ledger entry without a group offset: that of a first start."""
_MAX_BATCHES = 512
_LEDGER_PATIENCE_S = 0.5
_TRIES, _PAUSE_S = 10, 1.0


class KafkaTransport:
    """A Transport. Everything but poll() may be called between polls only; nothing here is shared with a thread.

    restored: positions that were not those of the consumer group, and taken from the ledger.
    """

    def __init__(self, connection: Connection, route: Route, log: TopicLog) -> None:
        self._connection, self._route, self._log = connection, route, log
        self._ledger = Ledger(log, route.ledger)
        self._partitions = log.partitions(route.source)
        if not self._partitions:
            raise StateError(f"topic {route.source} does not exist")
        instance = f"{socket.gethostname()}-{os.getpid()}-{now_ms()}"
        self._transactions = Transactions(connection, f"{route.group}-{instance}")
        self._rebalance = Rebalance()
        self._consumer: KafkaConsumer = connection.consumer(route.group)
        self._rebalance.consumer = self._consumer
        self._consumer.subscribe([route.source], listener=self._rebalance)
        # A leader of the group that has not heard of the topic yet would assign none of it, to anybody.
        _patiently(lambda: self._consumer.partitions_for_topic(route.source), connection)
        self._membership: Any = None
        self._told: set[int] = set()
        self._waiting: set[int] = set()
        self._next: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._idle = IdleEnds(log, route.source)
        self._sequence = 0
        self.restored = 0

    @property
    def partitions(self) -> int:
        """Raises StateError where partitions were added since the start."""
        with self._connection.speaking():
            found = self._consumer.partitions_for_topic(self._route.source)
        if found:  # a topic that is not there may be one that the broker has not heard of yet
            self._route.require_partitions(self._partitions, len(found))
        return self._partitions

    def poll(self) -> Sequence[InputEvent]:
        """As in the protocol. Raises BrokerError, and StateError where partitions were added, records are gone, the
        topic is a new one, or a batch was stamped by another clock than the route says.

        After an error what it found is lost: restart() makes it good.
        """
        events = self._found()
        for event in events:
            if isinstance(event, Assigned):
                self._told.add(event.partition)
            elif isinstance(event, Revoked):
                self._told.discard(event.partition)
        return events

    def restart(self) -> None:
        """Take up every partition anew at its committed position, once everything sent before is decided.

        For after a BrokerAway: it leaves open what is committed, and perhaps what was read.
        """
        self.hold(set(self._next))
        self._waiting |= set(self._next)
        self._next.clear()
        self._idle.forget()

    def _found(self) -> list[InputEvent]:
        with self._connection.speaking():
            found = self._consumer.poll(timeout_ms=POLL_MS, max_records=_MAX_BATCHES)
            membership = self._consumer.group_metadata()
        self._route.require_same(self._consumer)
        events: list[InputEvent] = [*self._changes()]
        if membership.generation_id < 0:
            self._membership = None
        elif membership.state == MemberState.STABLE:
            # While it joins, a member has a new generation before it is told what it lost in it.
            self._membership = membership
        for place, batches in found.items():
            if place.partition in self._next:
                self._route.require_clock(batches)
                events += batches
                self._next[place.partition] = batches[-1].next_offset
        events += self._idle.reached(self._next, self.position)
        return events

    def seek(self, partition: int, offset: int) -> None:
        if partition not in self._next:
            raise UsageError(f"partition {partition} is not assigned, so that nothing can be sought in it")
        place = self._place(partition)
        with self._connection.speaking():
            first = self._starts[partition]  # as it was at the assignment; the cluster is not asked again
            if offset < first:
                raise StateError(
                    f"topic {self._route.source}, partition {partition}: reading should go on at offset {offset}, the "
                    f"log begins at {first}: {first - offset} records are gone. Their windows cannot be counted any "
                    "more: raise pipeline.epoch and set window.start to a later window border"
                )
            self._consumer.seek(place, offset)
            self._consumer.resume(place)
        self._next[partition] = offset

    def hold(self, partitions: Set[int]) -> None:
        """As in the protocol: the client keeps what it has fetched of a paused partition, and fetches no more of it."""
        for place in self._consumer.assignment() & {self._place(partition) for partition in self._next}:
            (self._consumer.pause if place.partition in partitions else self._consumer.resume)(place)

    def commit(self, step: Step) -> bool:
        """As in the protocol; False also where this worker is no member of the group any more.

        Raises BrokerAway where the outcome cannot be found out now; then restart() has to be called.
        """
        if not step.publish and not step.commit:
            return True
        if self._membership is None:
            return False
        self._sequence += 1
        name = f"{self._transactions.transactional_id}/{self._sequence}"
        try:
            self._transactions.commit(self._records(step, name), self._offsets(step, name), self._membership)
        except UnknownOutcome as error:
            return self._settled(step, name, error)
        return True

    def close(self) -> None:
        """Leave the group; nothing that is not committed is."""
        self._transactions.close()
        self._consumer.close(autocommit=False, timeout_ms=3000)

    def entries(self, partition: int) -> dict[str, Entry]:
        """Positions of every worker in a partition, as they were at the last look."""
        return self._ledger.known(partition)

    @property
    def joined(self) -> bool:
        """Whether this worker is a member of its group; it may be so without any partition."""
        return self._membership is not None

    def ends(self) -> dict[int, int]:
        """High watermarks of the assigned partitions, of now: how far they could be read."""
        return self._log.ends(self._route.source, sorted(self._next), stable=False)

    def _changes(self) -> list[InputEvent]:
        """What the rebalances of the last poll mean, in their order; positions are looked up here, not in them."""
        for taken, partitions in self._rebalance.drain():
            for partition in partitions:
                self._waiting.discard(partition)
                self._next.pop(partition, None)
                self._idle.forget(partition)
                if taken:
                    self._waiting.add(partition)
        events: list[InputEvent] = [Revoked(partition) for partition in sorted(self._told - set(self._next))]
        if events or self._waiting:
            _ = self.partitions
        for partition, end in sorted(self._ledger_ends().items()):
            try:
                entry = self._ledger.entries(partition, _LEDGER_PATIENCE_S, end).get(self._route.worker)
                self._starts |= self._log.starts(self._route.source, [partition])
                self._compare(partition, entry)
            except BrokerAway as error:
                _log.info("partition %d waits for its position: %s", partition, error)
                continue
            self._waiting.discard(partition)
            events.append(self._take_up(partition, entry))
        return events

    def _ledger_ends(self) -> dict[int, int]:
        """Of the partitions that wait for their position; those that cannot be found out now go on waiting."""
        if not self._waiting:
            return {}
        try:
            ends = self._ledger.ends(self._waiting)
        except BrokerAway as error:
            ends, why = {}, str(error)
        else:
            why = "not all replicas in sync answer"
        if waiting := self._waiting - ends.keys():
            _log.info("partitions %s wait for the end of the ledger: %s", sorted(waiting), why)
        return ends

    def _take_up(self, partition: int, entry: Entry | None) -> Assigned:
        offset = self._starts[partition] if entry is None else entry.commit.offset
        self._next[partition] = offset
        self.seek(partition, offset)
        return Assigned(partition, None if entry is None else entry.commit)

    def _compare(self, partition: int, entry: Entry | None) -> None:
        """Say so where the group's offset is not the ledger's: it was lost, reset or expired. The ledger holds."""
        if entry is None or entry.transaction.endswith(FIRST):
            return
        with self._connection.speaking():
            group = self._consumer.committed(self._place(partition), metadata=True, timeout_ms=5000)
        if group is None or group.metadata != entry.transaction:
            self.restored += 1
            _log.warning(
                "topic %s, partition %d: the offset of group %s is %s; going on at %d, which the ledger holds",
                self._route.source,
                partition,
                self._route.group,
                "not there" if group is None else group.offset,
                entry.commit.offset,
            )

    def position(self, partition: int) -> int:
        """How far the partition is read: past control records too, which no batch shows."""
        with self._connection.speaking():
            position = self._consumer.position(self._place(partition), timeout_ms=1000)
        return int(position) if position is not None else self._next[partition]

    def _records(self, step: Step, name: str) -> list[Record]:
        """The ledger's entries first: whatever else of the transaction is in the log, its name is there before."""
        route, now = self._route, now_ms()
        entries = [
            Record(route.ledger, at.partition, entry_key(route.worker, at.partition), entry_value(at, name), now)
            for at in step.commit
        ]
        return entries + [replace(record, topic=route.topics[record.topic]) for record in step.publish]

    def _offsets(self, step: Step, name: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return {self._place(commit.partition): OffsetAndMetadata(commit.offset, name, -1) for commit in step.commit}

    def _settled(self, step: Step, name: str, error: UnknownOutcome) -> bool:
        """Whether a transaction of unknown outcome is committed, from the ledger, once its producer is renewed."""
        if not step.commit:
            raise error
        self._transactions.settle()
        patience_s = self._connection.transaction_ms / 1000 + 5
        entry = self._ledger.entries(step.commit[0].partition, patience_s).get(self._route.worker)
        done = entry is not None and entry.transaction == name
        _log.warning("the transaction was %s", "committed" if done else "not committed")
        return done

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._route.source, partition)


def _patiently(ask: Callable[[], object], connection: Connection) -> None:
    """Ask again where a broker is away: another one may know. Raises BrokerAway in the end."""
    for left in reversed(range(_TRIES)):
        try:
            with connection.speaking():
                ask()
                return
        except BrokerAway:
            if not left:
                raise
            Event().wait(_PAUSE_S)
