"""The publisher: committed records of the outbox in, the same bytes into the sketch topic."""

from __future__ import annotations

from collections.abc import Callable

from sfm_stream.clock import now_ms
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.transport.contract import Transport
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Revoked
from sfm_stream.workers.perform import drain, perform


class PublishWorker:
    """Copies the outbox of one pipeline. hold_ms: as in OutboxCopy; the clock on the wall says when it is over.

    partitions: those assigned. published: records copied by this process, close markers too.
    """

    def __init__(self, pipeline: str, transport: Transport, max_bytes: int, hold_ms: int | None = None) -> None:
        self._pipeline, self._transport = pipeline, transport
        self._max_bytes, self._hold_ms = max_bytes, hold_ms
        self.partitions: dict[int, OutboxCopy] = {}
        self.published = 0

    def tick(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """One turn: poll, judge all that came, copy what is due. Between two commits it looks whether to stop.

        Raises StateError and ConflictError as OutboxCopy.add; then nothing of what came is published.
        """
        for event in self._transport.poll():
            if isinstance(event, Assigned):
                self._assign(event)
            elif isinstance(event, Revoked):
                self.partitions.pop(event.partition, None)
            elif not isinstance(event, InputEnd):
                _add(self.partitions[event.partition], event)
            elif event.next_offset is not None:
                self.partitions[event.partition].passed(event.next_offset)
        now = now_ms()
        for copy in self.partitions.values():
            copy.due(now)
            self.published += drain(self._transport, copy, stopping)

    def checkpoint(self) -> None:
        """Commit how far reading may begin, where it moved. Nothing is published."""
        for copy in self.partitions.values():
            if (step := copy.checkpoint()) is not None:
                perform(self._transport, copy, step)

    def _assign(self, event: Assigned) -> None:
        copy = OutboxCopy(self._pipeline, event.partition, self._max_bytes, self._hold_ms)
        offset = copy.restore(event.committed)
        self.partitions[event.partition] = copy
        self._transport.seek(event.partition, offset)


def _add(copy: OutboxCopy, batch: RecordBatch) -> None:
    for offset, key, payload in zip(batch.offsets().tolist(), batch.keys(), batch.values(), strict=True):
        copy.add(offset, key, payload)
    copy.passed(batch.next_offset)
