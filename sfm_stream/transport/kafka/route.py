"""What a transport reads and writes, and what must be so of every batch that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka import KafkaConsumer

from sfm_stream.errors import StateError
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.transport.kafka.topic_changes import OTHER_CLOCK, TIMESTAMP_TYPES, Kept, made_anew, repartitioned
from sfm_stream.transport.kafka.topic_rules import TopicFacts


@dataclass(frozen=True, slots=True)
class Route:
    """Real names: the input topic, the consumer group, the worker in the ledger, and where records go.

    kept: the input as it was at the start; None where any will do. timestamps: as kafka.timestamps, where records are
    counted by whose clock stamped them; "" where that does not matter.
    """

    source: str
    group: str
    worker: str
    ledger: str
    topics: dict[str, str]
    kept: Kept | None = None
    timestamps: str = ""

    def require_same(self, consumer: KafkaConsumer) -> None:
        """Raises StateError where what the consumer reads is a new topic of the old name. Asks nobody."""
        if self.kept is None or not (before := self.kept.facts.topic_id):
            return
        now = consumer._cluster.topic_id(self.source)
        if now is not None and now.int and str(now) != before:
            raise StateError(made_anew(self.source, before, str(now), self.kept.remedy))

    def require_partitions(self, before: int, now: int) -> None:
        """Raises StateError where partitions were added."""
        if now != before:
            kept = self.kept or Kept(TopicFacts(self.source, "", before, 0, {}))
            raise StateError(repartitioned(self.source, before, now, kept.added))

    def require_clock(self, batches: Sequence[KafkaBatch]) -> None:
        """Raises StateError where the clock that stamped one of them is not that of `timestamps`."""
        for batch in batches:
            if is_foreign(batch, self.timestamps):
                found = (
                    f"its time stamps are {batch.timestamp_type}" if batch.timestamp_type else "it has no time stamps"
                )
                raise StateError(
                    f"topic {self.source}, partition {batch.partition}, batch at offset {batch.first}: {found} where "
                    f"kafka.timestamps is {self.timestamps}; releases would name another privacy unit than the log "
                    f"gives, so nothing of it is counted: {OTHER_CLOCK}"
                )


def is_foreign(batch: KafkaBatch, timestamps: str) -> bool:
    """Whether another clock stamped this batch than kafka.timestamps says; with "" no clock is another one.

    A format without any time stamp has no clock that could be the wrong producer's, only never that of the log.
    """
    if not timestamps or not batch.timestamp_type:
        return timestamps == "log_append_time"
    return batch.timestamp_type != TIMESTAMP_TYPES[timestamps]
