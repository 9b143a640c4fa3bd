"""A worker on a cluster with everything that belongs to it, as the loop of `workers/loop.py` runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.topic_watch import TopicWatch
from sfm_stream.transport.kafka.transport import KafkaTransport
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.observed_transport import ObservedTransport
from sfm_stream.workers.outbox import OutboxWorker
from sfm_stream.workers.repartition import RepartitionWorker
from sfm_stream.workers.rollup import RollupWorker

_EXPIRE_EVERY_S = 10.0
"""How often the roll-up looks for spans that are late."""


@dataclass(slots=True)
class Service:
    """A worker with its transport, as `serve` runs it."""

    name: str
    worker: IngestWorker | OutboxWorker | RollupWorker | RepartitionWorker
    transport: KafkaTransport
    log: TopicLog
    observed: ObservedTransport
    watch: TopicWatch

    @property
    def joined(self) -> bool:
        """Whether this worker is a member of its consumer group, with or without partitions."""
        return self.transport.joined

    def look(self) -> None:
        """Raises StateError where a topic is not as it was at the start. Waits for nothing."""
        self.watch.tick()

    def tick(self, stopping: Callable[[], bool]) -> None:
        with self.watch.explaining():
            self._turn(stopping)

    def _turn(self, stopping: Callable[[], bool]) -> None:
        self.worker.tick(stopping)

    def checkpoint(self) -> None:
        with self.watch.explaining():
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

    def _turn(self, stopping: Callable[[], bool]) -> None:
        self.worker.tick(stopping)
        if isinstance(self.worker, RollupWorker) and monotonic_s() >= self.expire_at:
            self.worker.expire(now_ms() - self.deadline_ms, stopping)
            self.expire_at = monotonic_s() + _EXPIRE_EVERY_S
