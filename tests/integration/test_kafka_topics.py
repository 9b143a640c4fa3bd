"""The topics of a pipeline on a real broker: made once, found good, and found out when they change."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from support.kafka_topics import make_topic, produce, read_all, topic_name
from support.patience import until

from sfm_stream.config.tables import KafkaTable
from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.cluster_values import MAX_RECORD_BYTES
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_rules import (
    TopicRules,
    WindowNeeds,
    input_problems,
    input_warnings,
    own_topics,
    problems,
)
from sfm_stream.transport.kafka.topics import create_missing, facts
from sfm_stream.types import Record

pytestmark = pytest.mark.kafka

DAY_MS = 86_400_000
MINUTES = WindowNeeds(longest_ms=600_000, grace_ms=300_000, max_future_skew=3_600_000)
DAYS = replace(MINUTES, longest_ms=26 * 3_600_000, longest="a day")


@dataclass
class Pipeline:
    """An id that no other test has, its rules, and a way to the broker."""

    id: str
    rules: tuple[TopicRules, ...]
    cluster: Cluster
    admin: KafkaAdminClient

    def problems(self, partitions: int = 2) -> list[str]:
        return problems(facts(self.cluster, [rules.name for rules in self.rules]), self.rules, partitions)

    def alter(self, topic: str, settings: dict[str, str]) -> None:
        answer = self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])
        assert answer == {"topic": {topic: "OK"}}
        until(lambda: settings.items() <= facts(self.cluster, [topic])[topic].configs.items())


@pytest.fixture
def pipeline(kafka: str) -> Iterator[Pipeline]:
    name = topic_name("topics")
    with KafkaAdminClient(bootstrap_servers=kafka) as admin:
        yield Pipeline(name, own_topics(name, 7 * DAY_MS), KafkaPythonCluster(tuple(kafka.split(","))), admin)


def test_topics_are_created_once_and_are_good(pipeline):
    names = tuple(rules.name for rules in pipeline.rules)
    assert create_missing(pipeline.cluster, pipeline.rules[:2], 2, 1) == names[:2]
    assert create_missing(pipeline.cluster, pipeline.rules, 2, 1) == names[2:]
    assert create_missing(pipeline.cluster, pipeline.rules, 2, 1) == ()
    found = facts(pipeline.cluster, [*names, "never-made"])
    assert set(found) == set(names)
    assert {(each.partitions, each.replication) for each in found.values()} == {(2, 1)}
    assert len({each.topic_id for each in found.values()} - {""}) == 4
    for rules in pipeline.rules:
        assert rules.created_with(1).items() <= found[rules.name].configs.items()
    assert pipeline.problems() == []
    assert len(pipeline.problems(3)) == 4


def test_workers_that_start_together_create_each_topic_once(pipeline):
    with ThreadPoolExecutor(3) as pool:
        created = list(pool.map(lambda _: create_missing(pipeline.cluster, pipeline.rules, 2, 1), range(3)))
    assert sorted(name for names in created for name in names) == sorted(rules.name for rules in pipeline.rules)
    assert pipeline.problems() == []


def test_an_altered_topic_is_found_out(pipeline):
    create_missing(pipeline.cluster, pipeline.rules, 2, 1)
    pipeline.alter(f"{pipeline.id}.sketches", {"retention.ms": "604800000"})
    [line] = pipeline.problems()
    assert line.startswith(f"topic {pipeline.id}.sketches: retention.ms is 604800000, set it to -1")
    pipeline.alter(f"{pipeline.id}.sketches", {"retention.ms": "-1"})
    pipeline.alter(f"{pipeline.id}.ledger", {"cleanup.policy": "compact,delete"})
    [line] = pipeline.problems()
    assert line.startswith(f"topic {pipeline.id}.ledger: cleanup.policy is compact,delete, set it to compact")


def test_a_topic_that_the_broker_made_by_its_defaults_is_refused(pipeline, kafka):
    for rules in pipeline.rules:
        make_topic(kafka, rules.name, 2, {"retention.ms": 7 * DAY_MS})
    lines = pipeline.problems()
    for name, setting in [
        ("outbox", "max.message.bytes"),
        ("ledger", "cleanup.policy"),
        ("sketches", "retention.ms"),
        ("rollups", "retention.ms"),
    ]:
        assert any(line.startswith(f"topic {pipeline.id}.{name}: {setting}") for line in lines)


def test_a_topic_that_is_made_again_has_another_id(pipeline, kafka):
    topic = make_topic(kafka, pipeline.id)
    before = facts(pipeline.cluster, [topic])[topic]
    assert facts(pipeline.cluster, [topic])[topic] == before
    pipeline.admin.delete_topics([topic])
    until(lambda: facts(pipeline.cluster, [topic]) == {})
    make_topic(kafka, topic)
    assert facts(pipeline.cluster, [topic])[topic].topic_id not in ("", before.topic_id)


def test_too_few_brokers_for_the_replicas(pipeline):
    with pytest.raises(ConfigError, match=r"kafka\.replication: .* cannot have 99 replicas"):
        create_missing(pipeline.cluster, pipeline.rules, 2, 99)


def test_old_and_large_records_are_taken_by_the_topics_of_releases(pipeline, kafka):
    create_missing(pipeline.cluster, pipeline.rules, 1, 1)
    topic = f"{pipeline.id}.sketches"
    produce(kafka, topic, [(b"k", b"old", DAY_MS, 0)])
    producer = pipeline.cluster.producer(topic_name("large"))
    producer.init_transactions()
    producer.begin()
    producer.send(Record(topic, 0, b"k", bytes(MAX_RECORD_BYTES - 1), DAY_MS))
    producer.commit()
    producer.discard()
    assert [(len(record[3]), record[4]) for record in read_all(kafka, topic)] == [
        (3, DAY_MS),
        (MAX_RECORD_BYTES - 1, DAY_MS),
    ]


def test_the_input_is_compared_with_the_settings(pipeline, kafka):
    topic = make_topic(kafka, pipeline.id, 1, {"message.timestamp.type": "CreateTime", "retention.ms": 7 * DAY_MS})
    pipeline.alter(topic, {"message.timestamp.after.max.ms": "3600000"})
    table = {"bootstrap": [kafka], "topic": topic}
    created = KafkaTable(**table, timestamps="create_time")
    appended = KafkaTable(**table, timestamps="log_append_time")

    def found(settings: KafkaTable, window: WindowNeeds = MINUTES) -> list[str]:
        return input_problems(facts(pipeline.cluster, [topic])[topic], settings, window)

    assert found(created) == found(created, DAYS) == []
    assert len(found(appended)) == 1
    pipeline.alter(topic, {"retention.ms": str(2 * DAY_MS), "message.timestamp.after.max.ms": "3600000"})
    assert found(created) == []
    assert "(a day + window.grace + kafka.downtime)" in found(created, DAYS)[0]
    pipeline.alter(topic, {"message.timestamp.after.max.ms": "7200000"})
    assert "message.timestamp.after.max.ms is 7200000" in found(created)[0]
    pipeline.alter(topic, {"message.timestamp.type": "LogAppendTime", "retention.bytes": "1048576"})
    assert found(appended) == []
    assert len(input_warnings(facts(pipeline.cluster, [topic])[topic])) == 1
