"""A topic that is not keyed by the counting key, copied into one that is.

Every record goes to the partition of its counting key, with its bytes and its time stamp, in one transaction with the
position it was read from: the copy holds each record once, and those of a source partition in their order. The key
alone decides, whatever the item, the time or the rest of the record is: one that will be dropped goes where the same
record would be counted. Only a record whose key cannot be read goes to the partition of its own key or number.

A partition of the copy mixes records of all source partitions; one that is read ahead of the others would move the
clock of the copy past theirs. So records are copied in the order of their time stamps over the source partitions that
this process reads: none before every one of these has shown its next record, or its end. Where much is in hand, only
those that are waited for are read on; the order never gives way.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from zlib import crc32

from sfm_stream.clock import monotonic_s
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.placement import PARTITIONERS, partition_key
from sfm_stream.transport.contract import Transport
from sfm_stream.types import Assigned, Commit, InputEnd, Record, RecordBatch, Revoked, Step

_log = logging.getLogger(__name__)
TARGET = "repartitioned"
_METADATA = b"repartition/1"
_FREE_ABOVE = 1_000_000
_HELD_BYTES = 128 << 20
"""With so much in hand a partition that has any of it is not read on: at most what one poll brings comes on top."""
_ROW_BYTES = 400
"""What a record takes in memory beside its bytes."""
_SAID_EVERY_S = 60.0
"""How often the log says what is waited for."""


class _Source:
    """A source partition: records in hand, each behind its offset, and the offset behind all of them."""

    __slots__ = ("ended", "held", "next_offset", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[int, Record]] = []
        self.next_offset, self.held, self.ended = 0, 0, False

    def add(self, rows: list[tuple[int, Record]], next_offset: int) -> None:
        self.rows += rows
        self.held += sum(_size(record) + _ROW_BYTES for _, record in rows)
        self.next_offset, self.ended = next_offset, False

    def drop(self, count: int) -> None:
        self.held -= sum(_size(record) + _ROW_BYTES for _, record in self.rows[:count])
        del self.rows[:count]

    def commit(self, partition: int, count: int) -> Commit:
        """The position behind the first `count` records."""
        offset = self.next_offset if count == len(self.rows) else self.rows[count - 1][0] + 1
        return Commit(partition, offset, _METADATA)


class Repartition:
    """A worker. target_partitions: of the topic that is written. moved: records copied by this process."""

    def __init__(self, config: Config, transport: Transport, target_partitions: int) -> None:
        self._config, self._transport, self._partitions = config, transport, target_partitions
        self._partitioner = PARTITIONERS[config.kafka.partitioner]
        self._limit = config.limits.max_transaction_bytes
        self._sources: dict[int, _Source] = {}
        self._held: set[int] = set()
        self._say_at = monotonic_s() + _SAID_EVERY_S
        self._reset_keys()
        self.moved = 0

    def tick(self, stopping: Callable[[], bool]) -> None:
        """One turn: poll, and copy what can be copied by now."""
        for event in self._transport.poll():
            if isinstance(event, Assigned):
                self._sources[event.partition] = _Source()
                self._held.discard(event.partition)
            elif isinstance(event, Revoked):
                self._sources.pop(event.partition, None)
                self._held.discard(event.partition)
            elif isinstance(event, InputEnd):
                self._sources[event.partition].ended = True
            else:
                self._sources[event.partition].add(self._rows(event), event.next_offset)
        self._copy(stopping)
        self._hold()

    def checkpoint(self) -> None:
        """Nothing: each step commits its own position."""

    def _copy(self, stopping: Callable[[], bool]) -> None:
        """Transactions of what can be copied by now, until one is not committed."""
        while not stopping():
            records, taken = self._next()
            commits = tuple(self._sources[number].commit(number, count) for number, count in taken.items())
            if not records or not self._transport.commit(Step(tuple(records), commits)):
                return
            self.moved += len(records)
            self._say_at = monotonic_s() + _SAID_EVERY_S
            for number, count in taken.items():
                self._sources[number].drop(count)

    def _hold(self) -> None:
        """With much in hand read on only what is waited for, and say so where nothing comes of it."""
        sources = self._sources
        in_hand = sum(source.held for source in sources.values())
        held = {number for number, source in sources.items() if source.rows} if in_hand >= _HELD_BYTES else set()
        if held != self._held:
            self._transport.hold(held)
            self._held = held
        if (now := monotonic_s()) < self._say_at:
            return
        self._say_at = now + _SAID_EVERY_S
        waited = sorted(number for number, source in sources.items() if not source.rows and not source.ended)
        if in_hand and waited:
            _log.warning(
                "nothing was copied for %d s: partitions %s have neither shown a record nor their end; "
                "%d bytes of others wait for them",
                _SAID_EVERY_S,
                waited,
                in_hand,
            )

    def _next(self) -> tuple[list[Record], Counter[int]]:
        """Records of the next transaction, and how many of each partition; none where one has to be waited for."""
        sources = self._sources
        records: list[Record] = []
        taken: Counter[int] = Counter()
        if any(not source.rows and not source.ended for source in sources.values()):
            return records, taken
        heads = [(source.rows[0][1].timestamp_ms, number) for number, source in sources.items() if source.rows]
        heapify(heads)
        room = self._limit
        while heads and room > 0:
            _, number = heads[0]
            rows = sources[number].rows
            records.append(rows[taken[number]][1])
            room -= _size(records[-1])
            taken[number] += 1
            if taken[number] < len(rows):
                heapreplace(heads, (rows[taken[number]][1].timestamp_ms, number))
            elif sources[number].ended:
                heappop(heads)
            else:
                break
        return records, taken

    def _rows(self, batch: RecordBatch) -> list[tuple[int, Record]]:
        """The records of a batch as they are written, each behind its offset."""
        columns = self._extractor.columns([batch])
        arrivals = batch.arrivals()
        if arrivals is None:
            raise StateError("repartition: the input has no time stamps of its own")
        found: list[tuple[int, Record]] = []
        offsets = columns.offsets.tolist()
        rows = zip(offsets, arrivals.tolist(), columns.key_ids.tolist(), batch.keys(), batch.values(), strict=True)
        for offset, arrival, key_id, key, value in rows:
            counted = self._keys[key_id] if key_id >= 0 else self._extractor.key_of(value)
            name = None if counted is None else partition_key(counted)
            place = self._place(name, key, offset)
            found.append(
                (offset, Record(TARGET, place, name if name is not None else key or b"", value or b"", arrival))
            )
        if len(self._keys) > _FREE_ABOVE:
            self._reset_keys()
        return found

    def _place(self, name: bytes | None, key: bytes | None, offset: int) -> int:
        if name is not None:
            return self._partitioner(name, self._partitions)
        return (crc32(key) if key else offset) % self._partitions

    def _reset_keys(self) -> None:
        self._keys = KeyTable()
        self._extractor = PythonExtractor(
            self._config.event_schema(), self._config.shape, self._config.item_hash, keys=self._keys
        )


def _size(record: Record) -> int:
    return len(record.key) + len(record.value) + 64
