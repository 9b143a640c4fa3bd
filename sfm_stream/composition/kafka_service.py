"""Service: a worker on a cluster with its transport and the watch over its topics, as workers/loop.py runs it."""

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
"""How often the roll-up worker looks for spans past their deadline."""


@dataclass(slots=True)
class Service:
    """Implements loop.Worker."""

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
        """Raise StateError if a topic changed since the start. Waits for nothing."""
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
        """Read every partition again from what is committed. To be called after a BrokerAway."""
        self.transport.restart()

    def close(self) -> None:
        self.transport.close()
        self.log.close()


@dataclass(slots=True)
class RollupService(Service):
    """Also publishes spans that are not final at their deadline, as they stand.

    deadline_ms: how long after the end of a span. expire_at: when to look for such spans next, by the monotonic clock.
    """

    deadline_ms: int = 0
    expire_at: float = 0.0

    def _turn(self, stopping: Callable[[], bool]) -> None:
        self.worker.tick(stopping)
        if isinstance(self.worker, RollupWorker) and monotonic_s() >= self.expire_at:
            self.worker.expire(now_ms() - self.deadline_ms, stopping)
            self.expire_at = monotonic_s() + _EXPIRE_EVERY_S
