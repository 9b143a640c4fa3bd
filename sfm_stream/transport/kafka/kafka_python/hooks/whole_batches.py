"""Whole batches in place of records: the fetcher of kafka-python hands on each batch of the log as it came.

The fetcher still does what it knows best: sessions, leaders, positions, aborted transactions. Batches that follow each
other are handed on together, so that a producer that sends one record at a time does not cost a visit for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from struct import error as struct_error
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from sfm_stream.transport.kafka.kafka_python.batch_runs import (
    APPENDED,
    CHECKED_FROM,
    CODEC,
    CONTROL,
    LENGTH_AT,
    MAGIC,
    OVERHEAD,
    SHORTEST,
    TRANSACTIONAL,
    Run,
    unpack_header,
)
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch, OldBatch
from sfm_stream.transport.kafka.kafka_python.codecs import unpacked_bytes
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
        "drain(self)": "it says that all of the fetch is used up",
        "fetch_offset": "the offset from which on records are wanted",
        "next_fetch_offset": "the position of the consumer after what was yielded",
        "aborted_producer_ids": "the producers whose transaction is aborted where the reader is",
        "aborted_transactions": "those that are aborted further on",
        "check_crcs": "whether check sums are to be checked",
        "isolation_level": "not 0: committed records only",
        "leader_epoch": "the epoch of the batch that was read last",
        "records_read": "a count for the metrics of the client",
        "bytes_read": "a count for the metrics of the client",
    },
    "kafka.record.memory_records:MemoryRecords": {
        "_buffer": "the bytes of the batches of one partition, one behind the other",
    },
}
_MAGIC_AT = 16


class WholeBatches(Fetcher.PartitionRecords):  # type: ignore[misc]  # kafka-python has no types
    """What the fetcher has of one fetched partition: batches where it would have records.

    most_bytes: batches are handed on together up to so many bytes; a larger one comes alone.
    """

    translated: Translation = nullcontext
    most_bytes = 0
    next_fetch_offset: int

    def _maybe_skip_record(self, record: KafkaBatch) -> bool:
        return bool(record.next_offset <= self.fetch_offset)

    def _unpack_records(self, tp: Any, records: MemoryRecords, *_: Any) -> Iterator[KafkaBatch]:
        # Of the whole answer, to which nobody writes any more: what is handed on is copied out of it.
        fetched, at = memoryview(records._buffer).toreadonly(), 0
        run, read_to = Run(fetched, self.most_bytes), self.next_fetch_offset
        while (end := _end(fetched, at)) <= len(fetched):
            if end - at < SHORTEST or fetched[at + _MAGIC_AT] != MAGIC:
                if run.batches:
                    yield self._handed_on(tp, run)
                    run = Run(fetched, self.most_bytes)
                yield from self._old(tp, bytes(fetched[at:end]))
                read_to = self.next_fetch_offset
            else:
                base, _, epoch, _, crc, attributes, last_delta, _, _, producer, _, _, count = unpack_header(fetched, at)
                if self.check_crcs and calc_crc32c(fetched[at + CHECKED_FROM : end]) != crc:
                    if run.batches:  # what lies before it is good
                        yield self._handed_on(tp, run)
                    raise CorruptRecordError(f"{tp.topic}, partition {tp.partition}, offset {base}: checksum")
                read_to = base + last_delta + 1
                if not self._is_hidden(fetched[at:end], attributes, producer, read_to - 1) and count:
                    codec, size = attributes & CODEC, end - at
                    unpacked = unpacked_bytes(codec, bytes(fetched[at + SHORTEST : end])) if codec else size
                    if run.batches and not run.takes(attributes & APPENDED, size, unpacked, count):
                        yield self._handed_on(tp, run)
                        run = Run(fetched, self.most_bytes)
                    if not run.batches:
                        run.first, run.appended = max(base, self.fetch_offset), attributes & APPENDED
                    if read_to > self.fetch_offset:
                        run.add(at, end, 1, count, unpacked, read_to)
                self.leader_epoch = epoch
            at = end
            if run.batches and not self._may_hide() and (plain := run.plain_behind(at, self.check_crcs)):
                end, batches, count, read_to, self.leader_epoch = plain
                run.add(at, end, batches, count, end - at, read_to)
                at = end
        if run.batches:
            yield self._handed_on(tp, run)
        self.next_fetch_offset = read_to
        self.drain()

    def _handed_on(self, tp: Any, run: Run) -> KafkaBatch:
        self.next_fetch_offset = run.next_offset
        self.records_read += run.records
        self.bytes_read += run.size_bytes
        raws, unpacked = run.raws(), run.unpacked_bytes
        return KafkaBatch(tp.partition, run.first, run.next_offset, raws, self.translated, unpacked, run.batches)

    def _old(self, tp: Any, raw: bytes) -> Iterator[OldBatch]:
        """The records of a message of a format before 2. Raises CorruptRecordError for what is no such message."""
        where = f"{tp.topic}, partition {tp.partition}, offset {int.from_bytes(raw[:LENGTH_AT])}"
        if raw[_MAGIC_AT : _MAGIC_AT + 1] >= bytes([MAGIC]):  # no check sum covers length and format
            raise CorruptRecordError(f"{where}: a batch of an unknown format, or without the whole of its header")
        try:
            batch = MemoryRecords(raw).next_batch()
        except (struct_error, CorruptRecordError):
            raise CorruptRecordError(f"{where}: a message without the whole of its header") from None
        if self.check_crcs and not batch.validate_crc():
            raise CorruptRecordError(f"{where}: checksum")
        old = [record for record in batch if record.offset >= self.fetch_offset]
        if old:
            self.next_fetch_offset = old[-1].offset + 1
            yield OldBatch(tp.partition, old[0].offset, self.next_fetch_offset, old, _appended(batch))

    def _is_hidden(self, raw: memoryview, attributes: int, producer: int, last_offset: int) -> bool:
        """Control batches, and with read_committed those of aborted transactions, as the fetcher would skip them."""
        control = bool(attributes & CONTROL)
        if self.isolation_level and producer >= 0:
            self._consume_aborted_transactions_up_to(last_offset)
            if control:
                if self._contains_abort_marker(DefaultRecordBatch(raw)):
                    self.aborted_producer_ids.discard(producer)
            elif attributes & TRANSACTIONAL and producer in self.aborted_producer_ids:
                return True
        return control

    def _may_hide(self) -> bool:
        """Whether batches from here on may be of an aborted transaction, or end one."""
        return bool(self.isolation_level and (self.aborted_producer_ids or self.aborted_transactions))


def _end(fetched: memoryview, at: int) -> int:
    """Where the batch ends that begins there; beyond all bytes where not even its length is there."""
    if at + OVERHEAD > len(fetched):
        return len(fetched) + 1
    length = int.from_bytes(fetched[at + LENGTH_AT : at + OVERHEAD], "big", signed=True)
    return at + OVERHEAD + max(length, 0)


def _appended(batch: Any) -> bool | None:
    """Of a message before format 2; one that wraps others speaks for them."""
    return None if batch.timestamp_type is None else bool(batch.timestamp_type)


def give_batches(consumer: KafkaConsumer, translated: Translation, most_bytes: int) -> None:
    """From now on poll() of the consumer returns lists of KafkaBatch, and its max_records counts these.

    translated: what makes an error of this package out of corrupt bytes, which are found when a batch is looked into.
    most_bytes: up to which batches of the log are joined; 0: each comes alone.
    """
    ours = {"translated": staticmethod(translated), "most_bytes": most_bytes}
    consumer._fetcher.PartitionRecords = type("WholeBatches", (WholeBatches,), ours)
