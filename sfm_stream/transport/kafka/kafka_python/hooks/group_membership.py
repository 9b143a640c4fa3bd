"""Membership in a consumer group: what kafka-python (3.0.12) loses of rebalances is seen through here.

docs/decisions/0012 and 0015.
"""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.net.wakeup_notifier import WakeupNotifier

from sfm_stream.transport.kafka.kafka_python.hooks.private_names import PrivateNames

RELIES_ON: PrivateNames = {
    "kafka.consumer.group:KafkaConsumer": {
        "_coordinator": "the membership of the consumer",
    },
    "kafka.coordinator.consumer:ConsumerCoordinator": {
        "_assignors": "name to the assignor that the membership uses",
        "_generation": "the generation of the member; is_lost() once it was thrown out",
        "_subscription": "what the consumer has, and the listener of its rebalances",
        "_net": "the network of the client, for a notifier on its thread",
        "ensure_active_group_async(self, timeout_ms=None)": (
            "poll() calls it, on the thread of the client, as long as a join is due"
        ),
        "poll_heartbeat(self)": "it raises what ended the heartbeat",
        "_do_join_and_sync_async(self)": (
            "one join from request to assignment; what it returns is taken up by the poll that waits"
        ),
        "request_rejoin(self)": "a join is due from then on until one has been taken up",
    },
    "kafka.coordinator.base:Generation": {
        "is_lost(self)": "it is true for a member that was thrown out of its group",
    },
    "kafka.consumer.subscription_state:SubscriptionState": {
        "assigned_partitions(self)": "all partitions that the consumer takes for its own",
        "assign_from_subscribed(self, assignments)": "it takes away all partitions that are not named",
        "rebalance_listener": "it is told of what is lost",
    },
    "kafka.coordinator.assignors.cooperative_sticky:CooperativeStickyAssignor": {
        "metadata(self, topics)": "it is asked at each join; the partitions that the member claims are in it",
        "member_assignment": "what the member claims when it joins",
    },
}


class HonestAssignor(CooperativeStickyAssignor):  # type: ignore[misc]  # kafka-python has no types
    """An assignor that claims nothing for a member that was thrown out of its group, and tells it what it lost.

    The assignor of kafka-python (3.0.12) goes on claiming the lost partitions, which are then given to nobody. And it
    does not tell a member that is thrown out while it rejoins: the member would go on with partitions that others have
    had in between.
    """

    coordinator: Any = None

    def metadata(self, topics: Any) -> Any:
        """What the member says when it joins."""
        if self.coordinator._generation.is_lost():
            self.member_assignment = None
            subscription = self.coordinator._subscription
            if lost := set(subscription.assigned_partitions()):
                subscription.rebalance_listener.on_partitions_lost(lost)
                subscription.assign_from_subscribed([])
        return super().metadata(topics)


class WholeJoins(ConsumerCoordinator):  # type: ignore[misc]
    """A member of a group that takes up the outcome of each of its joins, also of one that ends between two polls.

    kafka-python (3.0.12) joins on a thread of its own, and takes up the outcome in poll(). If a join ends between two
    polls, its outcome is thrown away, and the member joins anew. A leader that joins because partitions were added does
    not even join anew, since its assignment removed the reason: it sends no more heartbeats, is thrown out of the
    group, and is never told. Here a join ends only while poll() waits for it, and stays due until its outcome is taken
    up.
    """

    _polling = False
    _poll_began: WakeupNotifier | None = None

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


ASSIGNMENT_STRATEGY = [HonestAssignor]


def hook_membership(consumer: KafkaConsumer) -> None:
    """Make the membership of this consumer one of WholeJoins and HonestAssignor; for before its first poll."""
    coordinator = consumer._coordinator
    for assignor in coordinator._assignors.values():
        assignor.coordinator = coordinator
    coordinator.__class__ = WholeJoins
