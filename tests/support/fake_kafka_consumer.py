"""The consumer of the model of Kafka: with a group a member of it, without one a reader of what it is assigned."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
from kafka import TopicPartition
from kafka.coordinator.base import Generation
from kafka.structs import ConsumerGroupMetadata, MemberState
from support.fake_kafka_broker import FakeCluster

from sfm_stream.transport.kafka.kafka_python import client
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch


class FakeConsumer:
    """poll() gives lists of KafkaBatch of committed records. It never chooses a position by itself."""

    def __init__(self, cluster: FakeCluster, host: Any, group: str | None, session_s: float) -> None:
        self._cluster, self._host = cluster, host
        self._positions: dict[TopicPartition, int | None] = {}
        """Of what is assigned; None until one is sought."""
        self._paused: set[TopicPartition] = set()
        self._member = _Membership(cluster, host, group, session_s, self) if group is not None else None
        if self._member is not None:
            cluster.members.append(self._member)

    # As a reader

    def assign(self, places: Iterable[TopicPartition]) -> None:
        self._positions = dict.fromkeys(places)

    def assignment(self) -> set[TopicPartition]:
        return set(self._positions)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._require_assigned(place)
        self._positions[place] = offset

    def position(self, place: TopicPartition, timeout_ms: int | None = None) -> int | None:
        self._require_assigned(place)
        return self._positions[place]

    def pause(self, *places: TopicPartition) -> None:
        self._paused.update(places)

    def resume(self, *places: TopicPartition) -> None:
        self._paused.difference_update(places)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        logs = self._cluster.topics.get(topic)
        return None if logs is None else set(range(len(logs)))

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[KafkaBatch]]:
        def effect() -> dict[TopicPartition, list[KafkaBatch]]:
            return {} if self._member is not None and not self._member.joined() else self._fetch()

        before = dict(self._positions)
        found = self._host.call("poll", effect)
        if not found and before == self._positions:
            self._host.wait(timeout_ms / 1000)
        return found

    # As a member of a group

    def subscribe(self, topics: list[str], listener: Any) -> None:
        assert self._member is not None
        self._member.topics, self._member.listener = topics, listener

    def group_metadata(self) -> ConsumerGroupMetadata:
        assert self._member is not None
        return self._member.metadata()

    def committed(self, place: TopicPartition, metadata: bool = False, timeout_ms: int = 60_000) -> Any:
        """Waits while an open transaction may change it. Raises KafkaTimeoutError."""
        assert self._member is not None
        group, until = self._cluster.group(self._member.group), self._cluster.monotonic_s() + timeout_ms / 1000
        while self._host.call("committed", lambda: group.undecided(place)):
            if self._cluster.monotonic_s() > until:
                raise kafka_errors.KafkaTimeoutError(str(place))
            self._host.wait(0.1)
        return group.offsets.get(place)

    def close(self, autocommit: bool = True, timeout_ms: int | None = None) -> None:
        """A request to leave that fails is not sent again."""
        if self._member is not None and self._member in self._cluster.members:
            self._cluster.members.remove(self._member)
            with suppress(kafka_errors.KafkaError):
                self._member.leave()

    def reassign(self, places: set[TopicPartition]) -> None:
        """What the group gave: positions are kept of what was there before."""
        self._positions = {place: self._positions.get(place) for place in sorted(places)}
        self._paused &= places

    def _fetch(self) -> dict[TopicPartition, list[KafkaBatch]]:
        found: dict[TopicPartition, list[KafkaBatch]] = {}
        for place, at in self._positions.items():
            if at is not None and place not in self._paused:
                batches, self._positions[place] = self._cluster.log(place).batches(
                    place.partition, at, self._host.fetches()
                )
                if batches:
                    found[place] = batches
        return found

    def _require_assigned(self, place: TopicPartition) -> None:
        if place not in self._positions:
            raise kafka_errors.IllegalStateError(f"{place} is not assigned")


class _Membership:
    """The client's side of the group protocol, step by step: join, sync, then what the application is told."""

    def __init__(self, cluster: FakeCluster, host: Any, group: str, session_s: float, consumer: FakeConsumer) -> None:
        self._cluster, self.host, self.group, self._session_s = cluster, host, group, session_s
        self._consumer = consumer
        self.topics: list[str] = []
        self.listener: Any = None
        self._assignor = client.HonestAssignor()
        self._assignor.coordinator = self
        self._generation, self._state = Generation.NO_GENERATION, MemberState.UNJOINED
        self._rejoin_needed, self._rejoining = True, False
        self._step = ""
        """Of the join that is under way: join, sync, done; empty where there is none."""
        self._assigned: Any = None

    def metadata(self) -> ConsumerGroupMetadata:
        name, number = self._me
        return ConsumerGroupMetadata(self.group, number, name, None, self._state)

    def joined(self) -> bool:
        """Drive the join as a poll does. False: it takes longer than the poll."""
        if not self._rejoin_needed:
            return True
        if not self._step:
            if not self._rejoining:
                self._prepare()
                self._rejoining = True
            self._start()
        for _ in range(3):
            self.network()
        if self._step == "done":
            self._complete()
            return True
        return False

    def network(self) -> None:
        """One step of the client's own thread, which goes on between polls."""
        if not self.host.live or self._step in ("", "done"):
            return
        group, me = self._cluster.group(self.group), self._me
        try:
            if self._step == "join":
                number = group.joined(me[0])
                if number is not None:
                    self._generation, self._step = Generation(number, me[0], self._assignor.name), "sync"
            else:
                if group.leader == me[0] and group.state == "assigning":
                    group.assign(*me, self._assignments())
                self._assigned = group.fetch(*me)
                self._step = "done" if self._assigned is not None else self._step
        except kafka_errors.KafkaError as error:
            self._step = ""
            self._take(error)

    def beat(self) -> None:
        """A heartbeat; for one that joins, its held request counts as one."""
        if not self.host.live:
            return
        group, me = self._cluster.group(self.group), self._me
        if self._step in ("join", "sync") and me[0] in group.members:
            group.members[me[0]].heard_s = self._cluster.monotonic_s()
        if self._state == MemberState.STABLE:
            try:
                group.heartbeat(*me)
            except kafka_errors.KafkaError as error:
                self._take(error)

    def leave(self) -> None:
        self.host.call("leave", lambda: self._cluster.group(self.group).leave(self._me[0]))
        self._reset()

    @property
    def _subscription(self) -> Any:
        """As kafka-python's, for the assignor."""
        return SimpleNamespace(
            assigned_partitions=self._consumer.assignment,
            rebalance_listener=self.listener,
            assign_from_subscribed=lambda places: self._consumer.reassign(set(places)),
        )

    @property
    def _me(self) -> tuple[str, int]:
        return self._generation.member_id, self._generation.generation_id

    def _take(self, error: kafka_errors.KafkaError) -> None:
        """What the coordinator objects to."""
        if isinstance(error, kafka_errors.UnknownMemberIdError):
            self._reset()
        elif isinstance(error, kafka_errors.IllegalGenerationError):
            self._reset(self._me[0])
        else:
            self._rejoin_needed = True

    def _reset(self, name: str = "") -> None:
        self._generation, self._state = Generation(-1, name, None), MemberState.UNJOINED
        self._rejoin_needed, self._step = True, ""

    def _prepare(self) -> None:
        lost = self._consumer.assignment()
        if lost and self._generation.is_lost():
            self.listener.on_partitions_lost(lost)
            self._consumer.reassign(set())

    def _start(self) -> None:
        self._state = MemberState.REBALANCING
        try:
            subscription = self._assignor.metadata(set(self.topics))
            name, number = self._me
            name = self._cluster.group(self.group).join(name, subscription, self._session_s)
            self._generation, self._step = Generation(number, name, None), "join"
        except kafka_errors.KafkaError as error:
            self._take(error)

    def _assignments(self) -> dict[str, Any]:
        group = self._cluster.group(self.group)
        members = [
            SimpleNamespace(member_id=name, metadata=member.subscription) for name, member in group.members.items()
        ]
        known = SimpleNamespace(
            topics=lambda: set(self.topics), partitions_for_topic=self._consumer.partitions_for_topic
        )
        return self._assignor.assign(known, members)

    def _complete(self) -> None:
        self._rejoining = self._rejoin_needed = False
        self._state, self._step = MemberState.STABLE, ""
        before, now = self._consumer.assignment(), set(self._assigned.partitions())
        self._consumer.reassign(now)
        self._assignor.on_assignment(self._assigned, self._generation.generation_id)
        if before - now:
            self.listener.on_partitions_revoked(before - now)
        if now - before:
            self.listener.on_partitions_assigned(now - before)
        self._rejoin_needed = bool(before - now)
