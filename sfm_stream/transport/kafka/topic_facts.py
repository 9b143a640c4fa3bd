"""A topic as a cluster describes it: an id, partitions, replicas, and all of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfm_stream.units import INT64_MAX

CREATE_TIME, LOG_APPEND_TIME = "CreateTime", "LogAppendTime"
"""Whose clock stamps records, as Kafka names it: that of their producer, or that of the broker."""
TIMESTAMP_TYPES = {"log_append_time": LOG_APPEND_TIME, "create_time": CREATE_TIME}
"""A value of kafka.timestamps to that of message.timestamp.type."""
UNBOUNDED_MS = INT64_MAX
OLDER_TIMESTAMP_BOUND = "message.timestamp.difference.max.ms"
"""The bound of time stamps in both directions: the only one before Kafka 3.6, gone since 4.0."""


def timestamp_bound(direction: str) -> str:
    """The setting that says how far "before" or "after" the broker's clock time stamps of producers may lie."""
    return f"message.timestamp.{direction}.max.ms"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as it is. topic_id: another one once it is deleted and made again; "" where the broker gives none.

    replication: of the partition with the fewest replicas.
    """

    name: str
    topic_id: str
    partitions: int
    replication: int
    configs: Mapping[str, str]

    @property
    def timestamp_type(self) -> str:
        """Whose clock stamps the records: CREATE_TIME or LOG_APPEND_TIME."""
        return self.configs.get("message.timestamp.type", CREATE_TIME)

    def timestamp_bound_ms(self, direction: str) -> int:
        """How far "before" or "after" the broker's clock time stamps of producers may lie."""
        bound = int(self.configs.get(timestamp_bound(direction), UNBOUNDED_MS))
        return bound if bound != UNBOUNDED_MS else int(self.configs.get(OLDER_TIMESTAMP_BOUND, UNBOUNDED_MS))
