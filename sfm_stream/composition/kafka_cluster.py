"""Objects that a configuration on a cluster describes: the cluster, and a reader of its topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfm_stream.composition.kafka_names import names_of
from sfm_stream.config.config import Config
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.kafka_python.client import KafkaPythonCluster
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.units import ROLLUPS, SKETCHES


def cluster_of(config: Config) -> Cluster:
    """The cluster of a configuration, by kafka-python. Nothing is connected yet."""
    kafka = config.kafka
    return KafkaPythonCluster(tuple(kafka.bootstrap), config.security, kafka.session_timeout, kafka.transaction_timeout)


@contextmanager
def topic_log(config: Config) -> Iterator[TopicLog]:
    """A reader of the pipeline's topics, open for this block."""
    names = names_of(config)
    log = TopicLog(cluster_of(config), {SKETCHES: names.sketches, ROLLUPS: names.rollups})
    try:
        yield log
    finally:
        log.close()
