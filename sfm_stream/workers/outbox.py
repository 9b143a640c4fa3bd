"""The outbox worker: copies the committed records of the outbox, byte for byte, to the sketch topic.

`sfm-stream publish` runs it, and `sfm-stream ingest` beside the ingest worker. It draws nothing.

A poll brings a part of a large window, and a transaction costs the same whatever is in it. So what came waits for the
next poll, until its window is whole, or a transaction is full, or a poll brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sfm_stream.clock import now_ms
from sfm_stream.pipeline.outbox import OutboxCopy
from sfm_stream.transport.contract import Transport
from sfm_stream.types import Assigned, InputEnd, RecordBatch
from sfm_stream.workers.partition_worker import PartitionWorker
from sfm_stream.workers.steps import perform_checkpoint, perform_due


class OutboxWorker(PartitionWorker[OutboxCopy]):
    """Copies the outbox of one pipeline. hold_ms: as in OutboxCopy; the clock on the wall says when it is over.

    published: records copied by this process, close markers too. tick() raises StateError and ConflictError as
    OutboxCopy.add; then nothing of what came in this turn is published.
    """

    def __init__(self, pipeline: str, transport: Transport, max_bytes: int, hold_ms: int | None = None) -> None:
        super().__init__(transport)
        self._pipeline, self._max_bytes, self._hold_ms = pipeline, max_bytes, hold_ms
        self.published = 0
        self._growing: set[int] = set()
        """Partitions of which this turn's poll brought records."""

    def checkpoint(self) -> None:
        """Commit how far a restart may begin to read, where that moved. Nothing is published."""
        for copy in self.partitions.values():
            perform_checkpoint(self._transport, copy)

    def _begin(self, event: Assigned) -> OutboxCopy:
        copy = OutboxCopy(self._pipeline, event.partition, self._max_bytes, self._hold_ms)
        self._transport.seek(event.partition, copy.restore(event.committed))
        return copy

    def _read(self, copy: OutboxCopy, batches: Sequence[RecordBatch], stopping: Callable[[], bool]) -> None:
        for batch in batches:
            for offset, key, payload in zip(batch.offsets().tolist(), batch.keys(), batch.values(), strict=True):
                copy.add(offset, key, payload)
            copy.passed(batch.next_offset)
            self._growing.add(batch.partition)

    def _end(self, copy: OutboxCopy, end: InputEnd) -> None:
        if end.next_offset is not None:
            copy.passed(end.next_offset)

    def _commit_due(self, stopping: Callable[[], bool]) -> None:
        now = now_ms()
        growing, self._growing = self._growing, set()
        for number, copy in self.partitions.items():
            copy.due(now)
            done = partial(_enough, copy, number in growing, stopping)
            self.published += perform_due(self._transport, copy, done)


def _enough(copy: OutboxCopy, growing: bool, stopping: Callable[[], bool]) -> bool:
    """Whether to begin no further transaction in this turn. growing: its poll brought records of this partition."""
    return stopping() or (growing and not copy.gathered)
