"""What the topics of a pipeline have to be, as functions of facts: the same of any cluster, and without one."""

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
"""The largest record in a batch of its own."""
REPLICATED = 3
"""From this many replicas on, two of them have to have a record before it counts as written."""


class Purpose(StrEnum):
    """What a pipeline has a topic for; the topic is named after it."""

    OUTBOX = "outbox"
    LEDGER = "ledger"
    SKETCHES = "sketches"
    ROLLUPS = "rollups"


RELEASED = frozenset({Purpose.SKETCHES, Purpose.ROLLUPS})
"""Kept for ever, under the time of the window, which may be long ago."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """A setting of a new topic. met: what else will do, None for anything. otherwise: what happens where it is not."""

    setting: str
    value: str
    met: Callable[[str], bool] | None = None
    otherwise: str = ""
    or_more: bool = False


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What one topic of a pipeline has to be, and what it is created with. retention_ms: of an outbox."""

    name: str
    purpose: Purpose
    retention_ms: int = -1

    def created_with(self, replication: int, *, older: bool = False) -> dict[str, str]:
        """Settings of the new topic. older: for a broker that knows one bound of time stamps only."""
        settings = {demand.setting: demand.value for demand in self._demands(replication)}
        if self.purpose in RELEASED:
            bounds = [OLDER_TIMESTAMP_BOUND] if older else [timestamp_bound("before"), timestamp_bound("after")]
            settings |= dict.fromkeys(bounds, str(UNBOUNDED_MS))
        return settings

    def problems(self, facts: TopicFacts, partitions: int) -> list[str]:
        """What is wrong with the topic, one line each. partitions: of the input."""
        wrong = [_wrong_partitions(facts, partitions)] if facts.partitions != partitions else []
        for demand in self._demands(facts.replication):
            value = facts.configs.get(demand.setting)
            if value is not None and demand.met is not None and not demand.met(value):
                needed = f"{demand.value} or more" if demand.or_more else demand.value
                wrong.append(_wrong(facts, demand.setting, value, needed, demand.otherwise))
        if self.purpose in RELEASED:
            for direction, windows in (("before", "old windows"), ("after", "windows ahead of its clock")):
                if (bound := facts.timestamp_bound_ms(direction)) != UNBOUNDED_MS:
                    setting, otherwise = _bound_setting(facts, direction), f"the broker refuses {windows}"
                    wrong.append(_wrong(facts, setting, str(bound), str(UNBOUNDED_MS), otherwise))
        return wrong

    def _demands(self, replication: int) -> list[_Demand]:
        return [*_PURPOSES[self.purpose](self.retention_ms), *_everywhere(replication)]


def own_topics(pipeline: str, outbox_retention_ms: int) -> tuple[TopicRules, ...]:
    """The rules of all topics that a pipeline writes: its id, and what each is for."""
    return tuple(
        TopicRules(f"{pipeline}.{purpose}", purpose, outbox_retention_ms if purpose is Purpose.OUTBOX else -1)
        for purpose in Purpose
    )


def problems(facts: Mapping[str, TopicFacts], rules: Iterable[TopicRules], partitions: int) -> list[str]:
    """What is wrong with topics that exist, one line each with its remedy. partitions: of the input."""
    return [line for rule in rules if rule.name in facts for line in rule.problems(facts[rule.name], partitions)]


class ClusterNeeds(Protocol):
    """Of the table [kafka]: what the input topic is compared with."""

    @property
    def timestamps(self) -> str: ...
    @property
    def accept_any_clock(self) -> bool: ...
    @property
    def downtime(self) -> int: ...


class WindowNeeds(Protocol):
    """Of the table [window]."""

    @property
    def size(self) -> int: ...
    @property
    def grace_ms(self) -> int: ...
    @property
    def max_future_skew(self) -> int: ...


def input_problems(facts: TopicFacts, settings: ClusterNeeds, window: WindowNeeds) -> list[str]:
    """Why the input topic must not be counted with these settings, one line each with its remedy."""
    wrong = _clock_problems(facts, settings, window)
    policy = _policy(facts.configs.get("cleanup.policy", "delete"))
    if "compact" in policy:
        wrong.append(_wrong(facts, "cleanup.policy", ",".join(sorted(policy)), "delete", _COMPACTED))
    retention_ms = int(facts.configs.get("retention.ms", -1))
    needed_ms = window.size + window.grace_ms + settings.downtime
    if "delete" in policy and retention_ms != -1 and retention_ms <= needed_ms:
        why = "records of an open window are gone before it is closed; else lower kafka.downtime"
        wrong.append(
            _wrong(
                facts,
                "retention.ms",
                str(retention_ms),
                f"more than {needed_ms} (window.size + window.grace + kafka.downtime)",
                why,
            )
        )
    return wrong


def input_warnings(facts: TopicFacts) -> list[str]:
    """What may go wrong with the input topic, and cannot be told beforehand."""
    size = facts.configs.get("retention.bytes", "-1")
    if size == "-1" or "delete" not in _policy(facts.configs.get("cleanup.policy", "delete")):
        return []
    return [
        f"topic {facts.name}: retention.bytes is {size}: where much arrives, records are deleted earlier than "
        "retention.ms says; set retention.bytes to -1, or see that a partition never grows so large"
    ]


def _clock_problems(facts: TopicFacts, settings: ClusterNeeds, window: WindowNeeds) -> list[str]:
    """Who gives the time stamps: it decides the privacy unit, and how far ahead the clock of a window can be set."""
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
    """The setting that timestamp_bound_ms() is taken from."""
    setting = timestamp_bound(direction)
    unset = int(facts.configs.get(setting, UNBOUNDED_MS)) == UNBOUNDED_MS
    return OLDER_TIMESTAMP_BOUND if unset and OLDER_TIMESTAMP_BOUND in facts.configs else setting


def _policy(value: str) -> set[str]:
    return {part.strip() for part in value.split(",")} - {""}


def _wrong(facts: TopicFacts, setting: str, value: str, needed: str, otherwise: str) -> str:
    return f"topic {facts.name}: {setting} is {value}, set it to {needed}: {otherwise}"


def _wrong_partitions(facts: TopicFacts, partitions: int) -> str:
    remedy = (
        f"stop all workers and add partitions up to {partitions}"
        if facts.partitions < partitions
        else "partitions cannot be taken away: give the pipeline another id, and window.start behind all it released"
    )
    return f"topic {facts.name}: {facts.partitions} partitions where the input has {partitions}: {remedy}"


_COMPACTED = "compaction deletes records that have a later one of the same key"
_DELETED = "releases are deleted"


def _everywhere(replication: int) -> list[_Demand]:
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


def _retained(retention_ms: int, otherwise: str) -> list[_Demand]:
    """Nothing is compacted away, nor deleted before its time; retention_ms: -1 for never."""

    def long_enough(value: str) -> bool:
        return int(value) == -1 or -1 < retention_ms <= int(value)

    return [
        _Demand("cleanup.policy", "delete", lambda value: "compact" not in _policy(value), _COMPACTED),
        _Demand("retention.ms", str(retention_ms), long_enough, otherwise, or_more=retention_ms != -1),
        _Demand("retention.bytes", "-1", lambda value: value == "-1", otherwise),
    ]


def _outbox(retention_ms: int) -> list[_Demand]:
    gone = "releases may be deleted before they are published"
    return [*_retained(retention_ms, gone), _Demand("message.timestamp.type", LOG_APPEND_TIME)]


def _ledger(_: int) -> list[_Demand]:
    return [
        _Demand(
            "cleanup.policy",
            "compact",
            lambda value: _policy(value) == {"compact"},
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
