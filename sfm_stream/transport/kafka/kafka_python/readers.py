"""Readers of committed records over the consumer of kafka-python: one in a consumer group, one without a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.structs import MemberState

from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, Rebalance
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.transport.kafka.kafka_python.hooks.topic_ids import known_topic_id
from sfm_stream.transport.kafka.kafka_python.translation import Translation

_POSITION_MS, _COMMITTED_MS = 1000, 5000
_LEAVE_MS, _CLOSE_MS = 3000, 1000


class KafkaPythonGroupReader:
    """Implements cluster.GroupReader."""

    def __init__(self, consumer: KafkaConsumer, topic: str, translated: Translation) -> None:
        self._consumer, self._topic, self._translated = consumer, topic, translated
        self._listener = _RebalanceListener(consumer)
        consumer.subscribe([topic], listener=self._listener)

    def poll(self, wait_ms: int, max_batches: int) -> dict[int, list[KafkaBatch]]:
        with self._translated():
            batches = self._consumer.poll(timeout_ms=wait_ms, max_records=max_batches)
        return {topic_partition.partition: of_one for topic_partition, of_one in batches.items()}

    def rebalances(self) -> list[Rebalance]:
        return self._listener.drain()

    def membership(self) -> Membership:
        with self._translated():
            now = self._consumer.group_metadata()
        return Membership(now.group_id, now.member_id, now.generation_id, now.state == MemberState.STABLE)

    def partition_count(self) -> int:
        with self._translated():
            return len(self._consumer.partitions_for_topic(self._topic) or ())

    def topic_id(self) -> str:
        return known_topic_id(self._consumer, self._topic)

    def assigned(self) -> set[int]:
        return {topic_partition.partition for topic_partition in self._consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        with self._translated():
            self._consumer.seek(self._topic_partition(partition), offset)

    def pause(self, partition: int) -> None:
        with self._translated():
            self._consumer.pause(self._topic_partition(partition))

    def resume(self, partition: int) -> None:
        with self._translated():
            self._consumer.resume(self._topic_partition(partition))

    def position(self, partition: int) -> int | None:
        with self._translated():
            position = self._consumer.position(self._topic_partition(partition), timeout_ms=_POSITION_MS)
        return None if position is None else int(position)

    def committed(self, partition: int) -> GroupOffset | None:
        with self._translated():
            topic_partition = self._topic_partition(partition)
            offset = self._consumer.committed(topic_partition, metadata=True, timeout_ms=_COMMITTED_MS)
        return None if offset is None else GroupOffset(offset.offset, offset.metadata)

    def close(self) -> None:
        with self._translated():
            self._consumer.close(autocommit=False, timeout_ms=_LEAVE_MS)

    def _topic_partition(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)


class _RebalanceListener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Collects rebalances until drain(). It runs on the client's own thread, where nothing may wait for the cluster."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._noted: list[Rebalance] = []

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._noted.append(Rebalance(False, _numbers(revoked)))

    def on_partitions_lost(self, lost: Any) -> None:
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, assigned: Any) -> None:
        for topic_partition in assigned:
            # Any offset will do: with one the client looks none up, and the transport seeks to the right one before it
            # resumes the partition.
            self._consumer.seek(topic_partition, 0)
            self._consumer.pause(topic_partition)
        self._noted.append(Rebalance(True, _numbers(assigned)))

    def drain(self) -> list[Rebalance]:
        noted, self._noted = self._noted, []
        return noted


def _numbers(topic_partitions: Any) -> tuple[int, ...]:
    return tuple(sorted(topic_partition.partition for topic_partition in topic_partitions))


class KafkaPythonPartitionReader:
    """Implements cluster.PartitionReader."""

    def __init__(self, consumer: KafkaConsumer, translated: Translation) -> None:
        self._consumer, self._translated = consumer, translated

    def fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> tuple[Sequence[KafkaBatch], int]:
        consumer, topic_partition = self._consumer, TopicPartition(topic, partition)
        with self._translated():
            if consumer.assignment() != {topic_partition}:
                consumer.assign([topic_partition])
                consumer.seek(topic_partition, offset)
            elif consumer.position(topic_partition) != offset:
                consumer.seek(topic_partition, offset)
            batches = consumer.poll(timeout_ms=wait_ms).get(topic_partition, [])
            return batches, consumer.position(topic_partition)

    def close(self) -> None:
        with self._translated():
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)
