"""Copies the public topics of a pipeline into a file, and follows them.

A round copies what is committed in both topics. Where they end is asked of the roll-ups first, and sketches are copied
first: so whatever a roll-up in the copy is made of is in the copy too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sfm_stream.errors import BrokerAway
from sfm_stream.transport.files.topic_cache import TopicCache
from sfm_stream.transport.kafka.stamped_partition import stored_rows
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES

_STEP_BYTES = 4 << 20
_STEP_RECORDS = 2_000
"""Of one transaction of the copy, about; no more is held in memory."""
TOPICS = (SKETCHES, ROLLUPS)


@dataclass(frozen=True, slots=True)
class Topics:
    """The public topics as they are now. names: of each on the cluster. sources: of each in the copy (TopicCache)."""

    names: Mapping[str, str]
    sources: Mapping[str, str]


@dataclass(slots=True)
class Reach:
    """Offsets of one partition: the first that the topic has, up to where it is copied, and where it ends."""

    first: int
    copied: int
    end: int


@dataclass(slots=True)
class TopicCopy:
    """One copy, and how far it is. moved: called after each step."""

    cache: TopicCache
    topics: Topics
    log: TopicLog
    moved: Callable[[], None] = lambda: None
    reaches: dict[tuple[str, int], Reach] = field(default_factory=dict)

    def follow(self, stopping: Callable[[], bool]) -> bool:
        """Copy what is committed now, or until `stopping`. False: the topics end before what is copied of them.

        Raises BrokerAway, and what the cache raises.
        """
        ends = {topic: self._ends(topic) for topic in (ROLLUPS, SKETCHES)}
        copied = self.cache.copied()
        for topic in TOPICS:
            numbers = ends[topic].keys()
            firsts = self.log.starts(self.topics.names[topic], numbers)
            done = copied.get(self.topics.sources[topic], {})
            for number, end in ends[topic].items():
                if done.get(number, 0) > end:
                    return False
                self.reaches[topic, number] = Reach(firsts[number], max(firsts[number], done.get(number, 0)), end)
            self.cache.forget(topic, firsts)
        for (topic, number), reach in sorted(self.reaches.items(), key=lambda each: TOPICS.index(each[0][0])):
            if reach.copied < reach.end and not stopping():
                self._copy(topic, number, reach, stopping)
        self.moved()
        return True

    @property
    def done(self) -> int:
        """Offsets that are copied."""
        return sum(reach.copied - reach.first for reach in self.reaches.values())

    @property
    def wanted(self) -> int:
        """Offsets that the topics had when they were asked last."""
        return sum(max(0, reach.end - reach.first) for reach in self.reaches.values())

    def mark(self) -> str:
        """A text for what is copied: of which topics, from where to where."""
        reached = {
            f"{self.topics.sources[topic]}/{n}": (at.first, at.copied) for (topic, n), at in self.reaches.items()
        }
        return str(sorted(reached.items()))

    def _ends(self, topic: str) -> dict[int, int]:
        name = self.topics.names[topic]
        numbers = range(self.log.partitions(name))
        ends = self.log.ends(name, numbers, stable=True)
        if not numbers or set(numbers) - ends.keys():
            raise BrokerAway(f"topic {name}: where it ends cannot be found out now")
        return ends

    def _copy(self, topic: str, number: int, reach: Reach, stopping: Callable[[], bool]) -> None:
        source = self.topics.sources[topic]
        for records, next_offset in self._steps(topic, number, reach.copied, reach.end):
            self.cache.add(source, topic, number, records, next_offset)
            reach.copied = next_offset
            self.moved()
            if stopping():
                return

    def _steps(self, topic: str, number: int, start: int, stop: int) -> Iterator[tuple[list[StoredRecord], int]]:
        """Records, and the offset behind them; the last ones with the stop, as control records may lie before it."""
        records, size, behind = list[StoredRecord](), 0, start
        for batch in self.log.batches(self.topics.names[topic], number, start, stop):
            offsets = batch.offsets()
            for stored in stored_rows(batch, ((offsets >= start) & (offsets < stop)).nonzero()[0].tolist()):
                records.append(stored)
                size += len(stored.value)
                behind = stored.offset + 1
                if size >= _STEP_BYTES or len(records) >= _STEP_RECORDS:
                    yield records, behind
                    records, size = [], 0
        yield records, stop
