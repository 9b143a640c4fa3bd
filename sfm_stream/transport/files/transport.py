"""The Transport of one machine: lines or a topic of the log as input, the log as output. No broker, no thread.

Both workers of a pipeline use it over one SqliteLog: the ingest worker with a LineInput, the roll-up with a
TopicInput. A commit is one transaction of the log, so records and positions are there together or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Protocol

from sfm_stream.errors import StateError, UsageError
from sfm_stream.transport.contract import InputEvent
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Step


class Input(Protocol):
    """Partitions that can be read from any offset on."""

    @property
    def partitions(self) -> int: ...

    def read(self, partition: int) -> RecordBatch | InputEnd | None:
        """The next batch, the end for now or for ever, or None: nothing in a short while."""
        ...

    def seek(self, partition: int, offset: int) -> None: ...

    def close(self) -> None: ...


class FileTransport:
    """A Transport from `source` to `log`, with positions under the name `worker`. Closing it leaves the log open."""

    def __init__(self, source: Input, log: SqliteLog, worker: str) -> None:
        self._source = source
        self._log = log
        self._worker = worker
        self._assigned = False
        self._held: set[int] = set()

    @property
    def partitions(self) -> int:
        return self._source.partitions

    def poll(self) -> Sequence[InputEvent]:
        """First Assigned for every partition, alone, so that a seek comes before any reading.

        Then what each partition has next: a batch, or InputEnd, again on every call while there is nothing new.
        Without a seek reading goes on at the committed offset. Raises StateError as the input does.
        """
        if not self._assigned:
            return self._assign()
        events: list[InputEvent] = []
        for partition in range(self.partitions):
            event = self._source.read(partition) if partition not in self._held else None
            if event is not None:
                events.append(event)
        return events

    def seek(self, partition: int, offset: int) -> None:
        """As in the protocol. Raises UsageError for a partition that is not assigned."""
        if not self._assigned or not 0 <= partition < self.partitions:
            raise UsageError(f"partition {partition} is not assigned, so that nothing can be sought in it")
        self._source.seek(partition, offset)
        self._held.discard(partition)

    def hold(self, partitions: Set[int]) -> None:
        """As in the protocol."""
        self._held = set(partitions)

    def commit(self, step: Step) -> bool:
        """As SqliteLog.append: True committed, False not begun; raises StateError where it failed and was undone."""
        return self._log.append(self._worker, step)

    def close(self) -> None:
        self._source.close()

    def _assign(self) -> list[InputEvent]:
        committed = self._log.positions(self._worker)
        if beyond := [partition for partition in committed if partition >= self.partitions]:
            raise StateError(
                f"{self._log.path}: worker {self._worker!r} has a position in partition {max(beyond)}, but its input "
                f"has {self.partitions} partition(s) only"
            )
        for partition, position in committed.items():
            self._source.seek(partition, position.offset)
        self._assigned = True
        return [Assigned(partition, committed.get(partition)) for partition in range(self.partitions)]
