"""Topics that changed while a worker runs: what is reported of each change, and the remedy.

Everything here compares the TopicFacts of the start with those of now. No cluster is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfm_stream.readable import duration
from sfm_stream.transport.kafka.topic_facts import LOG_APPEND_TIME, TopicFacts
from sfm_stream.transport.kafka.topic_rules import (
    ClusterNeeds,
    Purpose,
    TopicRules,
    WindowNeeds,
    input_problems,
    problems,
)

NEW_EPOCH = "raise pipeline.epoch and set window.start to a window border that is still to come"
OTHER_CLOCK = f"give the topic the clock of kafka.timestamps again, {NEW_EPOCH}"
NEW_PIPELINE = (
    "give the pipeline another id and set window.start to a window border that is still to come, or what is released "
    "already may be released a second time"
)
_COPIED_AGAIN = (
    "started again it would copy all of its source once more: let a pipeline of another id copy into a new topic"
)
_MADE_AGAIN = "start the workers again, which make it anew"
_BACK = "set it back, then start the workers again"


@dataclass(frozen=True, slots=True)
class TopicAtStart:
    """A topic as it was at the start of a worker, and the remedy for each change.

    remedy: if it was deleted or made anew. added: the remedy if it has more partitions. clock: whether a change of the
    clock that stamps its records matters too.
    """

    facts: TopicFacts
    remedy: str = NEW_EPOCH
    added: str = f"keys may have moved: {NEW_EPOCH}"
    clock: bool = False

    def changes(self, now: TopicFacts | None) -> list[str]:
        """What changed since the start, one line each with its remedy. now: None if the topic does not exist."""
        before = self.facts
        if now is None:
            return [f"topic {before.name} was deleted, and with it what was not read yet: {self.remedy}"]
        if before.topic_id and now.topic_id and now.topic_id != before.topic_id:
            return [made_anew(before.name, before.topic_id, now.topic_id, self.remedy)]
        if now.partitions != before.partitions:
            return [repartitioned(before.name, before.partitions, now.partitions, self.added)]
        return _other_clock(before, now) if self.clock else []


def made_anew(topic: str, before: str, now: str, remedy: str) -> str:
    """The line for a topic whose id changed."""
    return f"topic {topic} was deleted and made again (id {before}, now {now}); what was not read is gone: {remedy}"


def repartitioned(topic: str, before: int, now: int, remedy: str) -> str:
    """The line for a topic whose number of partitions changed."""
    return f"topic {topic} had {before} partitions and now has {now}: {remedy}"


def input_at_start(facts: TopicFacts) -> TopicAtStart:
    """The input topic, at the start."""
    return TopicAtStart(facts, clock=True)


def own_at_start(facts: TopicFacts, rules: TopicRules) -> TopicAtStart:
    """A topic of the pipeline itself, at the start."""
    remedy = NEW_EPOCH if rules.purpose is Purpose.LEDGER else NEW_PIPELINE
    return TopicAtStart(facts, remedy, f"it has to have as many as the input: {NEW_PIPELINE}")


def dead_letters_at_start(facts: TopicFacts) -> TopicAtStart:
    """The topic of pointers to dropped records."""
    return TopicAtStart(facts, _MADE_AGAIN, _MADE_AGAIN)


def copy_at_start(source: TopicFacts, target: TopicFacts, positions: TopicFacts) -> dict[str, TopicAtStart]:
    """The three topics of a repartition worker by name: source, target, and the topic of its positions."""
    anew = f"delete topic {positions.name}, whose positions are of the old one, and start the copy again"
    more = f"stop the copy, add as many partitions to topic {positions.name}, and start it again"
    return {
        source.name: TopicAtStart(source, anew, more),
        target.name: TopicAtStart(target, f"{NEW_EPOCH}; {anew}: it copies what its source still holds", clock=True),
        positions.name: TopicAtStart(positions, _COPIED_AGAIN, _COPIED_AGAIN),
    }


def changes(at_start: Iterable[TopicAtStart], now: Mapping[str, TopicFacts]) -> list[str]:
    """What changed about these topics, one line each with its remedy."""
    return [line for topic in at_start for line in topic.changes(now.get(topic.facts.name))]


def pipeline_changes(
    at_start: Iterable[TopicAtStart],
    now: Mapping[str, TopicFacts],
    source: str,
    rules: Sequence[TopicRules],
    settings: ClusterNeeds,
    window: WindowNeeds,
) -> list[str]:
    """What changed about the topics of a pipeline; if nothing did, why a worker would refuse to start with them now."""
    changed = changes(at_start, now)
    if changed or source not in now:
        return changed
    return input_problems(now[source], settings, window) + problems(now, rules, now[source].partitions)


def _other_clock(before: TopicFacts, now: TopicFacts) -> list[str]:
    """What changed about the clock that stamps the records, and about the bounds of their time stamps."""
    name, was, is_now = "message.timestamp.type", before.timestamp_type, now.timestamp_type
    if was != is_now:
        return [f"topic {now.name}: {name} was {was} and now is {is_now}: {OTHER_CLOCK}"]
    if was == LOG_APPEND_TIME:
        return []
    return [
        f"topic {now.name}: the bound of time stamps {direction} the broker's clock was {duration(bound)} and now is "
        f"{duration(now.timestamp_bound_ms(direction))}: {_BACK}"
        for direction in ("before", "after")
        if (bound := before.timestamp_bound_ms(direction)) != now.timestamp_bound_ms(direction)
    ]
