"""The topics of a pipeline on a cluster: found or created, checked, and watched from then on."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sfm_stream.config.config import Config
from sfm_stream.errors import ConfigError
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.topic_changes import (
    TopicAtStart,
    dead_letters_at_start,
    input_at_start,
    own_at_start,
    pipeline_changes,
)
from sfm_stream.transport.kafka.topic_facts import TopicFacts
from sfm_stream.transport.kafka.topic_rules import WindowNeeds, input_warnings, own_topics
from sfm_stream.transport.kafka.topic_watch import TopicWatch
from sfm_stream.transport.kafka.topics import existing, existing_or_created, facts, missing

_log = logging.getLogger(__name__)


def prepare(
    config: Config, cluster: Cluster, *, create: bool, dead_letters: str | None = None
) -> tuple[dict[str, TopicAtStart], TopicWatch]:
    """(topic name to what it is now, a watch over these topics), for every topic of the pipeline.

    create: whether to create topics that are missing. dead_letters: the topic of dead letters, for a worker that writes
    them; it is always created. Raises ConfigError with everything that is wrong.
    """
    source, kafka = config.kafka.topic, config.kafka
    needs, rules = _windows(config), own_topics(config.pipeline.id, kafka.outbox_retention)
    found = existing_or_created(cluster, source, rules, kafka.replication, create=create, dead_letters=dead_letters)
    at_start = {source: input_at_start(found[source])}
    at_start |= {rule.name: own_at_start(found[rule.name], rule) for rule in rules}
    if dead_letters is not None:
        at_start[dead_letters] = dead_letters_at_start(found[dead_letters])

    def wrong(now: Mapping[str, TopicFacts]) -> list[str]:
        return pipeline_changes(at_start.values(), now, source, rules, kafka, needs)

    if lines := wrong(found):
        raise ConfigError(*lines)
    for line in input_warnings(found[source]):
        _log.warning(line)
    return at_start, TopicWatch(lambda: wrong(facts(cluster, at_start)))


def missing_topics(config: Config, cluster: Cluster) -> list[str]:
    """Topics of the pipeline that do not exist yet. Raises ConfigError if one is wrong or cannot be created."""
    source, kafka = config.kafka.topic, config.kafka
    needs, rules = _windows(config), own_topics(config.pipeline.id, kafka.outbox_retention)
    found = existing(cluster, source, rules)
    if lines := pipeline_changes((), found, source, rules, kafka, needs):
        raise ConfigError(*lines)
    return missing(cluster, rules, found)


def _windows(config: Config) -> WindowNeeds:
    """The windows of the pipeline, for the rules of its input."""
    window, span, grid = config.window, config.budget.spans[-1], config.grids[-1]
    longest = f"a {span.name}" if len(config.grids) > 1 else "window.size"
    return WindowNeeds(grid.longest_ms, window.grace_ms, window.max_future_skew, longest)
