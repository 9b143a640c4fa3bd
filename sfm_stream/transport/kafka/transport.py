"""The Transport over a Kafka cluster: input from a consumer group, output in transactions, positions in a ledger.

A step is one transaction with its records, its ledger entries, and the offsets of the group under the generation in
which the partition was assigned. So a worker that lost the partition cannot commit any more. The worker that gets it
reads the ledger only when no transaction that was sent before is still open.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence, Set
from threading import Event

from sfm_stream.clock import now_ms
from sfm_stream.errors import BrokerAway, StateError, UsageError
from sfm_stream.transport.contract import InputEvent
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, TopicPartition
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.idle_ends import IdleEnds
from sfm_stream.transport.kafka.ledger import Ledger
from sfm_stream.transport.kafka.ledger_entry import Entry, entry_key, entry_value
from sfm_stream.transport.kafka.partitions import (
    TO_BE_REVOKED,
    WITHOUT_POSITION,
    Partitions,
    ReadingEvent,
    ReadingState,
)
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transactions import Transactions, UnknownOutcome
from sfm_stream.types import Assigned, Record, Revoked, Step

_log = logging.getLogger(__name__)

POLL_MS = 200
FIRST_START = "/first"
"""Ends the name of a transaction that wrote a ledger entry without a group offset: that of a first start."""
_MAX_BATCHES = 16
"""In one poll; the client joins many small batches of the log into one."""
_LEDGER_PATIENCE_S = 0.5
_TRIES, _PAUSE_S = 10, 1.0


class KafkaTransport:
    """Implements contract.Transport. It is used by one thread.

    restored: number of positions taken from the ledger while the consumer group had another offset, or none.
    """

    def __init__(self, cluster: Cluster, endpoints: Endpoints, log: TopicLog) -> None:
        self._endpoints, self._log = endpoints, log
        self._ledger = Ledger(log, endpoints.ledger)
        self._partition_count = log.partitions(endpoints.source)
        if not self._partition_count:
            raise StateError(f"topic {endpoints.source} does not exist")
        instance = f"{socket.gethostname()}-{os.getpid()}-{now_ms()}"
        self._transactions = Transactions(cluster, f"{endpoints.group}-{instance}")
        self._settle_patience_s = cluster.transaction_ms / 1000 + 5
        self._reader = cluster.group_reader(endpoints.group, endpoints.source)
        # A leader of the group that does not know the topic yet would assign none of its partitions to anybody.
        _patiently(self._reader.partition_count)
        self._membership: Membership | None = None
        self._states = Partitions()
        self._idle = IdleEnds(log, endpoints.source)
        self._sequence = 0
        self.restored = 0

    @property
    def partitions(self) -> int:
        """The number of partitions of the input. Raises StateError if partitions were added since the start."""
        if now := self._reader.partition_count():  # a topic that is not there may be one not heard of yet
            self._endpoints.require_partitions(self._partition_count, now)
        return self._partition_count

    def poll(self) -> Sequence[InputEvent]:
        """As in the protocol. Raises BrokerError. Raises StateError if partitions were added, if records to be read are
        gone, if the topic was made anew, or if another clock stamped a batch.

        Events that were collected before an error are lost: call restart() to read them again.
        """
        events = self._new_events()
        for event in events:
            if isinstance(event, Assigned):
                self._states.on(ReadingEvent.TOLD_ASSIGNED, event.partition)
            elif isinstance(event, Revoked):
                self._states.on(ReadingEvent.TOLD_REVOKED, event.partition)
        return events

    def restart(self) -> None:
        """Read every partition again from its committed position, once no transaction sent before is open.

        To be called after a BrokerAway: what is committed is unknown then, and perhaps what was read.
        """
        for partition in self._reader.assigned() & self._states.positions().keys():
            self._reader.pause(partition)
        for partition in self._states.having(frozenset(ReadingState)):
            self._states.on(ReadingEvent.RESTARTED, partition)
        self._idle.forget()

    def seek(self, partition: int, offset: int) -> None:
        if partition not in self._states.positions():
            raise UsageError(f"partition {partition} is not assigned, so that nothing can be sought in it")
        first = self._states.log_start(partition)  # as it was at the assignment; the cluster is not asked again
        if offset < first:
            raise StateError(
                f"topic {self._endpoints.source}, partition {partition}: reading should go on at offset {offset}, the "
                f"log begins at {first}: {first - offset} records are gone. Their windows cannot be counted any "
                "more: raise pipeline.epoch and set window.start to a later window border"
            )
        self._reader.seek(partition, offset)
        self._reader.resume(partition)
        self._states.seek(partition, offset)

    def hold(self, partitions: Set[int]) -> None:
        """As in the protocol: the client keeps what it has fetched of a paused partition, and fetches no more of it."""
        told = self._states.having(frozenset({ReadingState.READING, ReadingState.HELD}))
        for partition in self._reader.assigned().intersection(told):
            if partition in partitions:
                self._reader.pause(partition)
                self._states.on(ReadingEvent.HOLD, partition)
            else:
                self._reader.resume(partition)
                self._states.on(ReadingEvent.GO_ON, partition)

    def commit(self, step: Step) -> bool:
        """As in the protocol; False also if this worker is no member of the group any more.

        Raises BrokerAway if it cannot be found out now whether the step is committed: then call restart().
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
        """Leave the group. Commits nothing."""
        self._transactions.close()
        self._reader.close()

    def entries(self, partition: int) -> dict[str, Entry]:
        """Worker to its ledger entry in a partition, as of the last time that the ledger was read."""
        return self._ledger.known(partition)

    @property
    def joined(self) -> bool:
        """Whether this worker is a member of its group. A member may have no partition."""
        return self._membership is not None

    def ends(self) -> dict[int, int]:
        """The high watermarks of the assigned partitions as of now."""
        return self._log.ends(self._endpoints.source, sorted(self._states.positions()), stable=False)

    def _new_events(self) -> list[InputEvent]:
        batches = self._reader.poll(POLL_MS, _MAX_BATCHES)
        membership = self._reader.membership()
        self._endpoints.require_same_topic(self._reader.topic_id())
        events: list[InputEvent] = [*self._changes()]
        if not membership.valid:
            self._membership = None
        elif membership.settled:
            # While it joins, a member has a new generation before it is told what it lost in it.
            self._membership = membership
        positions = self._states.positions()
        for partition, of_partition in batches.items():
            if partition in positions:
                self._endpoints.require_clock(of_partition)
                events += of_partition
                self._states.advance(partition, of_partition[-1].next_offset)
        events += self._idle.reached(positions, self.position)
        return events

    def _changes(self) -> list[InputEvent]:
        """The events that follow from the rebalances of the last poll. Positions are looked up here, since the client's
        callbacks must not wait.
        """
        for rebalance in self._reader.rebalances():
            for partition in rebalance.partitions:
                self._states.on(ReadingEvent.GIVEN if rebalance.given else ReadingEvent.TAKEN, partition)
                self._idle.forget(partition)
        events: list[InputEvent] = [Revoked(partition) for partition in self._states.having(TO_BE_REVOKED)]
        if events or self._states.having(WITHOUT_POSITION):
            _ = self.partitions
        for partition, end in sorted(self._ledger_ends().items()):
            try:
                entry = self._ledger.entries(partition, _LEDGER_PATIENCE_S, end).get(self._endpoints.worker)
                log_start = self._log.starts(self._endpoints.source, [partition])[partition]
                self._compare(partition, entry)
            except BrokerAway as error:
                _log.info("partition %d waits for its position: %s", partition, error)
                continue
            events.append(self._take_up(partition, entry, log_start))
        return events

    def _ledger_ends(self) -> dict[int, int]:
        """The log ends of the ledger in those partitions that wait for their position. Where one is unknown now, the
        partition goes on waiting.
        """
        waiting = set(self._states.having(WITHOUT_POSITION))
        if not waiting:
            return {}
        try:
            ends = self._ledger.ends(waiting)
        except BrokerAway as error:
            ends, why = {}, str(error)
        else:
            why = "not all replicas in sync answer"
        if unknown := waiting - ends.keys():
            _log.info("partitions %s wait for the end of the ledger: %s", sorted(unknown), why)
        return ends

    def _take_up(self, partition: int, entry: Entry | None, log_start: int) -> Assigned:
        """Begin to read a partition at its position."""
        offset = log_start if entry is None else entry.commit.offset
        self._states.locate(partition, log_start, offset)
        self.seek(partition, offset)
        return Assigned(partition, None if entry is None else entry.commit)

    def _compare(self, partition: int, entry: Entry | None) -> None:
        """Log a warning if the group's offset is not the ledger's: it was lost, reset or expired. The ledger counts."""
        if entry is None or entry.transaction.endswith(FIRST_START):
            return
        group = self._reader.committed(partition)
        if group is None or group.metadata != entry.transaction:
            self.restored += 1
            _log.warning(
                "topic %s, partition %d: the offset of group %s is %s; going on at %d, which the ledger holds",
                self._endpoints.source,
                partition,
                self._endpoints.group,
                "not there" if group is None else group.offset,
                entry.commit.offset,
            )

    def position(self, partition: int) -> int:
        """The offset up to which the partition is read, control records included, which are in no batch."""
        position = self._reader.position(partition)
        return self._states.positions()[partition] if position is None else position

    def _records(self, step: Step, name: str) -> list[Record]:
        """The records of a transaction. The ledger entries come first, so that whatever is in a log, the name of its
        transaction is in the ledger before.
        """
        endpoints, now = self._endpoints, now_ms()
        entries = [
            Record(
                endpoints.ledger, at.partition, entry_key(endpoints.worker, at.partition), entry_value(at, name), now
            )
            for at in step.commit
        ]
        names = endpoints.topics
        return entries + [
            Record(names[at.topic], at.partition, at.key, at.value, at.timestamp_ms) for at in step.publish
        ]

    def _offsets(self, step: Step, name: str) -> dict[TopicPartition, GroupOffset]:
        source = self._endpoints.source
        return {TopicPartition(source, at.partition): GroupOffset(at.offset, name) for at in step.commit}

    def _settled(self, step: Step, name: str, error: UnknownOutcome) -> bool:
        """Whether a transaction of unknown outcome is committed: settle it, then look for its name in the ledger."""
        if not step.commit:
            raise error
        self._transactions.settle()
        entries = self._ledger.entries(step.commit[0].partition, self._settle_patience_s)
        entry = entries.get(self._endpoints.worker)
        done = entry is not None and entry.transaction == name
        _log.warning("the transaction was %s", "committed" if done else "not committed")
        return done


def _patiently(ask: Callable[[], object]) -> None:
    """Ask, and again after a BrokerAway, since another broker may know. The last BrokerAway is raised."""
    for left in reversed(range(_TRIES)):
        try:
            ask()
            return
        except BrokerAway:
            if not left:
                raise
            Event().wait(_PAUSE_S)
