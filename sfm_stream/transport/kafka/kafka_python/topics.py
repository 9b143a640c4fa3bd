"""The topics of a pipeline on a cluster: what they are, and made where they are missing. The rules: topic_rules.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Event
from typing import Any

import kafka.errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from sfm_stream.errors import BrokerError, ConfigError
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.topic_rules import (
    Purpose,
    TopicFacts,
    TopicRules,
    input_problems,
    input_warnings,
    own_topics,
    problems,
)

__all__ = [
    "Purpose",
    "TopicFacts",
    "TopicRules",
    "collisions",
    "create_missing",
    "create_plain",
    "facts",
    "input_problems",
    "input_warnings",
    "own_topics",
    "problems",
]

_LEADERS_MS = 30_000
_CONFIG_LOOKS, _CONFIG_PAUSE_S = 5, 0.2


def facts(connection: Connection, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Topics as they are, by name; missing ones are left out. Raises BrokerError, also where settings are withheld."""
    wanted = list(names)
    if not wanted:
        return {}
    with connection.speaking(), connection.admin() as admin:
        topics = _described(admin, wanted)
        configs = _configs(admin, list(topics))
    return {
        name: TopicFacts(
            name,
            str(topic.get("topic_id") or ""),
            len(topic["partitions"]),
            min((len(part["replica_nodes"]) for part in topic["partitions"]), default=0),
            configs[name],
        )
        for name, topic in topics.items()
    }


def collisions(connection: Connection, names: Iterable[str]) -> dict[str, list[str]]:
    """Of names of topics that are still to be made: those that are there in whose place they would come.

    Kafka refuses them, as '.' and '_' are the same in the names of its metrics. Raises BrokerError.
    """
    with connection.speaking(), connection.admin() as admin:
        there = admin.list_topics()
    found = {name: sorted(t for t in there if t != name and _alike(t) == _alike(name)) for name in names}
    return {name: alike for name, alike in found.items() if alike}


def _alike(name: str) -> str:
    return name.replace(".", "_")


def create_missing(
    connection: Connection, rules: Sequence[TopicRules], partitions: int, replication: int
) -> tuple[str, ...]:
    """Names of the topics that this call created; each missing one is there, with leaders, when it returns.

    Another worker may create them at the same time: ask for facts() afterwards, not before. Raises ConfigError where
    the cluster has too few brokers.
    """
    with connection.speaking(), connection.admin() as admin:
        there = _described(admin, [rule.name for rule in rules])
        missing = [rule for rule in rules if rule.name not in there]
        answers = _create(admin, missing, partitions, replication)
        unknown = [rule for rule in missing if answers[rule.name][0] is kafka_errors.InvalidConfigurationError]
        again = _create(admin, unknown, partitions, replication, older=True)
        answers |= {name: it for name, it in again.items() if it[0] is not kafka_errors.InvalidConfigurationError}
        for name, (kind, message) in answers.items():
            if kind is kafka_errors.InvalidReplicationFactorError:
                raise ConfigError(
                    f"kafka.replication: topic {name} cannot have {replication} replicas: {message} "
                    "Start the missing brokers, or set it lower"
                )
            if kind not in (kafka_errors.NoError, kafka_errors.TopicAlreadyExistsError):
                raise kind(f"topic {name} cannot be created: {message}")
        admin.wait_for_topics(list(answers), timeout_ms=_LEADERS_MS)
    return tuple(name for name, (kind, _) in answers.items() if kind is kafka_errors.NoError)


def create_plain(
    connection: Connection, name: str, partitions: int, replication: int, configs: Mapping[str, str]
) -> bool:
    """Make one topic that no rule is for; False where it is there already. Raises BrokerError."""
    wanted = {"num_partitions": partitions, "replication_factor": replication, "configs": dict(configs)}
    with connection.speaking(), connection.admin() as admin:
        try:
            admin.create_topics({name: wanted}, wait_for_metadata=True)
        except kafka_errors.TopicAlreadyExistsError:
            return False
    return True


def _create(
    admin: KafkaAdminClient, rules: Sequence[TopicRules], partitions: int, replication: int, older: bool = False
) -> dict[str, tuple[Any, str]]:
    """Name to (class of the error, the broker's words)."""
    if not rules:
        return {}
    wanted = {
        rule.name: {
            "num_partitions": partitions,
            "replication_factor": replication,
            "configs": rule.created_with(replication, older=older),
        }
        for rule in rules
    }
    answer = admin.create_topics(wanted, raise_errors=False)
    return {
        topic["name"]: (kafka_errors.for_code(topic["error_code"]), topic.get("error_message") or "")
        for topic in answer["topics"]
    }


def _described(admin: KafkaAdminClient, names: list[str]) -> dict[str, Any]:
    found = {}
    for topic in admin.describe_topics(names):
        error = kafka_errors.for_code(topic["error_code"])
        if error is kafka_errors.NoError:
            found[topic["name"]] = topic
        elif error is not kafka_errors.UnknownTopicOrPartitionError:
            raise error(f"topic {topic['name']}")
    return found


def _configs(admin: KafkaAdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    """All settings of topics. A broker that has not heard of a new topic yet gives none, and is asked again."""
    found: dict[str, dict[str, str]] = {}
    for _ in range(_CONFIG_LOOKS):
        missing = [name for name in names if not found.get(name)]
        if not missing:
            return found
        asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in missing]
        for name, entries in admin.describe_configs(asked, config_filter="all").get("topic", {}).items():
            found[name] = {key: entry["value"] for key, entry in entries.items() if entry["value"] is not None}
        if not all(found.get(name) for name in missing):
            Event().wait(_CONFIG_PAUSE_S)
    withheld = ", ".join(name for name in names if not found.get(name))
    if withheld:
        raise BrokerError(f"topic {withheld}: its settings cannot be read; grant this user DescribeConfigs on it")
    return found
