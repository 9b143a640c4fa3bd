"""The roll-up worker: reads committed releases, publishes hour and day records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sfm_stream.errors import StateError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.rollup import MergeCounts, Rollup
from sfm_stream.transport.contract import TopicReader, Transport
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Step
from sfm_stream.units import ROLLUPS
from sfm_stream.wire.codec import RollupRecord, decode_rollup
from sfm_stream.workers.partition_worker import PartitionWorker
from sfm_stream.workers.steps import perform_checkpoint, perform_due

_PATIENCE_S = 5.0


class RollupWorker(PartitionWorker[Rollup]):
    """Rolls up one pipeline. history: reads the roll-ups that were published before, to rebuild open days.

    observer: called with each record once it is published. published: records published by this process.
    """

    def __init__(
        self,
        pipeline: str,
        calendar: Calendar,
        transport: Transport,
        history: TopicReader,
        max_bytes: int,
        observer: Callable[[RollupRecord], None] | None = None,
    ) -> None:
        super().__init__(transport)
        self._pipeline, self._calendar = pipeline, calendar
        self._history, self._max_bytes = history, max_bytes
        self._observer = observer
        self._seen_of_lost: list[MergeCounts] = []
        self.published = 0

    def catch_up(self, stopping: Callable[[], bool], expire_before_ms: int | None = None) -> None:
        """Read everything that is committed so far and publish what is due.

        expire_before_ms: at the end, spans that end at or before this time are published even if not final.
        """
        while not stopping() and (self.tick(stopping) or self._waits()):
            pass
        if expire_before_ms is not None:
            self.expire(expire_before_ms, stopping)
            while not stopping() and self._waits():
                self.tick(stopping)
        self.checkpoint()

    def expire(self, before_ms: int, stopping: Callable[[], bool]) -> None:
        """Publish spans that end at or before this time as they stand."""
        for rollup in self.partitions.values():
            if not stopping():
                rollup.expire(before_ms)
                self._publish_due(rollup, stopping)

    def checkpoint(self) -> None:
        """Commit how far a restart may begin to read, where that moved. Nothing is published."""
        for rollup in self.partitions.values():
            perform_checkpoint(self._transport, rollup)

    @property
    def seen(self) -> Iterable[MergeCounts]:
        """What was seen in every partition that was ever assigned, lost ones too."""
        return [*self._seen_of_lost, *(rollup.seen for rollup in self.partitions.values())]

    def _begin(self, event: Assigned) -> Rollup:
        rollup = Rollup(self._pipeline, event.partition, self._calendar, self._max_bytes)
        self._transport.seek(event.partition, rollup.restore(event.committed, self._published_before(rollup, event)))
        return rollup

    def _published_before(self, rollup: Rollup, event: Assigned) -> Iterator[bytes]:
        """The published roll-ups that `rollup` needs to restore; it knows which ones once restoring has begun.

        Reads all that was committed, and waits for what is undecided: a transaction may be decided in the log of
        positions already, and not yet in the log of roll-ups.
        """
        since_ms = rollup.recalls_since_ms
        for record in self._history.read(ROLLUPS, event.partition, since_ms=since_ms, patience_s=_PATIENCE_S):
            if rollup.recalls(record.timestamp_ms):
                yield record.value

    def _read(self, rollup: Rollup, batches: Sequence[RecordBatch], stopping: Callable[[], bool]) -> None:
        """Merge what came. What becomes final with a batch is published before the next one is merged."""
        for batch in batches:
            for offset, payload in zip(batch.offsets().tolist(), batch.values(), strict=True):
                if payload is None:
                    raise StateError(f"sketch topic, partition {batch.partition}, offset {offset}: an empty record")
                rollup.add(offset, payload)
            if not rollup.failed:
                self._publish_due(rollup, stopping)

    def _end(self, rollup: Rollup, end: InputEnd) -> None:
        if end.next_offset is not None:
            rollup.passed(end.next_offset)

    def _revoked(self, rollup: Rollup) -> None:
        self._seen_of_lost.append(rollup.seen)

    def _commit_due(self, stopping: Callable[[], bool]) -> None:
        for rollup in self.partitions.values():
            self._publish_due(rollup, stopping)

    def _publish_due(self, rollup: Rollup, stopping: Callable[[], bool]) -> None:
        self.published += perform_due(self._transport, rollup, stopping, done=self._show)

    def _show(self, step: Step) -> None:
        if self._observer is not None:
            for record in step.publish:
                self._observer(decode_rollup(record.value))

    def _waits(self) -> bool:
        """Whether a step was not committed and waits for another try."""
        return any(rollup.failed for rollup in self.partitions.values())
