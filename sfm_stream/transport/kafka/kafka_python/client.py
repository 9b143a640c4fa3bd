"""Connections to a Kafka cluster: the one place that makes clients, and says what their errors mean here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from sfm_stream.errors import SfmStreamError
from sfm_stream.transport.kafka.kafka_python.batches import give_batches
from sfm_stream.transport.kafka.kafka_python.log_end import LogEndAdmin
from sfm_stream.transport.kafka.kafka_python.reach import client, explained, reaching
from sfm_stream.transport.kafka.kafka_python.rebalance import WholeJoins
from sfm_stream.transport.kafka.kafka_python.troubles import becomes

MAX_RECORD_BYTES = 8 << 20
"""The largest record that is written: a roll-up of the largest shape takes most of it."""
_FETCH_BYTES = 2 << 20
_METADATA_AGE_MS = 30_000
"""How soon added partitions are noticed."""
_REACH_MS = 10_000
"""How long a cluster is called that does not answer."""
_ANSWER_MS = 12_000
"""How long a broker may take to answer one request: what others need to replace one that is silent (by default they
wait for 9 s), and a little. kafka-python would wait for 30 s."""


class HonestAssignor(CooperativeStickyAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Claims nothing for a member that was thrown out of its group, and tells it that it lost what it had.

    kafka-python (3.0.12) goes on claiming it: then nobody is given it. And it tells such a member nothing where that
    happens while it rejoins: it would go on with a partition that others have had in between.
    """

    coordinator: Any = None

    def metadata(self, topics: Any) -> Any:
        """What the member says when it joins."""
        if self.coordinator._generation.is_lost():
            self.member_assignment = None
            subscription = self.coordinator._subscription
            if lost := set(subscription.assigned_partitions()):
                subscription.rebalance_listener.on_partitions_lost(lost)
                subscription.assign_from_subscribed([])
        return super().metadata(topics)


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster. security: keyword arguments of kafka-python, secrets among them.

    session_ms: a worker that is silent for this long loses its partitions. transaction_ms: a transaction that is open
    for this long is aborted by the broker.
    """

    bootstrap: tuple[str, ...]
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    session_ms: int = 30_000
    transaction_ms: int = 30_000

    def consumer(self, group: str | None = None) -> KafkaConsumer:
        """A reader of committed records, whose poll() gives batches. It never chooses a position by itself."""
        grouped: dict[str, Any] = {}
        if group is not None:
            grouped = {
                "group_id": group,
                "session_timeout_ms": self.session_ms,
                "heartbeat_interval_ms": max(100, self.session_ms // 10),
                "partition_assignment_strategy": [HonestAssignor],
            }
        with self.speaking(), reaching():
            consumer = KafkaConsumer(
                **self._common(),
                **grouped,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                max_partition_fetch_bytes=_FETCH_BYTES,
                metadata_max_age_ms=_METADATA_AGE_MS,
            )
        if group is not None:
            for assignor in consumer._coordinator._assignors.values():
                assignor.coordinator = consumer._coordinator
            WholeJoins.become(consumer)
        return give_batches(consumer)

    def producer(self, transactional_id: str) -> KafkaProducer:
        """One for transactions. Whoever asks for it ends it: the end of the process does not wait for it."""
        with self.speaking(), reaching():
            producer = KafkaProducer(
                **self._common(),
                transactional_id=transactional_id,
                transaction_timeout_ms=self.transaction_ms,
                max_request_size=2 * MAX_RECORD_BYTES,
                batch_size=1 << 20,
                linger_ms=5,
            )
        producer._unregister_cleanup()
        return producer

    def plain_producer(self, compression: str | None = None) -> KafkaProducer:
        """An idempotent producer without transactions."""
        with self.speaking(), reaching():
            return KafkaProducer(
                **self._common(), acks="all", enable_idempotence=True, linger_ms=20, compression_type=compression
            )

    def admin(self) -> LogEndAdmin:
        with self.speaking(), reaching():
            return LogEndAdmin(**self._common())

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Inside it an error of the client becomes what troubles.py says, of one clear line."""
        try:
            yield
        except SfmStreamError:
            raise
        except Exception as error:
            kind = becomes(error)
            if kind is None:
                raise
            raise kind(f"Kafka at {', '.join(self.bootstrap)}: {explained(error)}") from error

    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": list(self.bootstrap),
            "client_id": "sfm-stream",
            "bootstrap_timeout_ms": _REACH_MS,
            "request_timeout_ms": _ANSWER_MS,
            "kafka_client": client,
            **self.security,
        }
