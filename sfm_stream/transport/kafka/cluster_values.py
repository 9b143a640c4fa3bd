"""The arguments and results of the protocols in cluster.py. None is a class of a client library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from threading import Event
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import RecordBatch

MAX_RECORD_BYTES = 8 << 20
"""The size of the largest record that is written. A roll-up of the largest shape takes most of it."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class GroupOffset(NamedTuple):
    """The committed offset of a consumer group in a partition. metadata: a text that Kafka stores with it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of a consumer group, in one generation of the group.

    settled: whether the member was told which partitions it has in this generation.
    """

    group: str
    member: str
    generation: int
    settled: bool

    @property
    def valid(self) -> bool:
        """Whether it is a member: it is none before it has joined, and after it was thrown out."""
        return self.generation >= 0


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Partitions that the group assigned to a member (given) or took from it (not given)."""

    given: bool
    partitions: tuple[int, ...]


class LogBatch(RecordBatch, Protocol):
    """One batch of the log. Asking for its columns raises BrokerError if its bytes are corrupt."""

    @property
    def timestamp_type(self) -> str:
        """CREATE_TIME if producers stamped it, LOG_APPEND_TIME if the broker did; "" for a format without stamps."""
        ...

    def arrivals(self) -> NDArray[np.int64]: ...


class LogEndQuery:
    """A question for the log ends of some partitions. Another thread fills in the answers; they may be read meanwhile.

    told: partition to a log end that was read after the question. refused: partitions whose broker never tells log
    ends. why: partition to what is missing, for all others. over: set when no more answers will come.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        self.told: dict[int, int] = {}
        self.refused: set[int] = set()
        self.why: dict[int, str] = dict.fromkeys(partitions, "no answer yet")
        self.over = Event()


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str]


class Creation(Enum):
    """The result of creating a topic."""

    CREATED = auto()
    EXISTS = auto()
    """A topic of this name exists already."""
    UNKNOWN_SETTING = auto()
    """The broker does not accept one of the settings or its value."""
    TOO_FEW_BROKERS = auto()
    """The cluster has fewer brokers than the topic should have replicas."""
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class CreationResult:
    """words: the message of the broker. error: what to raise by default; None if the topic exists now."""

    outcome: Creation
    words: str = ""
    error: Exception | None = None
