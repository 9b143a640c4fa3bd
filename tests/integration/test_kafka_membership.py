"""A real broker throws a member out while it joins anew: it has to be told, and must not go on where it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.structs import MemberState
from support.kafka_topics import make_topic, topic_name
from support.patience import patiently

from sfm_stream.errors import StateError
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.types import Commit, InputEnd, Step


def test_a_member_that_is_thrown_out_while_it_joins_is_told(kafka: str) -> None:
    name = topic_name("membership")
    make_topic(kafka, name, 2)
    make_topic(kafka, f"{name}.ledger", 2)
    cluster = KafkaPythonCluster((kafka,), session_ms=6000)
    first, second, third = (_open(cluster, name) for _ in range(3))
    try:
        _until(lambda: all(map(_settled, (first, second))), first, second)
        held = sorted(first._states.positions())
        before = first._membership
        # A third one asks to join; the first one does as well, and waits for the second, which says nothing.
        _until(lambda: _state(third) == MemberState.REBALANCING, third)
        _until(lambda: _state(first) == MemberState.REBALANCING, first)
        first.commit(Step(commit=(Commit(held[0], 0, b""),)))  # accepted or not, by how far the others are
        with KafkaAdminClient(bootstrap_servers=kafka) as admin:
            admin.remove_group_members(name, [MemberToRemove(member_id=before.member)])
        third.close()
        told: list[tuple[str, int]] = []
        _until(lambda: first._membership not in (None, before) and first._states.positions(), first, second, told=told)
        assert ("Revoked", held[0]) in told
        assert told.index(("Revoked", held[0])) < min(n for n, (kind, _) in enumerate(told) if kind == "Assigned")
        assert sorted([*first._states.positions(), *second._states.positions()]) == [0, 1]
    finally:
        for transport in (first, second):
            transport.close()


def test_a_leader_whose_rejoin_ends_between_two_polls_takes_part_in_it(kafka: str) -> None:
    """Partitions are added, and the leader joins anew for that alone; the other member lets it wait for some polls."""
    name = topic_name("membership")
    make_topic(kafka, name, 2)
    make_topic(kafka, f"{name}.ledger", 2)
    cluster = KafkaPythonCluster((kafka,), session_ms=6000)
    members = [_open(cluster, name) for _ in range(2)]
    try:
        _until(lambda: all(map(_settled, members)), *members)
        leader, other = sorted(members, key=lambda member: not _consumer(member)._coordinator._is_leader)
        before = leader._membership
        with KafkaAdminClient(bootstrap_servers=kafka) as admin:
            admin.create_partitions({name: 4})
        _consumer(leader)._client.cluster.request_update()
        _until(lambda: _state(leader) == MemberState.REBALANCING, leader)
        # Its answer comes while it is not in poll(), as soon as the other one has joined too.
        with suppress(StateError):  # the other one may not have heard of the new partitions but for being given one
            _until(lambda: len(other._states.positions()) > 1, other)
        with pytest.raises(StateError, match="had 2 partitions and now has 4"):
            _until(lambda: False, leader)
        assert leader._reader.membership().generation > before.generation
    finally:
        for transport in members:
            transport.close()


def _open(cluster: KafkaPythonCluster, name: str) -> KafkaTransport:
    return KafkaTransport(cluster, Endpoints(name, name, "worker", f"{name}.ledger", {}), TopicLog(cluster))


def _settled(member: KafkaTransport) -> bool:
    return bool(member._states.positions()) and _state(member) == MemberState.STABLE


def _state(member: KafkaTransport) -> MemberState:
    return _consumer(member).group_metadata().state


def _consumer(member: KafkaTransport) -> KafkaConsumer:
    return member._reader._consumer


def _until(
    done: Callable[[], object],
    *polled: KafkaTransport,
    told: list[tuple[str, int]] | None = None,
) -> None:
    """Poll these; told: what the first of them is told of its partitions."""
    for _ in patiently(lambda: told):
        if done():
            return
        for transport in polled:
            found = [(type(e).__name__, e.partition) for e in transport.poll() if not isinstance(e, InputEnd)]
            if told is not None and transport is polled[0]:
                told += found
