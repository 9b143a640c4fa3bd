"""The composition root on a cluster: one function opens each worker, with its transport, clock and coins."""

from __future__ import annotations

from collections.abc import Callable

from sfm_stream import kernels
from sfm_stream.composition.kafka_cluster import cluster_of
from sfm_stream.composition.kafka_epochs import partition_end_ms
from sfm_stream.composition.kafka_first_start import first_start
from sfm_stream.composition.kafka_names import names_of
from sfm_stream.composition.kafka_service import RollupService, Service
from sfm_stream.composition.kafka_topics import prepare
from sfm_stream.config.config import Config
from sfm_stream.errors import ConfigError
from sfm_stream.events.placement import placement_of
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.transport.kafka.endpoints import Endpoints
from sfm_stream.transport.kafka.topic_changes import changes, copy_at_start
from sfm_stream.transport.kafka.topic_facts import TIMESTAMP_TYPES, TopicFacts
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topic_watch import TopicWatch
from sfm_stream.transport.kafka.topics import create_plain, facts
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.units import DEAD_LETTERS, ROLLUPS, SKETCHES
from sfm_stream.wire.codec import RollupRecord
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.observed_transport import ObservedTransport
from sfm_stream.workers.outbox import OutboxWorker
from sfm_stream.workers.repartition import TARGET, RepartitionWorker
from sfm_stream.workers.rollup import RollupWorker

_COPIED_SETTINGS = ("retention.ms", "retention.bytes", "max.message.bytes")
"""Settings that the copy of a topic takes from its source: else old or large records would be deleted or refused."""


def begin_epoch(config: Config) -> bool:
    """The first start of an epoch, which counts nothing: it makes the topics that are missing, and the first positions.

    False if the epoch has begun before. Raises as `prepare` and `first_start`.
    """
    names, cluster = names_of(config), cluster_of(config)
    dead_letters = names.dead_letters if config.kafka.dead_letters else None
    at_start, _ = prepare(config, cluster, create=True, dead_letters=dead_letters)
    source, log = at_start[names.source].facts, TopicLog(cluster)
    try:
        return first_start(config, names, cluster, log, identity_of(source), range(source.partitions))
    finally:
        log.close()


def identity_of(source: TopicFacts) -> str:
    """The identity of an input topic in the positions: one that is made anew under the same name has another."""
    return f"{source.name}/{source.topic_id}"


def open_ingest(config: Config, begin: bool, coins: Coins = SYSTEM_COINS) -> Service:
    """The ingest worker. begin: this may be the first start of the epoch. Raises as `prepare` and `first_start`."""
    kernels.choose(config.worker.kernel)
    names, cluster = names_of(config), cluster_of(config)
    dead_letters = names.dead_letters if config.kafka.dead_letters else None
    at_start, watch = prepare(config, cluster, create=begin, dead_letters=dead_letters)
    input_facts = at_start[names.source].facts
    source = identity_of(input_facts)
    log = TopicLog(cluster)
    if begin:
        first_start(config, names, cluster, log, source, range(input_facts.partitions))
    group, worker = names.ingest_group(names.epoch), names.ingest_worker(names.epoch)
    topics = {SKETCHES: names.outbox}
    if dead_letters is not None:
        topics[DEAD_LETTERS] = dead_letters
    timestamps = config.kafka.timestamps
    endpoints = Endpoints(names.source, group, worker, names.ledger, topics, at_start[names.source], timestamps)
    transport = KafkaTransport(cluster, endpoints, log)
    observed = ObservedTransport(transport, "ingest")
    ingest = IngestWorker(
        config,
        observed,
        source,
        first_latest_ms=None,
        epoch_end=lambda partition: partition_end_ms(config, transport.entries(partition)),
        coins=coins,
        placement=placement_of(config.kafka.partitioner, lambda: transport.partitions),
        dead_letters=dead_letters is not None,
    )
    return Service("ingest", ingest, transport, log, observed, watch)


def open_outbox(config: Config) -> Service:
    """The outbox worker: outbox to sketch topic."""
    kernels.choose(config.worker.kernel)
    names, cluster = names_of(config), cluster_of(config)
    at_start, watch = prepare(config, cluster, create=False)
    log = TopicLog(cluster)
    topics = {SKETCHES: names.sketches}
    endpoints = Endpoints(names.outbox, names.publish_group, "publish", names.ledger, topics, at_start[names.outbox])
    transport = KafkaTransport(cluster, endpoints, log)
    slot_ms, window = config.kafka.release_slot, config.window
    hold_ms = window.grace_ms + window.clock_margin + slot_ms if slot_ms else None
    limit = config.limits.max_transaction_bytes
    observed = ObservedTransport(transport, "publish")
    worker = OutboxWorker(names.pipeline, observed, limit, hold_ms)
    return Service("publish", worker, transport, log, observed, watch)


def open_repartition(config: Config, source: str, partitions: int) -> Service:
    """The worker that copies `source` into the input topic of the pipeline, which is created if it does not exist.

    partitions: of the new topic. Raises ConfigError if `source` does not exist or is the input topic.
    """
    kafka, cluster, own = config.kafka, cluster_of(config), f"{config.pipeline.id}.repartition"
    existing = facts(cluster, [source])
    if source not in existing:
        raise ConfigError(f"--from: there is no topic {source}")
    if source == kafka.topic:
        raise ConfigError("--from: the same topic as kafka.topic, which the copy goes to")
    taken = {name: existing[source].configs[name] for name in _COPIED_SETTINGS if name in existing[source].configs}
    kind = {"message.timestamp.type": TIMESTAMP_TYPES[kafka.timestamps]}
    create_plain(cluster, kafka.topic, partitions, kafka.replication, taken | kind)
    create_plain(cluster, own, existing[source].partitions, kafka.replication, {"cleanup.policy": "compact"})
    at_start = copy_at_start(*(facts(cluster, [name])[name] for name in (source, kafka.topic, own)))
    log = TopicLog(cluster)
    endpoints = Endpoints(source, own, "repartition", own, {TARGET: kafka.topic}, at_start[source])
    transport = KafkaTransport(cluster, endpoints, log)
    observed = ObservedTransport(transport, "repartition")
    worker = RepartitionWorker(config, observed, at_start[kafka.topic].facts.partitions)
    watch = TopicWatch(lambda: changes(at_start.values(), facts(cluster, at_start)))
    return Service("repartition", worker, transport, log, observed, watch)


def open_rollup(config: Config, observer: Callable[[RollupRecord], None] | None = None) -> Service:
    """The roll-up worker: sketch topic to roll-up topic. observer: called with each record once it is published."""
    kernels.choose(config.worker.kernel)
    names, cluster = names_of(config), cluster_of(config)
    at_start, watch = prepare(config, cluster, create=False)
    log = TopicLog(cluster, {ROLLUPS: names.rollups})
    topics = {ROLLUPS: names.rollups}
    endpoints = Endpoints(names.sketches, names.rollup_group, "rollup", names.ledger, topics, at_start[names.sketches])
    transport = KafkaTransport(cluster, endpoints, log)
    limit = config.limits.max_transaction_bytes
    observed = ObservedTransport(transport, "rollup")
    worker = RollupWorker(names.pipeline, config.calendar, observed, log, limit, observer)
    return RollupService("rollup", worker, transport, log, observed, watch, config.rollup.deadline)
