"""The composition root on a cluster: configuration, transports, workers, clock and coins put together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sfm_stream.app.first_start import Names, first_start, names_of, other_epochs
from sfm_stream.app.ingest import IngestWorker, require_epoch_start
from sfm_stream.app.metered import MeteredTransport
from sfm_stream.app.publisher import PublishWorker
from sfm_stream.app.repartition import TARGET, Repartition
from sfm_stream.app.rollup import RollupWorker
from sfm_stream.app.sample import Sample, sample
from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.config import Config
from sfm_stream.errors import ConfigError
from sfm_stream.pipeline.partitioners import PARTITIONERS, Placement
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.sketch.codec import RollupRecord
from sfm_stream.transport.kafka.client import Connection
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topics import (
    TopicFacts,
    TopicRules,
    create_missing,
    create_plain,
    facts,
    input_problems,
    input_warnings,
    own_topics,
    problems,
)
from sfm_stream.transport.kafka.transport import KafkaTransport, Route
from sfm_stream.types import DEAD_LETTERS, ROLLUPS, SKETCHES, RecordBatch

_log = logging.getLogger(__name__)
_EXPIRE_EVERY_S = 10.0
_KEPT = ("retention.ms", "retention.bytes", "max.message.bytes")
"""What a copied topic takes over from its source: else old or large records would be deleted or refused."""


@dataclass(slots=True)
class Service:
    """A worker with its transport, as `serve` runs it."""

    name: str
    worker: IngestWorker | PublishWorker | RollupWorker | Repartition
    transport: KafkaTransport
    log: TopicLog
    meter: MeteredTransport

    @property
    def joined(self) -> bool:
        """Whether this worker is a member of its consumer group, with or without partitions."""
        return self.transport.joined

    def tick(self, stopping: Callable[[], bool]) -> None:
        self.worker.tick(stopping)

    def checkpoint(self) -> None:
        self.worker.checkpoint()

    def restart(self) -> None:
        """After a BrokerAway: nothing that was in hand is kept."""
        self.transport.restart()

    def close(self) -> None:
        self.transport.close()
        self.log.close()


@dataclass(slots=True)
class RollupService(Service):
    """Also publishes, as they stand, spans that are late to become final."""

    deadline_ms: int = 0
    expire_at: float = 0.0

    def tick(self, stopping: Callable[[], bool]) -> None:
        Service.tick(self, stopping)
        if isinstance(self.worker, RollupWorker) and monotonic_s() >= self.expire_at:
            self.worker.expire(now_ms() - self.deadline_ms, stopping)
            self.expire_at = monotonic_s() + _EXPIRE_EVERY_S


def connection(config: Config) -> Connection:
    kafka = config.kafka
    return Connection(tuple(kafka.bootstrap), config.security, kafka.session_timeout, kafka.transaction_timeout)


def prepare(config: Config, link: Connection, *, create: bool) -> str:
    """Check every topic of the pipeline, and with `create` make those that are missing; returns what the input is.

    Raises ConfigError with everything that is wrong.
    """
    source, kafka = config.kafka.topic, config.kafka
    rules, found = _topics(config, link)
    missing = [rule.name for rule in rules if rule.name not in found]
    if missing and not create:
        raise ConfigError(
            f"topics {', '.join(missing)} do not exist: if this pipeline never ran, start one ingest worker with "
            "--first-start, which creates them"
        )
    if missing:
        for name in create_missing(link, rules, found[source].partitions, kafka.replication):
            _log.info("created topic %s", name)
        found |= facts(link, missing)
    _require_right(config, rules, found)
    for line in input_warnings(found[source]):
        _log.warning(line)
    return f"{source}/{found[source].topic_id}"


@contextmanager
def topic_log(config: Config) -> Iterator[TopicLog]:
    """A reader of the pipeline's topics, open for this block."""
    names = names_of(config)
    log = TopicLog(connection(config), {SKETCHES: names.sketches, ROLLUPS: names.rollups})
    try:
        yield log
    finally:
        log.close()


def missing_topics(config: Config) -> list[str]:
    """The pipeline's own topics that are not there yet. Raises ConfigError where one that is there is wrong."""
    rules, found = _topics(config, connection(config))
    _require_right(config, rules, found)
    return [rule.name for rule in rules if rule.name not in found]


def _topics(config: Config, link: Connection) -> tuple[Sequence[TopicRules], dict[str, TopicFacts]]:
    """The rules of the pipeline's own topics, and what is there of them and of the input, which has to be."""
    source = config.kafka.topic
    rules = own_topics(config.settings.pipeline.id, config.kafka.outbox_retention)
    found = facts(link, [source, *(rule.name for rule in rules)])
    if source not in found:
        raise ConfigError(f"kafka.topic: there is no topic {source}")
    return rules, found


def _require_right(config: Config, rules: Sequence[TopicRules], found: Mapping[str, TopicFacts]) -> None:
    source = found[config.kafka.topic]
    wrong = input_problems(source, config.kafka, config.settings.window) + problems(found, rules, source.partitions)
    if wrong:
        raise ConfigError(*wrong)


def sample_topic(config: Config, records: int) -> Sample:
    """What an ingest worker would make of about so many of the last records of the input, over all partitions."""
    topic = config.kafka.topic
    with topic_log(config) as log:
        count = log.partitions(topic)
        return sample(config, _last_batches(log, topic, count, records), records, _placement(config, lambda: count))


def _last_batches(log: TopicLog, topic: str, count: int, records: int) -> Iterator[RecordBatch]:
    partitions = range(count)
    starts, ends = log.starts(topic, partitions), log.ends(topic, partitions, stable=True)
    share = -(-records // max(1, count))
    for partition in partitions:
        start = max(starts[partition], ends[partition] - share)
        yield from log.batches(topic, partition, start, ends[partition])


def _placement(config: Config, partitions: Callable[[], int]) -> Callable[[int], Placement]:
    """Of a partition of the input, which keys its producers put there."""
    partitioner = PARTITIONERS[config.kafka.partitioner]
    return lambda partition: Placement(partitioner, partition, partitions())


def open_ingest(config: Config, begin: bool, coins: Coins = SYSTEM_COINS) -> Service:
    """The ingest worker. begin: this may be the first start of the epoch. Raises as `prepare` and `first_start`."""
    names, link = names_of(config), connection(config)
    source = prepare(config, link, create=begin)
    log = TopicLog(link)
    if begin:
        first_start(config, link, log, source)
    group, worker = names.ingest_group(names.epoch), names.ingest_worker(names.epoch)
    topics = {SKETCHES: names.outbox}
    if config.kafka.dead_letters:
        topics[DEAD_LETTERS] = names.dead_letters
        create_plain(link, names.dead_letters, log.partitions(names.source), config.kafka.replication, {})
    transport = KafkaTransport(link, Route(names.source, group, worker, names.ledger, topics), log)
    meter = MeteredTransport(transport, "ingest")
    ingest = IngestWorker(
        config,
        meter,
        source,
        first_latest_ms=None,
        epoch_end=lambda partition: require_epoch_start(
            config, other_epochs(transport.entries(partition), names.epoch)
        ),
        coins=coins,
        placement=_placement(config, lambda: transport.partitions),
        dead_letters=config.kafka.dead_letters,
    )
    return Service("ingest", ingest, transport, log, meter)


def open_publisher(config: Config) -> Service:
    """The publisher: outbox to sketch topic."""
    names, link = names_of(config), connection(config)
    prepare(config, link, create=False)
    log = TopicLog(link)
    route = Route(names.outbox, names.publish_group, "publish", names.ledger, {SKETCHES: names.sketches})
    transport = KafkaTransport(link, route, log)
    slot_ms, window = config.kafka.release_slot, config.settings.window
    hold_ms = window.grace + window.clock_margin + slot_ms if slot_ms else None
    limit = config.settings.limits.max_transaction_bytes
    meter = MeteredTransport(transport, "publish")
    return Service("publish", PublishWorker(names.pipeline, meter, limit, hold_ms), transport, log, meter)


def open_repartition(config: Config, source: str, partitions: int) -> Service:
    """The worker that copies `source` into the input topic of the pipeline, which it makes, where it is missing.

    partitions: of the new topic. Raises ConfigError where either topic is not as it should be.
    """
    kafka, link, own = config.kafka, connection(config), f"{config.settings.pipeline.id}.repartition"
    found = facts(link, [source])
    if source not in found:
        raise ConfigError(f"--from: there is no topic {source}")
    if source == kafka.topic:
        raise ConfigError("--from: the same topic as kafka.topic, which the copy goes to")
    kind = {"log_append_time": "LogAppendTime", "create_time": "CreateTime"}[kafka.timestamps]
    kept = {name: found[source].configs[name] for name in _KEPT if name in found[source].configs}
    create_plain(link, kafka.topic, partitions, kafka.replication, kept | {"message.timestamp.type": kind})
    create_plain(link, own, found[source].partitions, kafka.replication, {"cleanup.policy": "compact"})
    log = TopicLog(link)
    route = Route(source, own, "repartition", own, {TARGET: kafka.topic})
    transport = KafkaTransport(link, route, log)
    meter = MeteredTransport(transport, "repartition")
    return Service("repartition", Repartition(config, meter, log.partitions(kafka.topic)), transport, log, meter)


def open_rollup(config: Config, observer: Callable[[RollupRecord], None] | None = None) -> Service:
    """The roll-up worker: sketch topic to roll-up topic. observer: called with each record once it is published."""
    names, link = names_of(config), connection(config)
    prepare(config, link, create=False)
    log = TopicLog(link, {ROLLUPS: names.rollups})
    route = Route(names.sketches, names.rollup_group, "rollup", names.ledger, {ROLLUPS: names.rollups})
    transport = KafkaTransport(link, route, log)
    limit = config.settings.limits.max_transaction_bytes
    meter = MeteredTransport(transport, "rollup")
    worker = RollupWorker(names.pipeline, config.calendar, meter, log, limit, observer)
    return RollupService("rollup", worker, transport, log, meter, config.settings.rollup.deadline)


__all__ = ["Names", "Service", "connection", "open_ingest", "open_publisher", "open_rollup", "topic_log"]
