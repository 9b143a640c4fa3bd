"""Rules for the topics of a pipeline: the settings they are created with, and what is wrong with those that exist.

Everything here is a function of TopicFacts. No cluster is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sfm_stream.transport.kafka.cluster_values import MAX_RECORD_BYTES
from sfm_stream.transport.kafka.topic_facts import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    OLDER_TIMESTAMP_BOUND,
    UNBOUNDED_MS,
    TopicFacts,
    timestamp_bound,
)
from sfm_stream.units import HOUR_MS

MAX_BATCH_BYTES = MAX_RECORD_BYTES + 4096
"""The size of a batch that holds one record of the largest size."""
REPLICATED = 3
"""With at least so many replicas, two of them must have a record before it counts as written."""


class Purpose(StrEnum):
    """What a topic of the pipeline is for. Its name is the id of the pipeline, a dot and this."""

    OUTBOX = "outbox"
    LEDGER = "ledger"
    SKETCHES = "sketches"
    ROLLUPS = "rollups"


RELEASED = frozenset({Purpose.SKETCHES, Purpose.ROLLUPS})
"""Topics whose records are kept for ever. A record is stamped with the end of its window, which may be long ago."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """A setting of a topic, with the value that a new topic gets.

    accepts: which values an existing topic may have; None: any. consequence: what goes wrong with other values.
    or_more: whether larger values are accepted too.
    """

    setting: str
    value: str
    accepts: Callable[[str], bool] | None = None
    consequence: str = ""
    or_more: bool = False


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The rules for one topic of a pipeline. retention_ms: how long an outbox keeps records; -1 in other topics."""

    name: str
    purpose: Purpose
    retention_ms: int = -1

    def created_with(self, replication: int, *, older: bool = False) -> dict[str, str]:
        """The settings that the topic is created with.

        older: whether the broker is older than Kafka 3.6 and has only one setting that bounds time stamps.
        """
        settings = {demand.setting: demand.value for demand in self._demands(replication)}
        if self.purpose in RELEASED:
            bounds = [OLDER_TIMESTAMP_BOUND] if older else [timestamp_bound("before"), timestamp_bound("after")]
            settings |= dict.fromkeys(bounds, str(UNBOUNDED_MS))
        return settings

    def problems(self, facts: TopicFacts, partitions: int) -> list[str]:
        """What is wrong with the existing topic, one line each with its remedy. partitions: of the input."""
        wrong = [_wrong_partitions(facts, partitions)] if facts.partitions != partitions else []
        for demand in self._demands(facts.replication):
            value = facts.configs.get(demand.setting)
            if value is not None and demand.accepts is not None and not demand.accepts(value):
                needed = f"{demand.value} or more" if demand.or_more else demand.value
                wrong.append(_wrong(facts, demand.setting, value, needed, demand.consequence))
        if self.purpose in RELEASED:
            for direction, windows in (("before", "old windows"), ("after", "windows ahead of its clock")):
                if (bound := facts.timestamp_bound_ms(direction)) != UNBOUNDED_MS:
                    setting, consequence = _bound_setting(facts, direction), f"the broker refuses {windows}"
                    wrong.append(_wrong(facts, setting, str(bound), str(UNBOUNDED_MS), consequence))
        return wrong

    def _demands(self, replication: int) -> list[_Demand]:
        return [*_PURPOSES[self.purpose](self.retention_ms), *_of_every_topic(replication)]


def own_topics(pipeline: str, outbox_retention_ms: int) -> tuple[TopicRules, ...]:
    """The rules of every topic that a pipeline writes, but its dead letters. pipeline: its id."""
    return tuple(
        TopicRules(f"{pipeline}.{purpose}", purpose, outbox_retention_ms if purpose is Purpose.OUTBOX else -1)
        for purpose in Purpose
    )


def problems(facts: Mapping[str, TopicFacts], rules: Iterable[TopicRules], partitions: int) -> list[str]:
    """What is wrong with those topics that exist, one line each with its remedy. partitions: of the input."""
    return [line for rule in rules if rule.name in facts for line in rule.problems(facts[rule.name], partitions)]


class ClusterNeeds(Protocol):
    """The settings in [kafka] that the input topic is compared with."""

    @property
    def timestamps(self) -> str: ...
    @property
    def accept_any_clock(self) -> bool: ...
    @property
    def downtime(self) -> int: ...


@dataclass(frozen=True, slots=True)
class WindowNeeds:
    """What the input topic is compared with: longest_ms, of the longest window that is released; the rest in [window].

    longest: what the settings call that window.
    """

    longest_ms: int
    grace_ms: int
    max_future_skew: int
    longest: str = "window.size"


def input_problems(facts: TopicFacts, settings: ClusterNeeds, window: WindowNeeds) -> list[str]:
    """Why the input topic must not be counted with these settings, one line each with its remedy."""
    wrong = _clock_problems(facts, settings, window)
    policy = _policies(facts.configs.get("cleanup.policy", "delete"))
    if "compact" in policy:
        wrong.append(_wrong(facts, "cleanup.policy", ",".join(sorted(policy)), "delete", _COMPACTED))
    retention_ms = int(facts.configs.get("retention.ms", -1))
    needed_ms = window.longest_ms + window.grace_ms + settings.downtime
    if "delete" in policy and retention_ms != -1 and retention_ms <= needed_ms:
        why = "records of an open window are gone before it is closed; else lower kafka.downtime"
        wrong.append(
            _wrong(
                facts,
                "retention.ms",
                str(retention_ms),
                f"more than {needed_ms} ({window.longest} + window.grace + kafka.downtime)",
                why,
            )
        )
    return wrong


def input_warnings(facts: TopicFacts) -> list[str]:
    """What may go wrong with the input topic, depending on how much arrives; one line each with its remedy."""
    size = facts.configs.get("retention.bytes", "-1")
    if size == "-1" or "delete" not in _policies(facts.configs.get("cleanup.policy", "delete")):
        return []
    return [
        f"topic {facts.name}: retention.bytes is {size}: where much arrives, records are deleted earlier than "
        "retention.ms says; set retention.bytes to -1, or see that a partition never grows so large"
    ]


def _clock_problems(facts: TopicFacts, settings: ClusterNeeds, window: WindowNeeds) -> list[str]:
    """What is wrong with the clock that stamps the records.

    Whose clock it is decides the privacy unit. If it is that of producers, the bound of their time stamps limits how
    far one of them can set the clock of the windows ahead.
    """
    kind = facts.timestamp_type
    given = f"topic {facts.name}: message.timestamp.type is {kind} where kafka.timestamps is {settings.timestamps}"
    if kind == LOG_APPEND_TIME:
        if settings.timestamps == "log_append_time":
            return []
        return [
            f'{given}: releases would name the privacy unit "blanked", the log gives "removed"; set kafka.timestamps '
            "to log_append_time, or message.timestamp.type to CreateTime"
        ]
    if settings.timestamps == "log_append_time":
        return [
            f'{given}: releases would promise the privacy unit "removed", but producers set the clock, and only '
            '"blanked" holds; set message.timestamp.type to LogAppendTime, or kafka.timestamps to create_time'
        ]
    bound = facts.timestamp_bound_ms("after")
    if settings.accept_any_clock or bound <= window.max_future_skew:
        return []
    needed = f"{window.max_future_skew} (window.max_future_skew) or less"
    why = "a producer with a fast clock closes windows early for all; else raise it or set kafka.accept_any_clock"
    return [_wrong(facts, _bound_setting(facts, "after"), str(bound), needed, why)]


def _bound_setting(facts: TopicFacts, direction: str) -> str:
    """The name of the setting that TopicFacts.timestamp_bound_ms() takes its value from."""
    setting = timestamp_bound(direction)
    unset = int(facts.configs.get(setting, UNBOUNDED_MS)) == UNBOUNDED_MS
    return OLDER_TIMESTAMP_BOUND if unset and OLDER_TIMESTAMP_BOUND in facts.configs else setting


def _policies(value: str) -> set[str]:
    """The values in cleanup.policy, which is a list with commas."""
    return {part.strip() for part in value.split(",")} - {""}


def _wrong(facts: TopicFacts, setting: str, value: str, needed: str, consequence: str) -> str:
    return f"topic {facts.name}: {setting} is {value}, set it to {needed}: {consequence}"


def _wrong_partitions(facts: TopicFacts, partitions: int) -> str:
    remedy = (
        f"stop all workers and add partitions up to {partitions}"
        if facts.partitions < partitions
        else "partitions cannot be taken away: give the pipeline another id, and window.start behind all it released"
    )
    return f"topic {facts.name}: {facts.partitions} partitions where the input has {partitions}: {remedy}"


_COMPACTED = "compaction deletes records that have a later one of the same key"
_DELETED = "releases are deleted"


def _of_every_topic(replication: int) -> list[_Demand]:
    """Any record fits, and what is committed survives the loss of a broker if there are enough replicas."""
    demands = [
        _Demand(
            "max.message.bytes",
            str(MAX_BATCH_BYTES),
            lambda value: int(value) >= MAX_BATCH_BYTES,
            "a large release cannot be written",
            or_more=True,
        )
    ]
    if replication < REPLICATED:
        return [*demands, _Demand("min.insync.replicas", "1")]
    return [
        *demands,
        _Demand(
            "min.insync.replicas",
            "2",
            lambda value: int(value) >= 2,
            "what is committed is lost with one broker",
            or_more=True,
        ),
        _Demand(
            "unclean.leader.election.enable",
            "false",
            lambda value: value.lower() == "false",
            "a replica that is behind may lead, and what is committed is lost",
        ),
    ]


def _retained(retention_ms: int, consequence: str) -> list[_Demand]:
    """Records are neither compacted away nor deleted before retention_ms, -1 for never. consequence: if they are."""

    def long_enough(value: str) -> bool:
        return int(value) == -1 or -1 < retention_ms <= int(value)

    return [
        _Demand("cleanup.policy", "delete", lambda value: "compact" not in _policies(value), _COMPACTED),
        _Demand("retention.ms", str(retention_ms), long_enough, consequence, or_more=retention_ms != -1),
        _Demand("retention.bytes", "-1", lambda value: value == "-1", consequence),
    ]


def _outbox(retention_ms: int) -> list[_Demand]:
    gone = "releases may be deleted before they are published"
    return [*_retained(retention_ms, gone), _Demand("message.timestamp.type", LOG_APPEND_TIME)]


def _ledger(_: int) -> list[_Demand]:
    return [
        _Demand(
            "cleanup.policy",
            "compact",
            lambda value: _policies(value) == {"compact"},
            "the ledger would lose positions, or grow for ever",
        ),
        _Demand("segment.ms", str(HOUR_MS)),
        _Demand("min.cleanable.dirty.ratio", "0.1"),
    ]


def _released(_: int) -> list[_Demand]:
    stamped = "the end of the window is the time stamp of a release"
    return [
        *_retained(-1, _DELETED),
        _Demand("message.timestamp.type", CREATE_TIME, lambda value: value == CREATE_TIME, stamped),
    ]


_PURPOSES: dict[Purpose, Callable[[int], list[_Demand]]] = {
    Purpose.OUTBOX: _outbox,
    Purpose.LEDGER: _ledger,
    Purpose.SKETCHES: _released,
    Purpose.ROLLUPS: _released,
}
