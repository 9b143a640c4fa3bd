"""What a first start refuses: windows of the epoch that were released before, and workers of an earlier epoch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfm_stream.composition.kafka_names import Names
from sfm_stream.errors import StateError
from sfm_stream.readable import instant
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.wire.codec import CloseMarker, decode

PATIENCE_S = 60.0
"""How long a first start waits for open transactions to be committed or aborted."""


class AlreadyReleased(StateError):
    """Releases exist that a first start would release a second time."""


def require_unreleased(log: TopicLog, names: Names, partitions: Sequence[int], start_ms: int) -> None:
    """Raise AlreadyReleased if the outbox or the sketch topic holds a release of this epoch, or one from start_ms on.

    The ledger alone does not tell: it may have been deleted and made anew. Open transactions are waited for, since they
    may still be committed.
    """
    for topic in (names.outbox, names.sketches):
        for partition in partitions:
            stored = log.read(topic, partition, patience_s=PATIENCE_S)
            for record in map(decode, (each.value for each in stored)):
                end_ms = record.through_ms if isinstance(record, CloseMarker) else record.window.end_ms
                if record.epoch == names.epoch:
                    raise AlreadyReleased(
                        f"topic {topic}, partition {partition} holds releases of epoch {names.epoch}, which the ledger "
                        f"{names.ledger} does not know: counting anew would release the same data twice. Raise "
                        "pipeline.epoch and set window.start behind the last released window"
                    )
                if record.epoch < names.epoch and end_ms > start_ms:
                    raise AlreadyReleased(
                        f"topic {topic}, partition {partition}: epoch {record.epoch} has released up to "
                        f"{instant(end_ms)} at "
                        f"least, window.start is {instant(start_ms)}: set it to a border behind the last released "
                        "window"
                    )


def require_stopped(log: TopicLog, names: Names, others: Iterable[int]) -> None:
    """Raise StateError if a worker of another epoch runs: it would not learn where its epoch has to end.

    others: the other epochs in the ledger.
    """
    for epoch in sorted(others):
        if log.group_members(names.ingest_group(epoch)):
            raise StateError(
                f"workers of epoch {epoch} are running: stop them, start epoch {names.epoch} with --first-start, and "
                f"start them again; they then finish the windows before window.start"
            )
