"""The roll-up worker: committed releases in, hour and day records out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sfm_stream.app.drive import drain, perform
from sfm_stream.errors import StateError
from sfm_stream.pipeline.rollup import Rollup, Seen
from sfm_stream.pipeline.spans import Calendar
from sfm_stream.transport.base import TopicReader, Transport
from sfm_stream.types import ROLLUPS, Assigned, InputEnd, RecordBatch, Revoked


class RollupWorker:
    """Rolls up one pipeline. history: reads what was published before, to rebuild open days."""

    def __init__(
        self, pipeline: str, calendar: Calendar, transport: Transport, history: TopicReader, max_bytes: int
    ) -> None:
        self._pipeline, self._calendar, self._transport = pipeline, calendar, transport
        self._history, self._max_bytes = history, max_bytes
        self._partitions: dict[int, Rollup] = {}
        self.published = 0

    def catch_up(self, stopping: Callable[[], bool], expire_before_ms: int | None = None) -> None:
        """Read everything that is committed so far and publish what is due.

        expire_before_ms: at the end, spans that end at or before this time are published even if not final.
        """
        waiting = True
        while waiting and not stopping():
            waiting = False
            for event in self._transport.poll():
                if isinstance(event, Assigned):
                    self._assign(event)
                    waiting = True
                elif isinstance(event, Revoked):
                    self._partitions.pop(event.partition, None)
                elif not isinstance(event, InputEnd):
                    self._merge(self._partitions[event.partition], event, stopping)
                    waiting = True
        for rollup in self._partitions.values():
            if expire_before_ms is not None and not stopping():
                rollup.expire(expire_before_ms)
                self.published += drain(self._transport, rollup, stopping)
            if (step := rollup.checkpoint()) is not None:
                perform(self._transport, rollup, step)

    @property
    def seen(self) -> Iterable[Seen]:
        return [rollup.seen for rollup in self._partitions.values()]

    def _assign(self, event: Assigned) -> None:
        rollup = Rollup(self._pipeline, event.partition, self._calendar, self._max_bytes)
        past = (
            record.value
            for record in self._history.read(ROLLUPS, event.partition)
            if rollup.recalls(record.timestamp_ms)
        )
        self._partitions[event.partition] = rollup
        self._transport.seek(event.partition, rollup.restore(event.committed, past))

    def _merge(self, rollup: Rollup, batch: RecordBatch, stopping: Callable[[], bool]) -> None:
        for offset, payload in zip(batch.offsets().tolist(), batch.values(), strict=True):
            if payload is None:
                raise StateError(f"sketch topic, partition {batch.partition}, offset {offset}: an empty record")
            rollup.add(offset, payload)
        self.published += drain(self._transport, rollup, stopping)
