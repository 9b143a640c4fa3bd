"""The repartition worker: copies a topic that is not keyed by the counting key into one that is.

Every record goes to the partition of its counting key, with its bytes and its time stamp, in one transaction with the
position it was read from. So the copy holds each record once, and the records of a source partition in their order.
The key alone decides on the partition, whatever the item, the time or the rest of the record is: a record that will be
dropped goes where the same record would be counted. A record whose key cannot be read goes to the partition of its own
record key, or of its offset where it has none.

A partition of the copy mixes records of all source partitions. A source partition that is read ahead of the others
would move the clock of the copy past their records. So records are copied in the order of their time stamps over the
source partitions of this process: none is copied before each of these has shown its next record, or its end. Where much
is in memory, only the source partitions that are waited for are read on; the order is kept in any case.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heapreplace
from zlib import crc32

from sfm_stream.clock import monotonic_s
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.partitioner import PARTITIONERS, partition_key
from sfm_stream.transport.contract import Transport
from sfm_stream.types import Assigned, Commit, InputEnd, Record, RecordBatch, Step
from sfm_stream.workers.extractor import extractor_of
from sfm_stream.workers.partition_worker import PartitionWorker

_log = logging.getLogger(__name__)
TARGET = "repartitioned"
_METADATA = b"repartition/1"
_MAX_KEYS = 1_000_000
"""With more keys in the table it is made anew."""
_PAUSE_BYTES = 128 << 20
"""With so much in memory a source partition that has any of it is not read on. One poll may bring more on top."""
_ROW_BYTES = 400
"""What a record takes in memory beside its bytes."""
_WARN_EVERY_S = 60.0
"""How often the log says which partitions are waited for."""


class SourcePartition:
    """Records of a source partition that are read and not copied yet, each with its offset.

    next_offset: where reading goes on. at_end: nothing more can be read now. size_bytes: what `rows` take in memory.
    """

    __slots__ = ("at_end", "next_offset", "number", "rows", "size_bytes")

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows: list[tuple[int, Record]] = []
        self.next_offset, self.size_bytes, self.at_end = 0, 0, False

    @property
    def waited_for(self) -> bool:
        """Nothing can be copied before this partition shows a record or its end."""
        return not self.rows and not self.at_end

    def add(self, rows: list[tuple[int, Record]], next_offset: int) -> None:
        self.rows += rows
        self.size_bytes += sum(_size(record) + _ROW_BYTES for _, record in rows)
        self.next_offset, self.at_end = next_offset, False

    def drop(self, count: int) -> None:
        self.size_bytes -= sum(_size(record) + _ROW_BYTES for _, record in self.rows[:count])
        del self.rows[:count]

    def commit(self, count: int) -> Commit:
        """The position behind the first `count` records."""
        offset = self.next_offset if count == len(self.rows) else self.rows[count - 1][0] + 1
        return Commit(self.number, offset, _METADATA)


class RepartitionWorker(PartitionWorker[SourcePartition]):
    """Copies records of one topic. target_partitions: of the copy. moved: number of records copied by this process."""

    def __init__(self, config: Config, transport: Transport, target_partitions: int) -> None:
        super().__init__(transport)
        self._config, self._target_partitions = config, target_partitions
        self._partitioner = PARTITIONERS[config.kafka.partitioner]
        self._limit = config.limits.max_transaction_bytes
        self._paused: set[int] = set()
        self._warn_at = monotonic_s() + _WARN_EVERY_S
        self._reset_keys()
        self.moved = 0

    def checkpoint(self) -> None:
        """Nothing: each step commits its own position."""

    def _begin(self, event: Assigned) -> SourcePartition:
        self._paused.discard(event.partition)  # the transport reads on what is assigned anew
        return SourcePartition(event.partition)

    def _revoked(self, source: SourcePartition) -> None:
        self._paused.discard(source.number)

    def _read(self, source: SourcePartition, batches: Sequence[RecordBatch], stopping: Callable[[], bool]) -> None:
        for batch in batches:
            source.add(self._rows(batch), batch.next_offset)

    def _end(self, source: SourcePartition, end: InputEnd) -> None:
        source.at_end = True

    def _rows(self, batch: RecordBatch) -> list[tuple[int, Record]]:
        """The records of a batch as they are written, each with its offset."""
        columns = self._extractor.columns([batch])
        arrivals = batch.arrivals()
        if arrivals is None:
            raise StateError("repartition: the input has no time stamps of its own")
        rows: list[tuple[int, Record]] = []
        offsets, key_ids = columns.offsets.tolist(), columns.key_ids.tolist()
        for offset, arrival_ms, key_id, old_key, value in zip(
            offsets, arrivals.tolist(), key_ids, batch.keys(), batch.values(), strict=True
        ):
            counted = self._keys[key_id] if key_id >= 0 else self._extractor.key_of(value)
            new_key = None if counted is None else partition_key(counted)
            target = self._target(new_key, old_key, offset)
            key = new_key if new_key is not None else old_key or b""
            rows.append((offset, Record(TARGET, target, key, value or b"", arrival_ms)))
        if len(self._keys) > _MAX_KEYS:
            self._reset_keys()
        return rows

    def _target(self, new_key: bytes | None, old_key: bytes | None, offset: int) -> int:
        """The partition of the copy that a record goes to."""
        if new_key is not None:
            return self._partitioner(new_key, self._target_partitions)
        return (crc32(old_key) if old_key else offset) % self._target_partitions

    def _reset_keys(self) -> None:
        self._keys = KeyTable()
        self._extractor = extractor_of(self._config, self._keys)

    def _commit_due(self, stopping: Callable[[], bool]) -> None:
        """Copy what can be copied by now, until a transaction is not committed."""
        sources = self.partitions
        while not stopping():
            records, taken = _next_records(sources, self._limit)
            commits = tuple(sources[number].commit(count) for number, count in taken.items())
            if not records or not self._transport.commit(Step(tuple(records), commits)):
                break
            self.moved += len(records)
            self._warn_at = monotonic_s() + _WARN_EVERY_S
            for number, count in taken.items():
                sources[number].drop(count)
        self._pause()

    def _pause(self) -> None:
        """With much in memory read on only what is waited for, and say so where nothing was copied for long."""
        sources = self.partitions
        size_bytes = sum(source.size_bytes for source in sources.values())
        full = size_bytes >= _PAUSE_BYTES
        paused = {number for number, source in sources.items() if source.rows} if full else set()
        if paused != self._paused:
            self._transport.hold(paused)
            self._paused = paused
        if (now := monotonic_s()) < self._warn_at:
            return
        self._warn_at = now + _WARN_EVERY_S
        waited_for = sorted(number for number, source in sources.items() if source.waited_for)
        if size_bytes and waited_for:
            _log.warning(
                "nothing was copied for %d s: partitions %s have neither shown a record nor their end; "
                "%d bytes of others wait for them",
                _WARN_EVERY_S,
                waited_for,
                size_bytes,
            )


def _next_records(sources: dict[int, SourcePartition], limit_bytes: int) -> tuple[list[Record], Counter[int]]:
    """Records of the next transaction in order of time stamp, and how many of each partition they are.

    None where a partition is waited for. The records are at most one longer than fits into limit_bytes.
    """
    records: list[Record] = []
    taken: Counter[int] = Counter()
    if any(source.waited_for for source in sources.values()):
        return records, taken
    heads = [(source.rows[0][1].timestamp_ms, number) for number, source in sources.items() if source.rows]
    heapify(heads)
    room_bytes = limit_bytes
    while heads and room_bytes > 0:
        _, number = heads[0]
        rows = sources[number].rows
        records.append(rows[taken[number]][1])
        room_bytes -= _size(records[-1])
        taken[number] += 1
        if taken[number] < len(rows):
            heapreplace(heads, (rows[taken[number]][1].timestamp_ms, number))
        elif sources[number].at_end:
            heappop(heads)
        else:
            break
    return records, taken


def _size(record: Record) -> int:
    return len(record.key) + len(record.value) + 64
