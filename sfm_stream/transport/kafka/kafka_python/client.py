"""A cluster over kafka-python: the one place that makes clients of the library, with all hooks in place."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from sfm_stream.transport.kafka.cluster_values import MAX_RECORD_BYTES
from sfm_stream.transport.kafka.kafka_python.admin import KafkaPythonAdmin
from sfm_stream.transport.kafka.kafka_python.batch_runs import MOST_BYTES
from sfm_stream.transport.kafka.kafka_python.hooks.connections import hooked_client
from sfm_stream.transport.kafka.kafka_python.hooks.group_membership import ASSIGNMENT_STRATEGY, hook_membership
from sfm_stream.transport.kafka.kafka_python.hooks.log_ends import LogEndAdmin
from sfm_stream.transport.kafka.kafka_python.hooks.producers import forget_at_exit, never_split
from sfm_stream.transport.kafka.kafka_python.hooks.whole_batches import give_batches
from sfm_stream.transport.kafka.kafka_python.producer import BATCH_BYTES, KafkaPythonProducer
from sfm_stream.transport.kafka.kafka_python.quiet_network import connecting_quietly
from sfm_stream.transport.kafka.kafka_python.readers import KafkaPythonGroupReader, KafkaPythonPartitionReader
from sfm_stream.transport.kafka.kafka_python.translation import cluster_name, translated

_FETCH_BYTES = 2 << 20
_METADATA_AGE_MS = 30_000
"""How often the client asks for the metadata of a topic; added partitions are noticed that soon."""
_REACH_MS = 10_000
"""How long the client tries to connect to a cluster that does not answer."""
_ANSWER_MS = 12_000
"""How long a broker may take to answer one request: what others need to replace one that is silent (by default they
wait for 9 s), and a little. kafka-python would wait for 30 s."""


@dataclass(frozen=True, slots=True)
class KafkaPythonCluster:
    """Implements cluster.Cluster. security: keyword arguments of kafka-python, secrets among them.

    session_ms: a worker that is silent for this long loses its partitions. transaction_ms: a transaction that is open
    for this long is aborted by the broker.
    """

    bootstrap: tuple[str, ...]
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    session_ms: int = 30_000
    transaction_ms: int = 30_000

    @property
    def name(self) -> str:
        return cluster_name(self.bootstrap)

    def group_reader(self, group: str, topic: str) -> KafkaPythonGroupReader:
        consumer = self._consumer(
            MOST_BYTES,
            group_id=group,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=max(100, self.session_ms // 10),
            partition_assignment_strategy=ASSIGNMENT_STRATEGY,
        )
        hook_membership(consumer)
        return KafkaPythonGroupReader(consumer, topic, self.translated)

    def partition_reader(self) -> KafkaPythonPartitionReader:
        return KafkaPythonPartitionReader(self._consumer(0), self.translated)

    def producer(self, transactional_id: str) -> KafkaPythonProducer:
        """Whoever asks for it ends it: the end of the process does not wait for it."""
        with self.translated(), connecting_quietly():
            producer = KafkaProducer(
                **self._common(),
                metrics_enabled=False,
                transactional_id=transactional_id,
                transaction_timeout_ms=self.transaction_ms,
                max_request_size=2 * MAX_RECORD_BYTES,
                batch_size=BATCH_BYTES,
                linger_ms=5,
            )
        forget_at_exit(producer)
        never_split(producer)
        return KafkaPythonProducer(producer, self.translated)

    def admin(self) -> KafkaPythonAdmin:
        with self.translated(), connecting_quietly():
            client = LogEndAdmin(**self._common())
        return KafkaPythonAdmin(client, self.translated)

    def translated(self) -> AbstractContextManager[None]:
        """Inside it an error of the client becomes one of this package, of one clear line."""
        return translated(self.bootstrap)

    def _consumer(self, most_bytes: int, **grouped: Any) -> KafkaConsumer:
        """A reader of committed records, whose poll() gives batches. It never chooses a position by itself.

        most_bytes: as in give_batches().
        """
        with self.translated(), connecting_quietly():
            consumer = KafkaConsumer(
                **self._common(),
                **grouped,
                metrics_enabled=False,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                max_partition_fetch_bytes=_FETCH_BYTES,
                metadata_max_age_ms=_METADATA_AGE_MS,
            )
        give_batches(consumer, self.translated, most_bytes)
        return consumer

    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": list(self.bootstrap),
            "client_id": "sfm-stream",
            "bootstrap_timeout_ms": _REACH_MS,
            "request_timeout_ms": _ANSWER_MS,
            "kafka_client": hooked_client,
            **self.security,
        }
