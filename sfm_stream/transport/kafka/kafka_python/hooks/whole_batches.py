"""Whole batches in place of records: the fetcher of kafka-python hands on each batch of the log as it came.

The fetcher still does what it knows best: sessions, leaders, checksums, aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords

from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch, OldBatch
from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames
from sfm_stream.transport.kafka.kafka_python.translation import Translation

RELIES_ON: PrivateNames = {
    "kafka.consumer.group:KafkaConsumer": {
        "_fetcher": "poll() takes what it returns from this object",
    },
    "kafka.consumer.fetcher:Fetcher": {
        "PartitionRecords": "the fetcher unpacks a fetched partition by self.PartitionRecords(...)",
    },
    "kafka.consumer.fetcher:Fetcher.PartitionRecords": {
        "_unpack_records(self, tp, records, key_deserializer, value_deserializer)": (
            "what it yields is what poll() returns"
        ),
        "_maybe_skip_record(self, record)": "it leaves out what lies before the offset that was sought",
        "_consume_aborted_transactions_up_to(self, offset)": "it keeps aborted_producer_ids",
        "_contains_abort_marker(self, batch)": "an abort marker ends an aborted transaction",
        "_is_batch_aborted(self, batch)": "batches of aborted transactions are hidden",
        "drain(self)": "it says that all of the fetch is used up",
        "fetch_offset": "the offset from which on records are wanted",
        "next_fetch_offset": "the position of the consumer after what was yielded",
        "aborted_producer_ids": "the producers whose transaction is aborted where the reader is",
        "check_crcs": "whether check sums are to be checked",
        "isolation_level": "not 0: committed records only",
        "leader_epoch": "the epoch of the batch that was read last",
        "records_read": "a count for the metrics of the client",
        "bytes_read": "a count for the metrics of the client",
    },
    "kafka.record.default_records:DefaultRecordBatch": {
        "_buffer": "the bytes of the whole batch, its header among them",
    },
}


class WholeBatches(Fetcher.PartitionRecords):  # type: ignore[misc]  # kafka-python has no types
    """What the fetcher has of one fetched partition: batches where it would have records."""

    translated: Translation = nullcontext

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
                yield KafkaBatch(tp.partition, first, batch.next_offset, bytes(batch._buffer), self.translated)
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


def give_batches(consumer: KafkaConsumer, translated: Translation) -> None:
    """From now on poll() of the consumer returns lists of KafkaBatch, and its max_records counts batches.

    translated: what makes an error of this package out of corrupt bytes, which are found when a batch is looked into.
    """
    ours = {"translated": staticmethod(translated)}
    consumer._fetcher.PartitionRecords = type("WholeBatches", (WholeBatches,), ours)
