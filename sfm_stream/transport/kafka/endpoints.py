"""What a transport reads and where it writes, and what must be so of every batch that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.errors import StateError
from sfm_stream.transport.kafka.cluster_values import LogBatch
from sfm_stream.transport.kafka.topic_changes import (
    OTHER_CLOCK,
    TIMESTAMP_TYPES,
    TopicAtStart,
    made_anew,
    repartitioned,
)
from sfm_stream.transport.kafka.topic_facts import TopicFacts


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Real names: the input topic, the consumer group, the worker in the ledger, the ledger, and the output topics.

    topics: name of a topic of the pipeline to its real name. input_at_start: what the input was at the start; None
    where any will do. timestamps: as kafka.timestamps, where it matters whose clock stamped the records; else "".
    """

    source: str
    group: str
    worker: str
    ledger: str
    topics: dict[str, str]
    input_at_start: TopicAtStart | None = None
    timestamps: str = ""

    def require_same_topic(self, topic_id: str) -> None:
        """Raises StateError where the topic that is read now is a new one of the old name. topic_id: "" if unknown."""
        if self.input_at_start is None or not (before := self.input_at_start.facts.topic_id):
            return
        if topic_id and topic_id != before:
            raise StateError(made_anew(self.source, before, topic_id, self.input_at_start.remedy))

    def require_partitions(self, before: int, now: int) -> None:
        """Raises StateError where partitions were added."""
        if now != before:
            at_start = self.input_at_start or TopicAtStart(TopicFacts(self.source, "", before, 0, {}))
            raise StateError(repartitioned(self.source, before, now, at_start.added))

    def require_clock(self, batches: Sequence[LogBatch]) -> None:
        """Raises StateError where the clock that stamped one of them is not that of `timestamps`."""
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


def is_of_other_clock(batch: LogBatch, timestamps: str) -> bool:
    """Whether another clock stamped this batch than kafka.timestamps says; with "" no clock is another one.

    A batch whose format has no time stamps is never one of the log's clock, and never one of another producer's.
    """
    if not timestamps or not batch.timestamp_type:
        return timestamps == "log_append_time"
    return batch.timestamp_type != TIMESTAMP_TYPES[timestamps]
