"""A producer of transactions over that of kafka-python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError, RecordListTooLargeError
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from kafka.structs import TopicPartition as ClientTopicPartition

from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, TopicPartition
from sfm_stream.transport.kafka.kafka_python.batch_body import batches_of, body
from sfm_stream.transport.kafka.kafka_python.hooks.batch_appends import append_batch
from sfm_stream.transport.kafka.kafka_python.hooks.producers import drop_what_is_in_flight
from sfm_stream.transport.kafka.kafka_python.translation import Translation
from sfm_stream.types import Record

BATCH_BYTES = 1 << 20
"""The size of the largest batch, but for one with a larger record: what every topic takes by default."""


class KafkaPythonProducer:
    """Implements cluster.Producer."""

    def __init__(self, producer: KafkaProducer, translated: Translation) -> None:
        self._producer, self._translated = producer, translated
        self._unsent: list[Record] = []

    def init_transactions(self) -> None:
        with self._translated():
            self._producer.init_transactions()

    def begin(self) -> None:
        self._unsent = []
        with self._translated():
            self._producer.begin_transaction()

    def send(self, record: Record) -> None:
        self._unsent.append(record)  # all of them together, in flush(), cost a tenth

    def flush(self) -> None:
        records, self._unsent = self._unsent, []
        with self._translated():
            batches = list(batches_of(records, BATCH_BYTES))
            sent = [self._append(batch) for batch in batches]
            self._producer.flush()
            for batch, future in zip(batches, sent, strict=True):
                try:
                    future.get(timeout=0)
                except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
                    raise type(error)(_place(batch)) from error

    def _append(self, batch: Sequence[Record]) -> Any:
        first, last_ms = batch[0], max(record.timestamp_ms for record in batch)
        at = (self._producer, first.topic, first.partition)
        return append_batch(*at, body(batch), len(batch), first.timestamp_ms, last_ms)

    def send_offsets(self, offsets: Mapping[TopicPartition, GroupOffset], membership: Membership) -> None:
        member = ConsumerGroupMetadata(membership.group, membership.generation, membership.member)
        theirs = {
            ClientTopicPartition(*at): OffsetAndMetadata(offset.offset, offset.metadata, -1)
            for at, offset in offsets.items()
        }
        with self._translated():
            self._producer.send_offsets_to_transaction(theirs, member)

    def commit(self) -> None:
        if self._unsent:
            self.flush()
        with self._translated():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with self._translated():
            self._producer.abort_transaction()

    def discard(self) -> None:
        with suppress(Exception):
            drop_what_is_in_flight(self._producer)  # its close() would first wait for that
        with suppress(Exception):
            self._producer.close(timeout=0)


def _place(batch: Sequence[Record]) -> str:
    """Where a batch was to go, and how large it is."""
    size = sum(len(record.key) + len(record.value) for record in batch)
    return f"topic {batch[0].topic}, partition {batch[0].partition}, {size:,} bytes of {len(batch)} records"
