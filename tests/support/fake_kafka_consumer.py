"""The readers of the model of Kafka: a member of a group, and one without a group."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
from kafka import TopicPartition as Place
from kafka.coordinator.base import Generation
from support.fake_kafka_broker import FakeBatch, FakeBroker
from support.fake_kafka_host import ClientHost

from sfm_stream.transport.kafka.cluster_values import GroupOffset, Membership, Rebalance
from sfm_stream.transport.kafka.kafka_python.hooks import group_membership
from sfm_stream.transport.kafka.kafka_python.translation import translated

MODEL = ("model",)
"""Its bootstrap servers, as errors name them."""
_COMMITTED_S = 5.0


class FakePartitionReader:
    """A PartitionReader."""

    def __init__(self, broker: FakeBroker, host: ClientHost) -> None:
        self._broker, self._host = broker, host

    @translated(MODEL)
    def fetch(self, topic: str, partition: int, offset: int, wait_ms: int) -> tuple[list[FakeBatch], int]:
        def effect() -> tuple[list[FakeBatch], int]:
            return self._broker.log((topic, partition)).batches(partition, offset, self._host.fetches())

        batches, reached = self._host.call("poll", effect)
        if not batches and reached == offset:
            self._host.wait(wait_ms / 1000)
        return batches, reached

    def close(self) -> None: ...


class FakeGroupReader:
    """A GroupReader. What a rebalance brings is noted while it happens, as by the listener of the client."""

    def __init__(self, broker: FakeBroker, host: ClientHost, group: str, topic: str, session_s: float) -> None:
        self._broker, self._host, self._topic = broker, host, topic
        self._positions: dict[Place, int | None] = {}
        """Of what is assigned; None until one is sought."""
        self._paused: set[Place] = set()
        self._noted: list[Rebalance] = []
        self._member = _GroupMember(broker, host, group, topic, session_s, self)
        broker.members.append(self._member)

    # As a GroupReader

    @translated(MODEL)
    def poll(self, wait_ms: int, max_batches: int) -> dict[int, list[FakeBatch]]:
        before = dict(self._positions)
        batches = self._host.call("poll", lambda: self._fetch() if self._member.joined() else {})
        if not batches and before == self._positions:
            self._host.wait(wait_ms / 1000)
        return batches

    def rebalances(self) -> list[Rebalance]:
        noted, self._noted = self._noted, []
        return noted

    def membership(self) -> Membership:
        return self._member.membership()

    def partition_count(self) -> int:
        return len(self._broker.topics.get(self._topic, []))

    def topic_id(self) -> str:
        facts = self._broker.facts.get(self._topic)
        return "" if facts is None else facts.topic_id

    def assigned(self) -> set[int]:
        return {place.partition for place in self._positions}

    @translated(MODEL)
    def seek(self, partition: int, offset: int) -> None:
        self._positions[self._assigned_place(partition)] = offset

    @translated(MODEL)
    def pause(self, partition: int) -> None:
        self._paused.add(self._assigned_place(partition))

    @translated(MODEL)
    def resume(self, partition: int) -> None:
        self._paused.discard(self._assigned_place(partition))

    @translated(MODEL)
    def position(self, partition: int) -> int | None:
        return self._positions[self._assigned_place(partition)]

    @translated(MODEL)
    def committed(self, partition: int) -> GroupOffset | None:
        """Waits while an open transaction may change it."""
        place = (self._topic, partition)
        group, until_s = self._broker.group(self._member.group), self._broker.monotonic_s() + _COMMITTED_S
        while self._host.call("committed", lambda: group.undecided(place)):
            if self._broker.monotonic_s() > until_s:
                raise kafka_errors.KafkaTimeoutError(str(place))
            self._host.wait(0.1)
        return group.offsets.get(place)

    def close(self) -> None:
        """A request to leave that fails is not sent again."""
        if self._member in self._broker.members:
            self._broker.members.remove(self._member)
            with suppress(kafka_errors.KafkaError):
                self._member.leave()

    # For its member

    def places(self) -> set[Place]:
        return set(self._positions)

    def reassign(self, places: Iterable[Place]) -> None:
        """What the group gave: positions are kept of what was there before."""
        self._positions = {place: self._positions.get(place) for place in sorted(places)}
        self._paused &= self._positions.keys()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        logs = self._broker.topics.get(topic)
        return None if logs is None else set(range(len(logs)))

    def on_partitions_revoked(self, places: set[Place]) -> None:
        self._noted.append(Rebalance(False, tuple(sorted(place.partition for place in places))))

    on_partitions_lost = on_partitions_revoked

    def on_partitions_assigned(self, places: set[Place]) -> None:
        for place in places:
            self._positions[place] = 0
            self._paused.add(place)
        self._noted.append(Rebalance(True, tuple(sorted(place.partition for place in places))))

    def _fetch(self) -> dict[int, list[FakeBatch]]:
        fetched: dict[int, list[FakeBatch]] = {}
        for place, at in self._positions.items():
            if at is not None and place not in self._paused:
                batches, self._positions[place] = self._broker.log(place).batches(
                    place.partition, at, self._host.fetches()
                )
                if batches:
                    fetched[place.partition] = batches
        return fetched

    def _assigned_place(self, partition: int) -> Place:
        place = Place(self._topic, partition)
        if place not in self._positions:
            raise kafka_errors.IllegalStateError(f"{place} is not assigned")
        return place


class _GroupMember:
    """The client's side of the group protocol, step by step: join, sync, then what the application is told."""

    def __init__(
        self, broker: FakeBroker, host: ClientHost, group: str, topic: str, session_s: float, reader: FakeGroupReader
    ) -> None:
        self._broker, self.host, self.group, self._session_s = broker, host, group, session_s
        self._reader, self._topics = reader, {topic}
        self._assignor = group_membership.HonestAssignor()
        self._assignor.coordinator = self
        self._generation, self._stable = Generation.NO_GENERATION, False
        self._rejoin_needed, self._rejoining = True, False
        self._step = ""
        """Of the join that is under way: join, sync, done; empty where there is none."""
        self._assigned: Any = None

    def membership(self) -> Membership:
        name, number = self._me
        return Membership(self.group, name, number, self._stable)

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
        group, me = self._broker.group(self.group), self._me
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
        group, me = self._broker.group(self.group), self._me
        if self._step in ("join", "sync") and me[0] in group.members:
            group.members[me[0]].heard_s = self._broker.monotonic_s()
        if self._stable:
            try:
                group.heartbeat(*me)
            except kafka_errors.KafkaError as error:
                self._take(error)

    def leave(self) -> None:
        self.host.call("leave", lambda: self._broker.group(self.group).leave(self._me[0]))
        self._reset()

    @property
    def _subscription(self) -> Any:
        """As kafka-python's, for the assignor."""
        return SimpleNamespace(
            assigned_partitions=self._reader.places,
            rebalance_listener=self._reader,
            assign_from_subscribed=self._reader.reassign,
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
        self._generation, self._stable = Generation(-1, name, None), False
        self._rejoin_needed, self._step = True, ""

    def _prepare(self) -> None:
        lost = self._reader.places()
        if lost and self._generation.is_lost():
            self._reader.on_partitions_lost(lost)
            self._reader.reassign(set())

    def _start(self) -> None:
        self._stable = False
        try:
            subscription = self._assignor.metadata(self._topics)
            name, number = self._me
            name = self._broker.group(self.group).join(name, subscription, self._session_s)
            self._generation, self._step = Generation(number, name, None), "join"
        except kafka_errors.KafkaError as error:
            self._take(error)

    def _assignments(self) -> dict[str, Any]:
        group = self._broker.group(self.group)
        members = [
            SimpleNamespace(member_id=name, metadata=member.subscription) for name, member in group.members.items()
        ]
        known = SimpleNamespace(topics=lambda: self._topics, partitions_for_topic=self._reader.partitions_for_topic)
        assignments: dict[str, Any] = self._assignor.assign(known, members)
        return assignments

    def _complete(self) -> None:
        self._rejoining = self._rejoin_needed = False
        self._stable, self._step = True, ""
        before, now = self._reader.places(), set(self._assigned.partitions())
        self._reader.reassign(now)
        self._assignor.on_assignment(self._assigned, self._generation.generation_id)
        if before - now:
            self._reader.on_partitions_revoked(before - now)
        if now - before:
            self._reader.on_partitions_assigned(now - before)
        self._rejoin_needed = bool(before - now)
