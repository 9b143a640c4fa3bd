"""The topics of one KafkaTransport, and the checks on what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.errors import StateError
from sfm_stream.transport.kafka.batch_clock import is_of_other_clock
from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_changes import OTHER_CLOCK, TopicAtStart, made_anew, repartitioned
from sfm_stream.transport.kafka.topic_facts import TopicFacts


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Real names of the topics that a transport reads and writes, its consumer group, and its name in the ledger.

    source: the topic that is read. worker: the name in the ledger. topics: a topic of units.py to its real name.
    input_at_start: the source as it was at the start; None if changes do not matter. timestamps: kafka.timestamps, or
    "" if it does not matter whose clock stamped the records.
    """

    source: str
    group: str
    worker: str
    ledger: str
    topics: dict[str, str]
    input_at_start: TopicAtStart | None = None
    timestamps: str = ""

    def require_same_topic(self, topic_id: str) -> None:
        """Raise StateError if the source was deleted and made anew. topic_id: of the source now; "" if unknown."""
        if self.input_at_start is None or not (before := self.input_at_start.facts.topic_id):
            return
        if topic_id and topic_id != before:
            raise StateError(made_anew(self.source, before, topic_id, self.input_at_start.remedy))

    def require_partitions(self, before: int, now: int) -> None:
        """Raise StateError if the number of partitions of the source changed."""
        if now != before:
            at_start = self.input_at_start or TopicAtStart(TopicFacts(self.source, "", before, 0, {}))
            raise StateError(repartitioned(self.source, before, now, at_start.added))

    def require_clock(self, batches: Sequence[LogBatch]) -> None:
        """Raise StateError if another clock than that of `timestamps` stamped one of these batches."""
        for batch in batches:
            if is_of_other_clock(batch, self.timestamps):
                stamps = (
                    f"its time stamps are {batch.timestamp_type}" if batch.timestamp_type else "it has no time stamps"
                )
                raise StateError(
                    f"topic {self.source}, partition {batch.partition}, batch at offset {batch.first}: {stamps} where "
                    f"kafka.timestamps is {self.timestamps}; releases would name another privacy unit than the log "
                    f"gives, so nothing of it is counted: {OTHER_CLOCK}"
                )
