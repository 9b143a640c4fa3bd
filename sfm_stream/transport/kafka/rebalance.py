"""What rebalances of a consumer group bring, noted while they happen."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener


class Rebalance(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Notes what a rebalance brings. It runs on the client's own thread, where nothing may wait for the cluster."""

    def __init__(self) -> None:
        self.consumer: KafkaConsumer | None = None
        self._changes: list[tuple[bool, list[int]]] = []

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._changes.append((False, sorted(place.partition for place in revoked)))

    def on_partitions_lost(self, lost: Any) -> None:
        self.on_partitions_revoked(lost)

    def on_partitions_assigned(self, assigned: Any) -> None:
        assert self.consumer is not None
        for place in assigned:
            # Any position but one to be looked up: the right one is sought before the partition is resumed.
            self.consumer.seek(place, 0)
            self.consumer.pause(place)
        self._changes.append((True, sorted(place.partition for place in assigned)))

    def drain(self) -> list[tuple[bool, list[int]]]:
        changes, self._changes = self._changes, []
        return changes
