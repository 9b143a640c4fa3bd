"""Questions about topics, offsets and groups, over the admin client of kafka-python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Event
from typing import Any

import kafka.errors as kafka_errors
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from sfm_stream.errors import BrokerAway, BrokerError
from sfm_stream.transport.kafka.cluster_values import Creation, CreationResult, LogEndQuery, NewTopic
from sfm_stream.transport.kafka.kafka_python.hooks.log_ends import LogEndAdmin
from sfm_stream.transport.kafka.kafka_python.translation import Translation
from sfm_stream.transport.kafka.topic_facts import TopicFacts

_LEADERS_MS = 30_000
_CONFIG_LOOKS, _CONFIG_PAUSE_S = 5, 0.2
_OUTCOMES = {
    kafka_errors.NoError: Creation.CREATED,
    kafka_errors.TopicAlreadyExistsError: Creation.EXISTS,
    kafka_errors.InvalidConfigurationError: Creation.UNKNOWN_SETTING,
    kafka_errors.InvalidReplicationFactorError: Creation.TOO_FEW_BROKERS,
}


class KafkaPythonAdmin:
    """Implements cluster.Admin."""

    def __init__(self, client: LogEndAdmin, translated: Translation) -> None:
        self._client, self._translated = client, translated

    # Topics

    def partition_count(self, topic: str) -> int:
        with self._translated():
            described = _described(self._client, [topic])
        return len(described[topic]["partitions"]) if described else 0

    def existing(self, topics: Iterable[str]) -> set[str]:
        with self._translated():
            return set(_described(self._client, list(topics)))

    def facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        with self._translated():
            described = _described(self._client, list(topics))
            configs = _configs(self._client, list(described))
        return {
            name: TopicFacts(
                name,
                str(topic.get("topic_id") or ""),
                len(topic["partitions"]),
                min((len(part["replica_nodes"]) for part in topic["partitions"]), default=0),
                configs[name],
            )
            for name, topic in described.items()
        }

    def topics(self) -> list[str]:
        with self._translated():
            return list(self._client.list_topics())

    def create(self, topic: NewTopic) -> bool:
        with self._translated():
            try:
                self._client.create_topics(_wanted([topic]), wait_for_metadata=True)
            except kafka_errors.TopicAlreadyExistsError:
                return False
        return True

    def create_all(self, topics: Sequence[NewTopic]) -> dict[str, CreationResult]:
        if not topics:
            return {}
        with self._translated():
            answer = self._client.create_topics(_wanted(topics), raise_errors=False)
        return {topic["name"]: self._creation_result(topic) for topic in answer["topics"]}

    def await_leaders(self, topics: Sequence[str]) -> None:
        with self._translated():
            self._client.wait_for_topics(list(topics), timeout_ms=_LEADERS_MS)

    # Offsets

    def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return self._offsets(topic, partitions, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def ends(self, topic: str, partitions: Iterable[int], *, stable: bool) -> dict[int, int]:
        isolation = IsolationLevel.READ_COMMITTED if stable else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(topic, partitions, OffsetSpec.LATEST, isolation)

    def offsets_since(self, topic: str, partitions: Iterable[int], since_ms: int) -> dict[int, int]:
        return self._offsets(topic, partitions, since_ms, IsolationLevel.READ_UNCOMMITTED)

    def first_records(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        topic_partitions = {TopicPartition(topic, number): 0 for number in partitions}
        with self._translated():
            records = self._client.list_partition_offsets(topic_partitions, IsolationLevel.READ_UNCOMMITTED)
        return {
            topic_partition.partition: (at.offset, at.timestamp)
            for topic_partition, at in records.items()
            if at.offset >= 0
        }

    def ask_log_ends(self, topic: str, partitions: Iterable[int]) -> LogEndQuery:
        return self._client.ask_log_ends(topic, list(partitions))

    # Groups

    def group_members(self, group: str) -> int:
        with self._translated():
            described = self._client.describe_groups([group])[group]
        if described["error"] and kafka_errors.GroupIdNotFoundError.__name__ not in described["error"]:
            raise BrokerAway(f"group {group}: its members are not known: {described['error']}")
        return len(described["members"])

    def close(self) -> None:
        with self._translated():
            self._client.close()

    def _creation_result(self, topic: Mapping[str, Any]) -> CreationResult:
        kind, words = kafka_errors.for_code(topic["error_code"]), topic.get("error_message") or ""
        outcome = _OUTCOMES.get(kind, Creation.FAILED)
        if outcome in (Creation.CREATED, Creation.EXISTS):
            return CreationResult(outcome)
        error = self._translation_of(kind(f"topic {topic['name']} cannot be created: {words}"))
        return CreationResult(outcome, words, error)

    def _translation_of(self, error: Exception) -> Exception:
        try:
            with self._translated():
                raise error
        except Exception as translation:
            return translation

    def _offsets(self, topic: str, partitions: Iterable[int], spec: int, isolation: IsolationLevel) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in partitions}
        if not wanted:
            return {}
        with self._translated():
            answers = self._client.list_partition_offsets(wanted, isolation)
        return {topic_partition.partition: answer.offset for topic_partition, answer in answers.items()}


def _wanted(topics: Sequence[NewTopic]) -> dict[str, dict[str, Any]]:
    return {
        topic.name: {
            "num_partitions": topic.partitions,
            "replication_factor": topic.replication,
            "configs": dict(topic.configs),
        }
        for topic in topics
    }


def _described(client: LogEndAdmin, names: list[str]) -> dict[str, Any]:
    """Topic name to the description of the broker. Topics that do not exist are left out."""
    described = {}
    for topic in client.describe_topics(names):
        error = kafka_errors.for_code(topic["error_code"])
        if error is kafka_errors.NoError:
            described[topic["name"]] = topic
        elif error is not kafka_errors.UnknownTopicOrPartitionError:
            raise error(f"topic {topic['name']}")
    return described


def _configs(client: LogEndAdmin, names: list[str]) -> dict[str, dict[str, str]]:
    """Topic name to all of its settings. A broker that does not know a new topic yet gives none; it is asked again."""
    configs: dict[str, dict[str, str]] = {}
    for _ in range(_CONFIG_LOOKS):
        missing = [name for name in names if not configs.get(name)]
        if not missing:
            return configs
        asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in missing]
        for name, entries in client.describe_configs(asked, config_filter="all").get("topic", {}).items():
            configs[name] = {key: entry["value"] for key, entry in entries.items() if entry["value"] is not None}
        if not all(configs.get(name) for name in missing):
            Event().wait(_CONFIG_PAUSE_S)
    withheld = ", ".join(name for name in names if not configs.get(name))
    if withheld:
        raise BrokerError(f"topic {withheld}: its settings cannot be read; grant this user DescribeConfigs on it")
    return configs
