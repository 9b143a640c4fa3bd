"""Looks topics up on a cluster, and creates those that are missing by the rules of topic_rules.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.cluster import Admin, Cluster
from sfm_stream.transport.kafka.cluster_values import Creation, CreationResult, NewTopic
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import TopicRules


def facts(cluster: Cluster, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Topic name to its facts, for topics that exist. Raises BrokerError, also if settings are withheld."""
    wanted = list(names)
    if not wanted:
        return {}
    with closing(cluster.admin()) as admin:
        return admin.facts(wanted)


def collisions(cluster: Cluster, names: Iterable[str]) -> dict[str, list[str]]:
    """Name of a new topic to existing topics with which its name collides: Kafka would refuse to create it.

    Names collide if they differ only in '.' and '_', which are the same in the names of Kafka's metrics. Raises
    BrokerError.
    """
    with closing(cluster.admin()) as admin:
        existing = admin.topics()
    alike = {name: sorted(t for t in existing if t != name and _in_metrics(t) == _in_metrics(name)) for name in names}
    return {name: others for name, others in alike.items() if others}


def _in_metrics(name: str) -> str:
    return name.replace(".", "_")


def create_missing(cluster: Cluster, rules: Sequence[TopicRules], partitions: int, replication: int) -> tuple[str, ...]:
    """Create the topics that are missing; returns the names of those that this call created.

    On return all of them exist and have leaders. Another worker may create them at the same time, perhaps with other
    settings: check facts() afterwards. Raises ConfigError if the cluster has too few brokers.
    """
    with closing(cluster.admin()) as admin:
        existing = admin.existing([rule.name for rule in rules])
        missing = [rule for rule in rules if rule.name not in existing]
        results = _create(admin, missing, partitions, replication)
        unknown = [rule for rule in missing if results[rule.name].outcome is Creation.UNKNOWN_SETTING]
        again = _create(admin, unknown, partitions, replication, older=True)
        results |= {name: it for name, it in again.items() if it.outcome is not Creation.UNKNOWN_SETTING}
        for name, result in results.items():
            if result.outcome is Creation.TOO_FEW_BROKERS:
                raise ConfigError(
                    f"kafka.replication: topic {name} cannot have {replication} replicas: {result.words} "
                    "Start the missing brokers, or set it lower"
                )
            if result.error is not None:
                raise result.error
        admin.await_leaders(list(results))
    return tuple(name for name, result in results.items() if result.outcome is Creation.CREATED)


def create_plain(cluster: Cluster, name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> bool:
    """Create one topic that topic_rules.py has no rule for. False: it exists already. Raises BrokerError."""
    with closing(cluster.admin()) as admin:
        return admin.create(NewTopic(name, partitions, replication, configs))


def _create(
    admin: Admin, rules: Sequence[TopicRules], partitions: int, replication: int, older: bool = False
) -> dict[str, CreationResult]:
    topics = [
        NewTopic(rule.name, partitions, replication, rule.created_with(replication, older=older)) for rule in rules
    ]
    return admin.create_all(topics)
