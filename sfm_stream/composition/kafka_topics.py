"""The topics of a pipeline on a cluster: checked or made at a start, and watched from then on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sfm_stream.config.config import Config
from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.kafka_python.client import Connection
from sfm_stream.transport.kafka.kafka_python.topics import (
    TopicFacts,
    TopicRules,
    collisions,
    create_missing,
    facts,
    input_problems,
    input_warnings,
    own_topics,
    problems,
)
from sfm_stream.transport.kafka.topic_changes import Kept, kept_input, kept_own, pipeline_changes
from sfm_stream.transport.kafka.topic_watch import TopicWatch

_log = logging.getLogger(__name__)


def prepare(config: Config, link: Connection, *, create: bool) -> dict[str, Kept]:
    """Check every topic of the pipeline, and with `create` make those that are missing; returns all by their names.

    Raises ConfigError with everything that is wrong.
    """
    source, kafka = config.kafka.topic, config.kafka
    rules, found = _topics(config, link)
    missing = _missing(config, link, rules, found)
    if missing and not create:
        raise ConfigError(
            f"topics {', '.join(missing)} do not exist: if this pipeline never ran, start one ingest worker with "
            "--first-start, which creates them"
        )
    if missing:
        for name in create_missing(link, rules, found[source].partitions, kafka.replication):
            _log.info("created topic %s", name)
        found |= facts(link, missing)
    _require_right(config, rules, found)
    for line in input_warnings(found[source]):
        _log.warning(line)
    own = {rule.name: kept_own(found[rule.name], rule) for rule in rules}
    return {source: kept_input(found[source]), **own}


def watched(config: Config, link: Connection, kept: Mapping[str, Kept]) -> TopicWatch:
    """Of the topics of the pipeline. kept: these, as they were at the start."""
    source = config.kafka.topic
    rules = own_topics(config.pipeline.id, config.kafka.outbox_retention)

    def look() -> list[str]:
        now = facts(link, kept)
        return pipeline_changes(kept.values(), now, source, rules, config.kafka, config.window)

    return TopicWatch(look)


def missing_topics(config: Config, link: Connection) -> list[str]:
    """The pipeline's own topics that are not there yet. Raises ConfigError where one is wrong, or cannot be made."""
    rules, found = _topics(config, link)
    _require_right(config, rules, found)
    return _missing(config, link, rules, found)


def _missing(
    config: Config, link: Connection, rules: Sequence[TopicRules], found: Mapping[str, TopicFacts]
) -> list[str]:
    """Raises ConfigError where one that is missing cannot be made."""
    missing = [rule.name for rule in rules if rule.name not in found]
    if missing and (alike := collisions(link, missing)):
        raise ConfigError(
            *(
                f"pipeline.id: topic {name} cannot be made beside {', '.join(others)}: Kafka takes '.' and '_' for the "
                "same there. Choose another pipeline.id"
                for name, others in alike.items()
            )
        )
    return missing


def _topics(config: Config, link: Connection) -> tuple[Sequence[TopicRules], dict[str, TopicFacts]]:
    """The rules of the pipeline's own topics, and what is there of them and of the input, which has to be."""
    source = config.kafka.topic
    rules = own_topics(config.pipeline.id, config.kafka.outbox_retention)
    found = facts(link, [source, *(rule.name for rule in rules)])
    if source not in found:
        raise ConfigError(f"kafka.topic: there is no topic {source}")
    return rules, found


def _require_right(config: Config, rules: Sequence[TopicRules], found: Mapping[str, TopicFacts]) -> None:
    source = found[config.kafka.topic]
    wrong = input_problems(source, config.kafka, config.window) + problems(found, rules, source.partitions)
    if wrong:
        raise ConfigError(*wrong)
