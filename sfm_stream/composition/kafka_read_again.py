"""What a restart of an ingest worker reads again, for `check`: a window of the longest released span."""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.clock import now_ms
from sfm_stream.composition.kafka_cluster import topic_log
from sfm_stream.config.config import Config


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """What a restart reads at most: all that came since the longest window began.

    span: its name, longest_ms its greatest length. records: that came in so long a time until now, to the partition
    that got the most. kept_ms: the input has to be kept for longer than this.
    """

    span: str
    longest_ms: int
    records: int
    kept_ms: int


def read_again(config: Config) -> ReadAgain:
    """What it is at present, by the offsets of the input topic."""
    topic, window, longest_ms = config.kafka.topic, config.window, config.grids[-1].longest_ms
    with topic_log(config) as log:
        partitions = range(log.partitions(topic))
        began = log.starts(topic, partitions, since_ms=max(1, now_ms() - longest_ms - window.grace_ms))
        ends = log.ends(topic, partitions, stable=True)
    records = max((ends[partition] - began[partition] for partition in partitions), default=0)
    kept_ms = longest_ms + window.grace_ms + config.kafka.downtime
    return ReadAgain(config.budget.spans[-1].name, longest_ms, max(0, records), kept_ms)
