"""The protocol of a Kafka cluster: the same laws for the client library on a real broker, and for the model."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from support.fake_kafka import FakeCluster
from support.kafka_topics import KEPT
from support.patience import patiently, until

from sfm_stream.errors import BrokerAway, BrokerError
from sfm_stream.transport.kafka.cluster import Admin, Cluster, GroupReader, PartitionReader, Producer
from sfm_stream.transport.kafka.cluster_values import (
    Creation,
    GroupOffset,
    NewTopic,
    Rebalance,
    TopicPartition,
)
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_facts import CREATE_TIME
from sfm_stream.types import Record

POLL_MS, BATCHES = 200, 500


@pytest.fixture(params=["model", pytest.param("kafka", marks=pytest.mark.kafka)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "kafka":
        return KafkaPythonCluster((request.getfixturevalue("kafka"),), session_ms=6_000, transaction_ms=20_000)
    return FakeCluster(session_ms=6_000, transaction_ms=20_000)


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with contextlib.closing(cluster.admin()) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    """Of two partitions."""
    name = f"cluster-{uuid.uuid4().hex[:12]}"
    assert admin.create(NewTopic(name, 2, 1, KEPT))
    return name


@pytest.fixture
def opened() -> Iterator[Callable[[str], Producer]]:
    with contextlib.ExitStack() as stack:

        def open_producer(cluster: Cluster, transactional_id: str) -> Producer:
            producer = cluster.producer(transactional_id)
            stack.callback(producer.discard)
            producer.init_transactions()
            return producer

        yield open_producer


def records(topic: str, values: Sequence[bytes], partition: int = 0, stamp_ms: int = 1_000) -> list[Record]:
    return [Record(topic, partition, b"k", value, stamp_ms + number) for number, value in enumerate(values)]


def write(producer: Producer, sent: Sequence[Record]) -> None:
    producer.begin()
    for record in sent:
        producer.send(record)
    producer.flush()


def settle(admin: Admin, topic: str, partition: int = 0) -> int:
    """The end of a partition, once no transaction is open in it."""

    def ends() -> tuple[int, int]:
        stable, high = (admin.ends(topic, [partition], stable=stable)[partition] for stable in (True, False))
        return stable, high

    until(lambda: len(set(ends())) == 1, lambda: "a transaction stays open")
    return ends()[0]


def committed(reader: PartitionReader, topic: str, stop: int, partition: int = 0, start: int = 0) -> list[bytes | None]:
    """Values of the records of committed transactions in [start, stop)."""
    values: list[bytes | None] = []
    for _ in patiently(lambda: f"not all comes up to offset {stop}"):
        if start >= stop:
            break
        batches, reached = reader.fetch(topic, partition, start, POLL_MS)
        for batch in batches:
            assert start <= batch.first < batch.next_offset <= reached
            assert batch.timestamp_type == CREATE_TIME
            assert len(batch.offsets()) == len(batch.arrivals()) == batch.count == len(batch.keys())
            values += batch.values()
        start = reached
    return values


# Topics


def test_a_topic_is_made_once_and_described(cluster: Cluster, admin: Admin, topic: str) -> None:
    assert not admin.create(NewTopic(topic, 5, 1, {}))
    assert admin.partition_count(topic) == 2
    facts = admin.facts([topic, f"{topic}-missing"])
    assert facts.keys() == {topic}
    assert (facts[topic].name, facts[topic].partitions, facts[topic].replication) == (topic, 2, 1)
    assert facts[topic].topic_id
    assert {name: facts[topic].configs[name] for name in KEPT} == {name: str(value) for name, value in KEPT.items()}
    assert topic in admin.topics()


def test_a_topic_that_is_missing_is_none(admin: Admin, topic: str) -> None:
    missing = f"{topic}-missing"
    assert admin.partition_count(missing) == 0
    assert admin.facts([missing]) == {}
    assert admin.existing([topic, missing]) == {topic}
    assert missing not in admin.topics()


def test_of_several_topics_those_that_are_missing_are_made(admin: Admin, topic: str) -> None:
    other = f"{topic}-other"
    results = admin.create_all([NewTopic(name, 2, 1, KEPT) for name in (topic, other)])
    assert {name: result.outcome for name, result in results.items()} == {
        topic: Creation.EXISTS,
        other: Creation.CREATED,
    }
    assert all(result.error is None for result in results.values())
    admin.await_leaders([other])
    assert admin.partition_count(other) == 2
    assert admin.create_all([]) == {}


# Offsets


def test_offsets_of_an_empty_partition(admin: Admin, topic: str) -> None:
    assert admin.starts(topic, [0, 1]) == {0: 0, 1: 0}
    assert admin.ends(topic, [0, 1], stable=True) == admin.ends(topic, [0, 1], stable=False) == {0: 0, 1: 0}
    assert admin.offsets_since(topic, [0], 1) == {0: -1}
    assert admin.first_records(topic, [0, 1]) == {}
    assert admin.starts(topic, []) == {}


def test_offsets_of_records_by_place_and_time(cluster: Cluster, admin: Admin, topic: str, opened) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, records(topic, [b"a", b"b", b"c"], stamp_ms=5_000))
    producer.commit()
    end = settle(admin, topic)
    assert end == 4
    assert admin.starts(topic, [0]) == {0: 0}
    assert admin.first_records(topic, [0, 1]) == {0: (0, 5_000)}
    assert admin.offsets_since(topic, [0], 5_002) == {0: 2}
    assert admin.offsets_since(topic, [0], 5_003) == {0: 3}, "the marker of the commit is stamped with its time"
    assert admin.offsets_since(topic, [0], 1 << 45) == {0: -1}
    query = admin.ask_log_ends(topic, [0, 1])
    assert query.over.wait(60)
    assert (query.told, query.refused, query.why) == ({0: end, 1: 0}, set(), {})


def test_offsets_of_a_topic_that_is_missing_are_an_error_of_the_broker(admin: Admin, topic: str) -> None:
    with pytest.raises(BrokerError):
        admin.ends(f"{topic}-missing", [0], stable=True)


# Transactions


def test_records_are_read_once_their_transaction_is_committed(
    cluster: Cluster, admin: Admin, topic: str, opened
) -> None:
    producer = opened(cluster, f"{topic}.id")
    with contextlib.closing(cluster.partition_reader()) as reader:
        write(producer, records(topic, [b"a", b"b"]))
        assert admin.ends(topic, [0], stable=True) == {0: 0}
        assert admin.ends(topic, [0], stable=False) == {0: 2}
        assert reader.fetch(topic, 0, 0, POLL_MS) == ([], 0)
        producer.commit()
        assert committed(reader, topic, settle(admin, topic)) == [b"a", b"b"]
        assert committed(reader, topic, 2, start=1) == [b"b"]


def test_records_of_an_aborted_transaction_are_never_read(cluster: Cluster, admin: Admin, topic: str, opened) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, records(topic, [b"aborted"]))
    producer.abort()
    write(producer, records(topic, [b"kept"]))
    producer.commit()
    with contextlib.closing(cluster.partition_reader()) as reader:
        assert committed(reader, topic, settle(admin, topic)) == [b"kept"]


def test_a_transaction_is_of_several_partitions(cluster: Cluster, admin: Admin, topic: str, opened) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, [*records(topic, [b"a"]), *records(topic, [b"b"], partition=1)])
    producer.commit()
    with contextlib.closing(cluster.partition_reader()) as reader:
        for partition, value in enumerate((b"a", b"b")):
            assert committed(reader, topic, settle(admin, topic, partition), partition) == [value]


def test_a_producer_ends_the_one_before_it_and_what_that_left_open(
    cluster: Cluster, admin: Admin, topic: str, opened
) -> None:
    before = opened(cluster, f"{topic}.id")
    write(before, records(topic, [b"left open"]))
    after = opened(cluster, f"{topic}.id")
    with pytest.raises(BrokerAway):
        before.commit()
    before.discard()
    write(after, records(topic, [b"after"]))
    after.commit()
    with contextlib.closing(cluster.partition_reader()) as reader:
        assert committed(reader, topic, settle(admin, topic)) == [b"after"]


def test_a_producer_that_is_discarded_raises_nothing_and_commits_nothing(
    cluster: Cluster, admin: Admin, topic: str, opened
) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, records(topic, [b"open"]))
    producer.discard()
    producer.discard()
    opened(cluster, f"{topic}.id")
    with contextlib.closing(cluster.partition_reader()) as reader:
        assert committed(reader, topic, settle(admin, topic)) == []


# Groups


class Member:
    """A reader of a group; what its rebalances brought, in order."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.reader: GroupReader = cluster.group_reader(f"{topic}.group", topic)
        self.rebalances: list[Rebalance] = []

    def poll(self) -> dict[int, list[bytes | None]]:
        batches = self.reader.poll(POLL_MS, BATCHES)
        self.rebalances += self.reader.rebalances()
        return {number: [v for batch in each for v in batch.values()] for number, each in batches.items()}

    @property
    def given(self) -> set[int]:
        """By what it was told."""
        partitions: set[int] = set()
        for rebalance in self.rebalances:
            partitions = (
                partitions.union(rebalance.partitions)
                if rebalance.given
                else partitions.difference(rebalance.partitions)
            )
        return partitions


@contextlib.contextmanager
def joined(cluster: Cluster, topic: str, *others: Member) -> Iterator[Member]:
    member = Member(cluster, topic)
    try:
        shared(member, *others)
        yield member
    finally:
        member.reader.close()


def shared(*members: Member) -> None:
    """Until the members have both partitions between them, and have settled."""
    for _ in patiently(lambda: [member.rebalances for member in members]):
        for member in members:
            assert not member.poll(), "a partition brings records before its position is sought"
        if all(member.reader.membership().settled and member.given for member in members) and (
            sorted(partition for member in members for partition in member.given) == [0, 1]
        ):
            return


def test_a_member_is_given_partitions_that_wait_for_their_position(
    cluster: Cluster, topic: str, opened, admin: Admin
) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, records(topic, [b"a", b"b"]))
    producer.commit()
    settle(admin, topic)
    with joined(cluster, topic) as member:
        assert member.reader.assigned() == member.given == {0, 1}
        membership = member.reader.membership()
        assert (membership.group, membership.valid, membership.settled) == (f"{topic}.group", True, True)
        assert membership.member
        assert member.reader.partition_count() == 2
        assert member.reader.topic_id() == admin.facts([topic])[topic].topic_id
        member.reader.seek(0, 1)
        member.reader.resume(0)
        values: list[bytes | None] = []
        until(lambda: values.extend(member.poll().get(0, [])) or values, lambda: "nothing was read")
        assert values == [b"b"]
        until(lambda: member.poll() or member.reader.position(0) == admin.ends(topic, [0], stable=False)[0], lambda: 0)
        assert admin.group_members(f"{topic}.group") == 1


def test_a_paused_partition_brings_nothing_and_keeps_its_position(cluster: Cluster, topic: str, opened) -> None:
    producer = opened(cluster, f"{topic}.id")
    write(producer, records(topic, [b"a"]))
    producer.commit()
    with joined(cluster, topic) as member:
        member.reader.seek(0, 0)
        for _ in range(4):
            assert member.poll() == {}
        assert member.reader.position(0) == 0
        member.reader.resume(0)
        until(lambda: member.poll() == {0: [b"a"]}, lambda: "nothing was read")


def test_a_partition_that_was_not_given_cannot_be_sought(cluster: Cluster, topic: str) -> None:
    with joined(cluster, topic) as member:
        for call in (
            lambda: member.reader.seek(7, 0),
            lambda: member.reader.position(7),
            lambda: member.reader.pause(7),
            lambda: member.reader.resume(7),
        ):
            with pytest.raises(BrokerError):
                call()


def test_offsets_are_the_groups_with_the_commit_and_not_before(cluster: Cluster, topic: str, opened) -> None:
    producer = opened(cluster, f"{topic}.id")
    with joined(cluster, topic) as member:
        assert member.reader.committed(0) is None
        producer.begin()
        producer.send_offsets({TopicPartition(topic, 0): GroupOffset(7, "name/1")}, member.reader.membership())
        producer.commit()
        assert member.reader.committed(0) == GroupOffset(7, "name/1")
        assert member.reader.committed(1) is None


@pytest.mark.parametrize("change", [{"generation": 77}, {"member": "nobody"}])
def test_offsets_of_a_member_that_is_none_are_refused(cluster: Cluster, topic: str, opened, change) -> None:
    producer = opened(cluster, f"{topic}.id")
    with joined(cluster, topic) as member:
        producer.begin()
        stale = replace(member.reader.membership(), **change)
        with pytest.raises(BrokerAway):
            producer.send_offsets({TopicPartition(topic, 0): GroupOffset(7, "")}, stale)


def test_members_share_the_partitions_and_one_that_leaves_gives_its_own_back(
    cluster: Cluster, admin: Admin, topic: str
) -> None:
    with joined(cluster, topic) as first:
        before = first.reader.membership()
        with joined(cluster, topic, first) as second:
            assert len(first.given) == len(second.given) == 1
            assert admin.group_members(f"{topic}.group") == 2
            assert first.reader.membership().generation > before.generation
        shared(first)
        assert first.given == first.reader.assigned() == {0, 1}


def test_a_group_that_nobody_is_in_has_no_members(admin: Admin, topic: str) -> None:
    assert admin.group_members(f"{topic}.nobody") == 0
