"""Record batches of Kafka as columns: a batch stays bytes until it is asked for, and is then read in one pass.

kafka-python makes an object of every record, which costs more than all that is done with it afterwards. Here its
fetcher hands on whole batches; it still does what it knows best: sessions, leaders, checksums, aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

import numpy as np
from kafka import KafkaConsumer
from kafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from numpy.typing import NDArray

from sfm_stream.types import NO_TIME

_HEADER = Struct(">qiibIhiqqqhii")
"""Of a batch of format 2: base offset, length, leader epoch, magic, crc, attributes, last offset delta, first and
largest timestamp, producer id, producer epoch, base sequence, number of records."""
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_DECODERS = {1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}


class KafkaBatch:
    """A RecordBatch over one batch of the log, without the records before `first`."""

    def __init__(self, partition: int, first: int, next_offset: int, raw: bytes) -> None:
        self.partition, self.first, self.next_offset = partition, first, next_offset
        self._raw = raw
        self._columns: _Columns | None = None

    @property
    def count(self) -> int:
        return len(self._read().values)

    def offsets(self) -> NDArray[np.int64]:
        return self._read().offsets

    def arrivals(self) -> NDArray[np.int64]:
        return self._read().arrivals

    def keys(self) -> list[bytes | None]:
        return self._read().keys

    def values(self) -> list[bytes | None]:
        return self._read().values

    def _read(self) -> _Columns:
        if self._columns is None:
            columns = _columns(self._raw)
            if len(columns.offsets) and int(columns.offsets[0]) < self.first:
                columns = columns.since(self.first)
            self._columns, self._raw = columns, b""
        return self._columns


class OldBatch(KafkaBatch):
    """Records of a message format before 2, which logs written by old brokers still hold."""

    def __init__(self, partition: int, first: int, next_offset: int, records: list[Any]) -> None:
        super().__init__(partition, first, next_offset, b"")
        self._columns = _Columns(
            np.array([record.offset for record in records], np.int64),
            np.array([NO_TIME if record.timestamp is None else record.timestamp for record in records], np.int64),
            [record.key for record in records],
            [record.value for record in records],
        )


class _Columns:
    __slots__ = ("arrivals", "keys", "offsets", "values")

    def __init__(
        self,
        offsets: NDArray[np.int64],
        arrivals: NDArray[np.int64],
        keys: list[bytes | None],
        values: list[bytes | None],
    ) -> None:
        self.offsets, self.arrivals, self.keys, self.values = offsets, arrivals, keys, values

    def since(self, first: int) -> _Columns:
        row = int(np.searchsorted(self.offsets, first))
        return _Columns(self.offsets[row:], self.arrivals[row:], self.keys[row:], self.values[row:])


def _columns(raw: bytes) -> _Columns:
    """The records of one batch of format 2. Raises CorruptRecordError."""
    base, _, _, _, _, attributes, last_delta, first_time, max_time, _, _, _, count = _HEADER.unpack_from(raw)
    data = raw[_HEADER.size :]
    if codec := attributes & _CODEC:
        if codec not in _DECODERS:
            raise CorruptRecordError(f"batch at offset {base}: unknown compression {codec}")
        data = bytes(_DECODERS[codec](data))
    try:
        times, deltas, keys, values = _records(data, count)
    except (IndexError, ValueError) as error:
        raise CorruptRecordError(f"batch at offset {base}: broken records") from error
    if count == last_delta + 1:
        offsets = np.arange(base, base + count, dtype=np.int64)
    else:  # compaction took some
        offsets = np.array(deltas, np.int64) + base
    if attributes & _LOG_APPEND_TIME:
        arrivals = np.full(count, max_time, np.int64)
    else:
        arrivals = np.maximum(np.array(times, np.int64) + first_time, NO_TIME)
    return _Columns(offsets, arrivals, keys, values)


def _records(data: bytes, count: int) -> tuple[list[int], list[int], list[bytes | None], list[bytes | None]]:
    """(time deltas, offset deltas, keys, values) of `count` records. Raises ValueError or IndexError.

    A record: length, attributes (one byte), time delta, offset delta, key length, key, value length, value, headers.
    Lengths and deltas are zigzag varints; those of one or two bytes, nearly all, are read in place.
    """
    times: list[int] = []
    deltas: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    at = 0
    for _ in range(count):
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        end = at + (number >> 1)
        at += 1
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        times.append((number >> 1) ^ -(number & 1))
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        deltas.append((number >> 1) ^ -(number & 1))
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        if number & 1:
            keys.append(None)
        else:
            keys.append(data[at : at + (number >> 1)])
            at += number >> 1
        number = data[at]
        at += 1
        if number > 127:
            number, at = _varint(data, at, number)
        if number & 1:
            values.append(None)
        else:
            values.append(data[at : at + (number >> 1)])
            at += number >> 1
        if not at < end <= len(data):  # at least the number of headers follows
            raise ValueError("a field reaches beyond its record")
        at = end
    if at != len(data):
        raise ValueError("bytes after the last record")
    return times, deltas, keys, values


def _varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """(raw value, position behind it) of a varint whose first byte, at `at` - 1, has a successor."""
    number, shift = first & 127, 7
    while (byte := data[at]) > 127:
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > 63:
            raise ValueError("a varint of more than ten bytes")
    return number | byte << shift, at + 1


class _WholeBatches(Fetcher.PartitionRecords):  # type: ignore[misc]  # kafka-python has no types
    """The fetcher's records of one fetched partition, a batch each."""

    def _maybe_skip_record(self, record: KafkaBatch) -> bool:
        return bool(record.next_offset <= self.fetch_offset)

    def _unpack_records(self, tp: Any, records: MemoryRecords, *_: Any) -> Iterator[KafkaBatch]:
        batch = None
        while (raw := records.next_batch()) is not None:
            batch = raw
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(f"{tp.topic}, partition {tp.partition}, offset {batch.base_offset}: checksum")
            if batch.magic < 2:
                old = [record for record in batch if record.offset >= self.fetch_offset]
                if old:
                    self.next_fetch_offset = old[-1].offset + 1
                    yield OldBatch(tp.partition, old[0].offset, self.next_fetch_offset, old)
                continue
            self.leader_epoch = batch.leader_epoch
            self.next_fetch_offset = batch.next_offset
            if not self._is_hidden(batch) and batch.records_count:
                self.records_read += batch.records_count
                self.bytes_read += batch.size_in_bytes
                first = max(batch.base_offset, self.fetch_offset)
                yield KafkaBatch(tp.partition, first, batch.next_offset, bytes(batch._buffer))
        if batch is not None and batch.magic == 2:
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _is_hidden(self, batch: Any) -> bool:
        """Control batches, and with read_committed those of aborted transactions, as the fetcher would skip them."""
        if self.isolation_level and batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)


def give_batches(consumer: KafkaConsumer) -> KafkaConsumer:
    """The consumer, whose poll() from now on returns lists of KafkaBatch. max_poll_records then counts batches."""
    consumer._fetcher.PartitionRecords = _WholeBatches
    return consumer
