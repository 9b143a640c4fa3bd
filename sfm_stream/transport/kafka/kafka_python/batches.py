"""Record batches of Kafka as columns: a batch stays bytes until it is asked for, and is then read in one pass.

kafka-python makes an object of every record, which costs more than all that is done with it afterwards. Here its
fetcher hands on whole batches; it still does what it knows best: sessions, leaders, checksums, aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from numpy.typing import NDArray

from sfm_stream.transport.kafka.kafka_python.record_data import Columns, read_batch
from sfm_stream.types import NO_TIME

CREATE_TIME, LOG_APPEND_TIME = "CreateTime", "LogAppendTime"
_ATTRIBUTES, _APPENDED = 22, 0x08
"""The lower byte of the attributes in the header of a batch, and its bit for time stamps of the broker."""


class KafkaBatch:
    """A RecordBatch over one batch of the log, without the records before `first`.

    timestamp_type: whose clock stamped it, as Kafka names it; "" where the format has no time stamps.
    """

    def __init__(self, partition: int, first: int, next_offset: int, raw: bytes) -> None:
        self.partition, self.first, self.next_offset = partition, first, next_offset
        self._raw = raw
        appended = len(raw) > _ATTRIBUTES and raw[_ATTRIBUTES] & _APPENDED
        self.timestamp_type = LOG_APPEND_TIME if appended else CREATE_TIME
        self._columns: Columns | None = None

    @property
    def count(self) -> int:
        return len(self._read().offsets)

    def offsets(self) -> NDArray[np.int64]:
        return self._read().offsets

    def arrivals(self) -> NDArray[np.int64]:
        return self._read().arrivals

    def keys(self) -> list[bytes | None]:
        return self._read().keys()

    def values(self) -> list[bytes | None]:
        return self._read().values()

    def _read(self) -> Columns:
        if self._columns is None:
            self._columns, self._raw = read_batch(self._raw, self.first), b""
        return self._columns


class OldBatch(KafkaBatch):
    """Records of a message format before 2, which logs written by old brokers still hold.

    appended: whether the broker stamped them; None where the format has no time stamps.
    """

    def __init__(
        self, partition: int, first: int, next_offset: int, records: list[Any], appended: bool | None = None
    ) -> None:
        super().__init__(partition, first, next_offset, b"")
        self.timestamp_type = "" if appended is None else LOG_APPEND_TIME if appended else CREATE_TIME
        keys, values = [record.key for record in records], [record.value for record in records]
        self._columns = Columns(
            np.array([record.offset for record in records], np.int64),
            np.array([NO_TIME if record.timestamp is None else record.timestamp for record in records], np.int64),
            lambda: keys,
            lambda: values,
        )


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
                    yield OldBatch(tp.partition, old[0].offset, self.next_fetch_offset, old, _appended(batch))
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


def _appended(batch: Any) -> bool | None:
    """Of a message before format 2; one that wraps others speaks for them."""
    return None if batch.timestamp_type is None else bool(batch.timestamp_type)


def give_batches(consumer: KafkaConsumer) -> KafkaConsumer:
    """The consumer, whose poll() from now on returns lists of KafkaBatch. max_poll_records then counts batches."""
    consumer._fetcher.PartitionRecords = _WholeBatches
    return consumer
