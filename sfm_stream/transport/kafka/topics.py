"""The topics of a pipeline: looked up on a cluster, and created by the rules of topic_rules.py if they are missing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.cluster import Admin, Cluster
from sfm_stream.transport.kafka.cluster_values import Creation, CreationResult, NewTopic
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import TopicRules

_log = logging.getLogger(__name__)


def existing_or_created(
    cluster: Cluster,
    source: str,
    rules: Sequence[TopicRules],
    replication: int,
    *,
    create: bool,
    dead_letters: str | None = None,
) -> dict[str, TopicFacts]:
    """The facts of every topic of a pipeline: of its input, of those with rules, and of its dead letters.

    create: whether to create those with rules that are missing. dead_letters: the topic of dead letters, which is
    always created if it is missing; None: the pipeline has none. The facts are of after the creation, by which a topic
    may have come that another worker created: check them. Raises ConfigError as existing(), missing() and
    create_missing(), and if topics are missing that this call must not create.
    """
    found = existing(cluster, source, rules)
    absent = missing(cluster, rules, found)
    if absent and not create:
        raise ConfigError(
            f"topics {', '.join(absent)} do not exist: if this pipeline never ran, start one ingest worker with "
            "--first-start, which creates them"
        )
    partitions = found[source].partitions
    if absent:
        for name in create_missing(cluster, rules, partitions, replication):
            _log.info("created topic %s", name)
    if dead_letters is not None:
        create_plain(cluster, dead_letters, partitions, replication, {})
        absent = [*absent, dead_letters]
    return found | facts(cluster, absent)


def existing(cluster: Cluster, source: str, rules: Sequence[TopicRules]) -> dict[str, TopicFacts]:
    """The facts of the input, and of those topics with rules that exist. Raises ConfigError if the input does not."""
    found = facts(cluster, [source, *(rule.name for rule in rules)])
    if source not in found:
        raise ConfigError(f"kafka.topic: there is no topic {source}")
    return found


def facts(cluster: Cluster, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Topic name to its facts, for topics that exist. Raises BrokerError, also if settings are withheld."""
    wanted = list(names)
    if not wanted:
        return {}
    with closing(cluster.admin()) as admin:
        return admin.facts(wanted)


def missing(cluster: Cluster, rules: Sequence[TopicRules], found: Mapping[str, TopicFacts]) -> list[str]:
    """The topics with rules that are not among those found.

    Raises ConfigError if Kafka would refuse to create one as its name collides with that of another topic: if they
    differ only in '.' and '_', which are the same in the names of Kafka's metrics. Raises BrokerError.
    """
    absent = [rule.name for rule in rules if rule.name not in found]
    if not absent:
        return []
    with closing(cluster.admin()) as admin:
        all_names = admin.topics()
    alike = {name: sorted(t for t in all_names if t != name and _in_metrics(t) == _in_metrics(name)) for name in absent}
    taken = [
        f"pipeline.id: topic {name} cannot be made beside {', '.join(others)}: Kafka takes '.' and '_' for the "
        "same there. Choose another pipeline.id"
        for name, others in alike.items()
        if others
    ]
    if taken:
        raise ConfigError(*taken)
    return absent


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
