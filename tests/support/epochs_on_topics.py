"""Sketch topics as workers of several epochs write them, and readers that count what they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.fake_kafka import FakeCluster
from support.fake_kafka_broker import FakeBroker
from support.memory_topics import stored
from support.published_topics import T0
from support.rollup_runs import QUARTER_MS, marker, release

from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.units import ROLLUPS, SKETCHES

HOUR = 4
"""In quarters of an hour."""
KEYS = (("a", "b"), ("c",))
"""Of each partition."""


@dataclass(frozen=True)
class Epoch:
    """Windows of 15 minutes from quarter `start` to quarter `end`; hours too where `hours`. named: spans have names."""

    number: int
    start: int
    end: int
    hours: bool = False

    def records(self, random: Random, partition: int, partitions: int) -> list[list[bytes]]:
        """What a partition publishes for each window, in order: releases of some keys, then the marker."""
        common: dict[str, Any] = {"epoch": self.number, "partition": partition, "partitions": partitions}
        windows = []
        for quarter in range(self.start, self.end):
            windows.append(self._window(random, quarter, 1, common | ({"span": "15m"} if self.hours else {})))
            first = quarter + 1 - HOUR
            if self.hours and (quarter + 1) % HOUR == 0 and first >= self.start:
                windows.append(self._window(random, first, HOUR, common | {"span": "hour"}))
        return windows

    def _window(self, random: Random, quarter: int, quarters: int, named: dict[str, Any]) -> list[bytes]:
        low_ms, size_ms = T0 + quarter * QUARTER_MS, quarters * QUARTER_MS
        keys = [key for key in KEYS[named["partition"]] if random.random() < 0.7]
        spans = {"spans": ("15m", "hour")} if self.hours else {}
        releases = [release(low_ms, key, window_ms=size_ms, **named) for key in keys]
        return [*releases, marker(low_ms, low_ms + size_ms, size_ms, **named, **spans)]


def flat(windows: Sequence[Sequence[bytes]]) -> list[bytes]:
    return [record for window in windows for record in window]


def merged(random: Random, first: list[bytes], second: list[bytes]) -> list[bytes]:
    """Both lists in one, each in its order."""
    places = sorted(random.sample(range(len(first) + len(second)), len(first)))
    one, other = iter(first), iter(second)
    taken = set(places)
    return [next(one) if at in taken else next(other) for at in range(len(first) + len(second))]


class CountingLog(TopicLog):
    """Counts the records of the batches that it fetches."""

    read_records = 0

    def batches(self, *arguments: Any, **named: Any) -> Iterator[LogBatch]:
        for batch in super().batches(*arguments, **named):
            self.read_records += batch.count
            yield batch


@dataclass
class Written:
    """A cluster with the topics of a pipeline. appended_ms: of records that the broker stamps, the time."""

    broker: FakeBroker = field(default_factory=FakeBroker)

    def log(self) -> CountingLog:
        return CountingLog(FakeCluster(broker=self.broker))

    def write(
        self,
        partitions: Sequence[Sequence[bytes]],
        *,
        at_once: int = 7,
        late_ms: int = 2 * QUARTER_MS,
        appended: frozenset[int] = frozenset(),
    ) -> Written:
        """at_once: records of a transaction. late_ms: how long behind its latest stamp it is committed.

        appended: numbers of transactions whose records the broker stamps.
        """
        for topic in (SKETCHES, ROLLUPS):
            self.broker.create(topic, len(partitions))
        for partition, payloads in enumerate(partitions):
            log, now_ms = self.broker.log((SKETCHES, partition)), 0
            records = [(each.key, each.value, each.timestamp_ms) for each in stored(payloads)]
            for number, low in enumerate(range(0, len(records), at_once)):
                some = records[low : low + at_once]
                now_ms = max([now_ms, *(end_ms + late_ms for _, _, end_ms in some)])
                log.append(some, 1, transactional=True, appended_ms=now_ms if number in appended else None)
                log.mark(1, 0, True, now_ms)
        return self


def hours_of(hours: int, **epoch: Any) -> list[bytes]:
    return flat(Epoch(1, 0, hours * HOUR, **epoch).records(Random(1), 0, 1))
