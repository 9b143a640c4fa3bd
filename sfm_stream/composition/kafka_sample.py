"""A sample of the input topic, for `check`: read without joining any group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from sfm_stream.composition.kafka_cluster import topic_log
from sfm_stream.composition.sample import Sample, sample
from sfm_stream.config.config import Config
from sfm_stream.events.placement import placement_of
from sfm_stream.transport.kafka.batch_clock import is_of_other_clock
from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import RecordBatch

_log = logging.getLogger(__name__)


def sample_topic(config: Config, records: int) -> Sample:
    """What an ingest worker would make of the last `records` or so of the input, over all partitions."""
    with topic_log(config) as log:
        count = log.partitions(config.kafka.topic)
        placement = placement_of(config.kafka.partitioner, lambda: count)
        return sample(config, _last_batches(config, log, count, records), records, placement)


def _last_batches(config: Config, log: TopicLog, count: int, records: int) -> Iterator[RecordBatch]:
    topic, partitions = config.kafka.topic, range(count)
    starts, ends = log.starts(topic, partitions), log.ends(topic, partitions, stable=True)
    share = -(-records // max(1, count))
    for partition in partitions:
        start = max(starts[partition], ends[partition] - share)
        yield from _warned(config, log.batches(topic, partition, start, ends[partition]))


def _warned(config: Config, batches: Iterable[LogBatch]) -> Iterator[LogBatch]:
    """The same batches of one partition. Behind the last one it logs a warning if a worker would refuse any."""
    refused = 0
    for batch in batches:
        refused += is_of_other_clock(batch, config.kafka.timestamps)
        yield batch
    if refused:
        _log.warning(
            "topic %s, partition %d: another clock than kafka.timestamps (%s) stamped %d of the last batches; a worker "
            "that reads them ends, a first start begins behind them",
            config.kafka.topic,
            batch.partition,
            config.kafka.timestamps,
            refused,
        )
