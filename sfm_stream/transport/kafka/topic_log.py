"""Topics read without a group: committed records between two offsets, and where a partition begins and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from threading import Event

import numpy as np

from sfm_stream.clock import monotonic_s
from sfm_stream.errors import BrokerAway
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.cluster_values import LogBatch, LogEndQuery
from sfm_stream.transport.kafka.stamped_partition import StampedPartition, stored_rows
from sfm_stream.types import StoredRecord
from sfm_stream.units import FOREVER_MS, SKETCHES
from sfm_stream.wire.keys import MARKER_KEY

_POLL_MS = 250
_PATIENCE_S = 60.0
_ANSWERED_S = 3.0
"""How long log ends are waited for; a worker that waits does not see a signal."""
_PAUSE_S = 1.0
"""Before log ends are asked for anew that were not told."""


class TopicLog:
    """A TopicReader over a cluster. topics: real names of the topics of the pipeline; others go by their own."""

    def __init__(self, cluster: Cluster, topics: dict[str, str] | None = None) -> None:
        self._topics = topics or {}
        self._admin = cluster.admin()
        self._reader = cluster.partition_reader()

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
            yield from self._records(name, number, start, stops[number], patience_s or _PATIENCE_S)

    def look_up(
        self,
        topic: str,
        since_ms: int = 0,
        until_ms: int = FOREVER_MS,
        keys: Set[bytes] | None = None,
        stamped: Callable[[int], bool] | None = None,
    ) -> Iterator[StoredRecord]:
        """As in the protocol: these records, whatever their stamps in between, and those that a broker has stamped.

        Roll-ups are read to the end of their topic: a later revision of an early span stands behind those of later
        ones.
        """
        for partition in self._stamped(topic):
            yield from partition.records(since_ms, until_ms, keys, in_order=topic == SKETCHES)

    def keys(self, topic: str) -> Iterator[bytes]:
        """As in the protocol. The whole topic is read for it."""
        yield from sorted({stored.key for stored in self.look_up(topic)} - {MARKER_KEY})

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[StoredRecord]:
        """As in the protocol. What lies between two offsets is passed over where it is not fetched yet."""
        name, done = self._topics.get(topic, topic), 0
        while done < len(offsets):
            wanted = offsets[done]
            for batch in self.batches(name, partition, wanted, wanted + 1):
                if done == len(offsets) or batch.next_offset <= offsets[done]:
                    continue
                rows = {at: row for row, at in enumerate(batch.offsets().tolist())}
                asked = list[int]()
                while done < len(offsets) and (row := rows.get(offsets[done])) is not None:
                    asked.append(row)
                    done += 1
                yield from stored_rows(batch, asked)
            if done < len(offsets) and offsets[done] == wanted:
                done += 1  # retention or compaction took it

    def markers(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        """As in the protocol. Read is the topic from since_ms to until_ms, and about a window before and behind it; in
        the middle of an epoch that releases one span only what is about the two times.
        """
        for partition in self._stamped(topic):
            yield from partition.markers(since_ms, until_ms)

    def _stamped(self, topic: str) -> Iterator[StampedPartition]:
        """Each partition as it is now."""
        name = self._topics.get(topic, topic)
        numbers = range(self.partitions(name))
        firsts, stops = self.starts(name, numbers), self.ends(name, numbers, stable=True)
        for number in numbers:
            first, stop = firsts[number], stops[number]
            batches, since = partial(self.batches, name, number), partial(self._first_since, name, number, first, stop)
            yield StampedPartition(number, first, stop, batches, since)

    def _first_since(self, name: str, partition: int, first: int, stop: int, since_ms: int) -> int:
        """The first offset between two others of a record that is stamped since_ms or later, control records among
        them; the second of the two without any.
        """
        if since_ms <= 0 or since_ms >= FOREVER_MS:
            return first if since_ms <= 0 else stop
        found = self._admin.offsets_since(name, [partition], since_ms).get(partition, -1)
        return min(max(first, found), stop) if found >= 0 else stop

    def _records(self, name: str, partition: int, start: int, stop: int, patience_s: float) -> Iterator[StoredRecord]:
        """Records between two offsets."""
        for batch in self.batches(name, partition, start, stop, patience_s):
            yield from stored_rows(batch, np.flatnonzero(batch.offsets() < stop).tolist())

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if there is no such topic."""
        return self._admin.partition_count(topic)

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        """As Admin.ends: the last stable offset with `stable`, else the high watermark.

        Neither is the log end: see log_ends().
        """
        return self._admin.ends(topic, partitions, stable=stable)

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        """As Admin.ask_log_ends."""
        return self._admin.ask_log_ends(topic, list(partitions))

    def log_ends(self, topic: str, partitions: Iterable[int], patience_s: float = 0) -> dict[int, int]:
        """Partition to its log end, which lies behind everything that any leader acknowledged before this call.

        Every replica in sync has to answer, else the partition is left out. With patience_s each is asked again as
        often as that leaves time for. If a broker never tells log ends, the high watermark is taken.
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
        query = self.ask_log_ends(topic, partitions)
        query.over.wait(_ANSWERED_S)
        refused = sorted(query.refused)
        return query.told.copy() | (self.ends(topic, refused, stable=False) if refused else {})

    def starts(self, topic: str, partitions: Iterable[int], since_ms: int = 0) -> dict[int, int]:
        """Partition to the first offset of its log, or to a later one: all stamps before it are below since_ms."""
        numbers = list(partitions)
        first = self._admin.starts(topic, numbers)
        if since_ms <= 0:
            return first
        # Asked before the look for a record: one that comes in between must not be passed over. The high watermark,
        # not the log end: the look goes no further, and what is above it has to be read.
        ends = self.ends(topic, numbers, stable=False)
        since = self._admin.offsets_since(topic, numbers, since_ms)
        reached = {number: since[number] if since.get(number, -1) >= 0 else ends[number] for number in numbers}
        return {number: max(first[number], reached[number]) for number in numbers}

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition to (offset, time stamp in ms) of its first record; partitions without any are left out."""
        return self._admin.first_records(topic, partitions)

    def group_members(self, group: str) -> int:
        """How many members a consumer group has now; 0 for one that does not exist.

        Raises BrokerAway where its coordinator cannot say.
        """
        return self._admin.group_members(group)

    def batches(
        self, topic: str, partition: int, start: int, stop: int, patience_s: float = _PATIENCE_S
    ) -> Iterator[LogBatch]:
        """Batches from `start` on until everything before `stop` is read.

        Raises BrokerAway where nothing comes for patience_s: a leader is missing, or a transaction stays open.
        """
        at, waited_since = start, monotonic_s()
        while at < stop:
            batches, reached = self._reader.fetch(topic, partition, at, _POLL_MS)
            yield from batches
            if reached > at:
                at, waited_since = reached, monotonic_s()
            elif monotonic_s() - waited_since > patience_s:
                raise BrokerAway(
                    f"topic {topic}, partition {partition}: nothing can be read from offset {at} on, though it "
                    f"should reach {stop}; a broker is away, or a transaction is still open"
                )

    def close(self) -> None:
        self._reader.close()
        self._admin.close()
