"""The values that cross between this package and a Kafka cluster, none of them a class of a client library."""

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
"""The largest record that is written: a roll-up of the largest shape takes most of it."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class GroupOffset(NamedTuple):
    """What a consumer group has committed of a partition. metadata: any text, which the group keeps beside it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of a consumer group, in one generation of the group.

    settled: the group has assigned the partitions of this generation, and the member was told which of them it has.
    """

    group: str
    member: str
    generation: int
    settled: bool

    @property
    def valid(self) -> bool:
        """False for one that has not joined yet, or was thrown out."""
        return self.generation >= 0


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Partitions that the group gave to a member (given), or took from it."""

    given: bool
    partitions: tuple[int, ...]


class LogBatch(RecordBatch, Protocol):
    """Records of one batch of the log. Reading its columns raises BrokerError where the bytes are corrupt."""

    @property
    def timestamp_type(self) -> str:
        """Whose clock stamped it: CREATE_TIME or LOG_APPEND_TIME; "" where its format has no time stamps."""
        ...

    def arrivals(self) -> NDArray[np.int64]: ...


class LogEndQuery:
    """Log ends of some partitions of a topic, on their way. Another thread fills it, and it may be read meanwhile.

    told: partition to its log end, at a time after the query. refused: partitions of which a broker does not tell the
    log end to anyone, now or later. why: what is missing of each of the others. over: nothing more will come.
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
    """What became of a new topic."""

    CREATED = auto()
    EXISTS = auto()
    """There is one of this name already."""
    UNKNOWN_SETTING = auto()
    """The broker does not know one of its settings, or not this value."""
    TOO_FEW_BROKERS = auto()
    """Fewer than the replicas that it should have."""
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class CreationResult:
    """words: those of the broker. error: what to raise, if nothing better can be said; None if the topic is there."""

    outcome: Creation
    words: str = ""
    error: Exception | None = None
