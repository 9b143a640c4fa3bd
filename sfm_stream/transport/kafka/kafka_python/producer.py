"""A producer of transactions over that of kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from kafka.structs import TopicPartition as ClientTopicPartition

from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, TopicPartition
from sfm_stream.transport.kafka.kafka_python.hooks.producers import drop_what_is_in_flight
from sfm_stream.transport.kafka.kafka_python.translation import Translation
from sfm_stream.types import Record


class KafkaPythonProducer:
    """Implements cluster.Producer."""

    def __init__(self, producer: KafkaProducer, translated: Translation) -> None:
        self._producer, self._translated = producer, translated
        self._sent: list[Any] = []

    def init_transactions(self) -> None:
        with self._translated():
            self._producer.init_transactions()

    def begin(self) -> None:
        self._sent = []
        with self._translated():
            self._producer.begin_transaction()

    def send(self, record: Record) -> None:
        with self._translated():
            self._sent.append(
                self._producer.send(
                    record.topic,
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
            )

    def flush(self) -> None:
        with self._translated():
            self._producer.flush()
            for future in self._sent:
                future.get(timeout=0)

    def send_offsets(self, offsets: Mapping[TopicPartition, GroupOffset], membership: Membership) -> None:
        member = ConsumerGroupMetadata(membership.group, membership.generation, membership.member)
        theirs = {
            ClientTopicPartition(*at): OffsetAndMetadata(offset.offset, offset.metadata, -1)
            for at, offset in offsets.items()
        }
        with self._translated():
            self._producer.send_offsets_to_transaction(theirs, member)

    def commit(self) -> None:
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
