"""What a member of a group may believe it has, on the model of Kafka: while it joins, and once it was thrown out."""

from __future__ import annotations

from threading import RLock

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.future import Future
from support.fake_kafka import FakeCluster, run_on
from support.fake_kafka_broker import FakeBroker
from support.fake_kafka_host import Host

from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.kafka_python.hooks import group_membership
from sfm_stream.transport.kafka.kafka_python.hooks.group_membership import HonestAssignor, WholeJoins
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.types import Commit, InputEnd, Step


class Pair:
    """A worker that has the only partition, and another one that has asked to join its group."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.cluster = FakeBroker()
        run_on(self.cluster, patch)
        for topic in ("in", "ledger"):
            self.cluster.create(topic, 1)
        self.host = Host(self.cluster)
        self.worker, self.other = self._open(self.host), self._open(Host(self.cluster))
        while not self.worker._states.positions():
            self.worker.poll()
        self.other._reader._member.joined()
        self.cluster.advance(0.1)
        self.member = self.worker._reader._member

    def _open(self, host: Host) -> KafkaTransport:
        cluster = FakeCluster(session_ms=6_000, broker=self.cluster, host=host)
        return KafkaTransport(cluster, Endpoints("in", "group", "worker", "ledger", {}), TopicLog(cluster))

    def commit(self) -> bool:
        return self.worker.commit(Step(commit=(Commit(0, 0, b""),)))


def test_a_generation_counts_from_when_its_partitions_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then commits go under the one before, which the coordinator refuses."""
    pair = Pair(monkeypatch)
    assert pair.commit()
    network = pair.member.network
    with monkeypatch.context() as held:
        held.setattr(pair.member, "network", lambda: None)
        pair.worker.poll()
        before = pair.worker._membership.generation
        network()
        pair.worker.poll()
        assert pair.worker._reader.membership().generation == before + 1
        assert not pair.commit()
    pair.worker.poll()
    assert pair.commit()


@pytest.mark.parametrize("assignor", [HonestAssignor, CooperativeStickyAssignor])
def test_a_member_that_is_thrown_out_while_it_joins_is_told(assignor: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python's own assignor lets it go on where it was, after another worker has had the partition."""
    monkeypatch.setattr(group_membership, "HonestAssignor", assignor)
    pair = Pair(monkeypatch)
    with monkeypatch.context() as held:
        held.setattr(pair.member, "network", lambda: None)
        pair.worker.poll()  # it asks to join
        pair.host.live = False
        pair.cluster.advance(10.0)  # and does not hear the answer
        while not pair.other._states.positions():
            pair.other.poll()
        pair.host.live = True
    assert pair.cluster.group("group").lost == 1
    pair.other.close()
    told = [type(e).__name__ for _ in range(9) for e in pair.worker.poll() if not isinstance(e, InputEnd)]
    assert pair.commit()
    assert told == (["Revoked", "Assigned"] if assignor is HonestAssignor else [])


def test_a_heartbeat_that_died_is_started_again_with_a_join():
    member = WholeJoins.__new__(WholeJoins)
    member._lock, member.rejoin_needed = RLock(), False
    member._heartbeat_loop_future = Future().failure(RuntimeError("a race"))
    with pytest.raises(RuntimeError):
        member.poll_heartbeat()
    assert member.rejoin_needed
