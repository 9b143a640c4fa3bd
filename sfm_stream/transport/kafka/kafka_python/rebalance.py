"""What rebalances of a consumer group bring, noted while they happen, and seen through."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.net.wakeup_notifier import WakeupNotifier


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


class WholeJoins(ConsumerCoordinator):  # type: ignore[misc]
    """A member of a group that sees each of its joins through, though it ends between two polls.

    kafka-python (3.0.12) joins on a thread of its own, and takes up the outcome in poll(). What ended between two
    polls it throws away and joins anew; a leader that joins because partitions were added does not even do that, for
    assigning them removes its reason: it sends no heartbeat any more, is thrown out of the group, and never told.
    Here a join has no outcome but while poll() waits for it, and stays due until that has been taken up.
    """

    _polling = False
    _poll_began: WakeupNotifier | None = None

    @classmethod
    def become(cls, consumer: KafkaConsumer) -> None:
        """Make the membership of this consumer one; for before its first poll."""
        consumer._coordinator.__class__ = cls

    async def ensure_active_group_async(self, timeout_ms: int | None = None) -> bool:
        """As the client's own; poll() calls it, on the client's thread, as long as a join is due."""
        self._polling = True
        if self._poll_began is not None:
            self._poll_began.notify()
        try:
            return bool(await super().ensure_active_group_async(timeout_ms))
        finally:
            self._polling = False

    def poll_heartbeat(self) -> None:
        """As the client's own, which raises what ended its heartbeat; it starts another only together with a join."""
        try:
            super().poll_heartbeat()
        except BaseException:
            self.request_rejoin()
            raise

    async def _do_join_and_sync_async(self) -> bytes:
        self.request_rejoin()
        assignment: bytes = await super()._do_join_and_sync_async()
        self._poll_began = WakeupNotifier(self._net)
        while not self._polling:
            await self._poll_began()
        self._poll_began = None
        return assignment
