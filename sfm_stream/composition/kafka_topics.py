"""The topics of a pipeline on a cluster: checked or created at a start, and watched from then on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sfm_stream.config.config import Config
from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.topic_changes import TopicAtStart, input_at_start, own_at_start, pipeline_changes
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import TopicRules, input_problems, input_warnings, own_topics, problems
from sfm_stream.transport.kafka.topic_watch import TopicWatch
from sfm_stream.transport.kafka.topics import collisions, create_missing, facts

_log = logging.getLogger(__name__)


def prepare(config: Config, cluster: Cluster, *, create: bool) -> dict[str, TopicAtStart]:
    """Check every topic of the pipeline; returns topic name to what it is now.

    create: whether to create those that are missing. Raises ConfigError with everything that is wrong.
    """
    source, kafka = config.kafka.topic, config.kafka
    rules, existing = _topics(config, cluster)
    missing = _missing(config, cluster, rules, existing)
    if missing and not create:
        raise ConfigError(
            f"topics {', '.join(missing)} do not exist: if this pipeline never ran, start one ingest worker with "
            "--first-start, which creates them"
        )
    if missing:
        for name in create_missing(cluster, rules, existing[source].partitions, kafka.replication):
            _log.info("created topic %s", name)
        existing |= facts(cluster, missing)
    _require_right(config, rules, existing)
    for line in input_warnings(existing[source]):
        _log.warning(line)
    own = {rule.name: own_at_start(existing[rule.name], rule) for rule in rules}
    return {source: input_at_start(existing[source]), **own}


def watched(config: Config, cluster: Cluster, at_start: Mapping[str, TopicAtStart]) -> TopicWatch:
    """A watch over the topics in at_start, which has them as they were at the start."""
    source = config.kafka.topic
    rules = own_topics(config.pipeline.id, config.kafka.outbox_retention)

    def look() -> list[str]:
        now = facts(cluster, at_start)
        return pipeline_changes(at_start.values(), now, source, rules, config.kafka, config.window)

    return TopicWatch(look)


def missing_topics(config: Config, cluster: Cluster) -> list[str]:
    """Topics of the pipeline that do not exist yet. Raises ConfigError if one is wrong or cannot be created."""
    rules, existing = _topics(config, cluster)
    _require_right(config, rules, existing)
    return _missing(config, cluster, rules, existing)


def _missing(
    config: Config, cluster: Cluster, rules: Sequence[TopicRules], existing: Mapping[str, TopicFacts]
) -> list[str]:
    """Topics of the pipeline that do not exist yet. Raises ConfigError if the name of one is taken."""
    missing = [rule.name for rule in rules if rule.name not in existing]
    if missing and (alike := collisions(cluster, missing)):
        raise ConfigError(
            *(
                f"pipeline.id: topic {name} cannot be made beside {', '.join(others)}: Kafka takes '.' and '_' for the "
                "same there. Choose another pipeline.id"
                for name, others in alike.items()
            )
        )
    return missing


def _topics(config: Config, cluster: Cluster) -> tuple[Sequence[TopicRules], dict[str, TopicFacts]]:
    """(the rules of the pipeline's topics, the facts of those that exist, the input among them).

    Raises ConfigError if the input does not exist.
    """
    source = config.kafka.topic
    rules = own_topics(config.pipeline.id, config.kafka.outbox_retention)
    existing = facts(cluster, [source, *(rule.name for rule in rules)])
    if source not in existing:
        raise ConfigError(f"kafka.topic: there is no topic {source}")
    return rules, existing


def _require_right(config: Config, rules: Sequence[TopicRules], existing: Mapping[str, TopicFacts]) -> None:
    source = existing[config.kafka.topic]
    wrong = input_problems(source, config.kafka, config.window) + problems(existing, rules, source.partitions)
    if wrong:
        raise ConfigError(*wrong)
