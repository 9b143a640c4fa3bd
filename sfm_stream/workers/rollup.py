"""The roll-up worker: committed releases in, hour and day records out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sfm_stream.errors import StateError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.pipeline.rollup.rollup import Rollup, Seen
from sfm_stream.transport.contract import TopicReader, Transport
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Revoked, Step
from sfm_stream.units import ROLLUPS
from sfm_stream.wire.codec import RollupRecord, decode_rollup
from sfm_stream.workers.perform import drain, perform

_PATIENCE_S = 5.0


class RollupWorker:
    """Rolls up one pipeline. history: reads what was published before, to rebuild open days.

    observer: called with each record once it is published.
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
        self._pipeline, self._calendar, self._transport = pipeline, calendar, transport
        self._history, self._max_bytes = history, max_bytes
        self._observer = observer
        self._partitions: dict[int, Rollup] = {}
        self._gone: list[Seen] = []
        self.published = 0

    def catch_up(self, stopping: Callable[[], bool], expire_before_ms: int | None = None) -> None:
        """Read everything that is committed so far and publish what is due.

        expire_before_ms: at the end, spans that end at or before this time are published even if not final.
        """
        while not stopping() and self.tick(stopping):
            pass
        if expire_before_ms is not None:
            self.expire(expire_before_ms, stopping)
            while not stopping() and self._waits():
                self.tick(stopping)
        self.checkpoint()

    def tick(self, stopping: Callable[[], bool]) -> bool:
        """One turn: poll, merge, publish what became final. Returns whether anything came or waits for another try."""
        came = False
        for event in self._transport.poll():
            if isinstance(event, Assigned):
                self._assign(event)
                came = True
            elif isinstance(event, Revoked):
                self._revoke(event.partition)
            elif not isinstance(event, InputEnd):
                self._merge(self._partitions[event.partition], event, stopping)
                came = True
            elif event.next_offset is not None:
                self._partitions[event.partition].passed(event.next_offset)
        for rollup in self._partitions.values():
            self._drain(rollup, stopping)
        return came or self._waits()

    def expire(self, before_ms: int, stopping: Callable[[], bool]) -> None:
        """Publish spans that end at or before this time as they stand."""
        for rollup in self._partitions.values():
            if not stopping():
                rollup.expire(before_ms)
                self._drain(rollup, stopping)

    def checkpoint(self) -> None:
        """Commit how far reading may begin, where it moved."""
        for rollup in self._partitions.values():
            if (step := rollup.checkpoint()) is not None:
                perform(self._transport, rollup, step)

    @property
    def seen(self) -> Iterable[Seen]:
        """Of every partition that was ever assigned: what a lost one had seen stays counted."""
        return [*self._gone, *(rollup.seen for rollup in self._partitions.values())]

    def _assign(self, event: Assigned) -> None:
        rollup = Rollup(self._pipeline, event.partition, self._calendar, self._max_bytes)
        self._partitions[event.partition] = rollup
        self._transport.seek(event.partition, rollup.restore(event.committed, self._past(rollup, event.partition)))

    def _past(self, rollup: Rollup, partition: int) -> Iterator[bytes]:
        """Published roll-ups that restoring needs; what those are is known once it has begun.

        All that was committed: the last transaction may be decided in the log of positions and not yet in this one.
        """
        since_ms = rollup.recalls_since_ms
        for record in self._history.read(ROLLUPS, partition, since_ms=since_ms, patience_s=_PATIENCE_S):
            if rollup.recalls(record.timestamp_ms):
                yield record.value

    def _revoke(self, partition: int) -> None:
        rollup = self._partitions.pop(partition, None)
        if rollup is not None:
            self._gone.append(rollup.seen)

    def _merge(self, rollup: Rollup, batch: RecordBatch, stopping: Callable[[], bool]) -> None:
        for offset, payload in zip(batch.offsets().tolist(), batch.values(), strict=True):
            if payload is None:
                raise StateError(f"sketch topic, partition {batch.partition}, offset {offset}: an empty record")
            rollup.add(offset, payload)
        if not rollup.failed:
            self._drain(rollup, stopping)

    def _drain(self, rollup: Rollup, stopping: Callable[[], bool]) -> None:
        self.published += drain(self._transport, rollup, stopping, done=self._show)

    def _show(self, step: Step) -> None:
        if self._observer is not None:
            for record in step.publish:
                self._observer(decode_rollup(record.value))

    def _waits(self) -> bool:
        return any(rollup.failed for rollup in self._partitions.values())
