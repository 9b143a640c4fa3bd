"""The Transport of one machine: a file or a topic of the output file as input, the output file as output.

There is no broker and no thread. Both workers of a pipeline use it over one SqliteLog: the ingest worker with a
LineInput, the roll-up worker with a TopicInput. A commit is one transaction of the log, so records and positions are
there together or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum, auto
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


class FilePartitionState(Enum):
    """The state of a partition: what a poll does with it."""

    UNASSIGNED = auto()
    """The next poll assigns it."""
    READING = auto()
    HELD = auto()
    """It gives no batch, as the worker asked."""


class FilePartitionEvent(Enum):
    ASSIGNED = auto()
    SOUGHT = auto()
    HOLD = auto()
    """A call of hold() names it."""
    LET_GO = auto()
    """A call of hold() does not name it."""


PARTITION_TRANSITIONS = {
    (FilePartitionState.UNASSIGNED, FilePartitionEvent.ASSIGNED): FilePartitionState.READING,
    (FilePartitionState.UNASSIGNED, FilePartitionEvent.HOLD): FilePartitionState.UNASSIGNED,
    (FilePartitionState.UNASSIGNED, FilePartitionEvent.LET_GO): FilePartitionState.UNASSIGNED,
    (FilePartitionState.READING, FilePartitionEvent.SOUGHT): FilePartitionState.READING,
    (FilePartitionState.READING, FilePartitionEvent.HOLD): FilePartitionState.HELD,
    (FilePartitionState.READING, FilePartitionEvent.LET_GO): FilePartitionState.READING,
    (FilePartitionState.HELD, FilePartitionEvent.SOUGHT): FilePartitionState.READING,
    (FilePartitionState.HELD, FilePartitionEvent.HOLD): FilePartitionState.HELD,
    (FilePartitionState.HELD, FilePartitionEvent.LET_GO): FilePartitionState.READING,
}
"""The state after an event. What is not listed cannot happen, or is refused: a seek before the assignment."""


class FileTransport:
    """A Transport from `source` to `log`, with positions under the name `worker`. Closing it leaves the log open."""

    def __init__(self, source: Input, log: SqliteLog, worker: str) -> None:
        self._source = source
        self._log = log
        self._worker = worker
        self._states = [FilePartitionState.UNASSIGNED] * source.partitions

    @property
    def partitions(self) -> int:
        return self._source.partitions

    def poll(self) -> Sequence[InputEvent]:
        """First Assigned for every partition, alone, so that a seek comes before any reading.

        Then what each partition has next: a batch, or InputEnd, again on every call while there is nothing new.
        Without a seek reading goes on at the committed offset. Raises StateError as the input does.
        """
        if FilePartitionState.UNASSIGNED in self._states:
            return self._assign()
        reading = (partition for partition, state in enumerate(self._states) if state is FilePartitionState.READING)
        return [event for partition in reading if (event := self._source.read(partition)) is not None]

    def seek(self, partition: int, offset: int) -> None:
        """As in the protocol. Raises UsageError for a partition that is not assigned."""
        if not 0 <= partition < self.partitions or self._states[partition] is FilePartitionState.UNASSIGNED:
            raise UsageError(f"partition {partition} is not assigned, so that nothing can be sought in it")
        self._source.seek(partition, offset)
        self._take(partition, FilePartitionEvent.SOUGHT)

    def hold(self, partitions: Set[int]) -> None:
        """As in the protocol."""
        for partition in range(self.partitions):
            self._take(partition, FilePartitionEvent.HOLD if partition in partitions else FilePartitionEvent.LET_GO)

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
        for partition in range(self.partitions):
            self._take(partition, FilePartitionEvent.ASSIGNED)
        return [Assigned(partition, committed.get(partition)) for partition in range(self.partitions)]

    def _take(self, partition: int, event: FilePartitionEvent) -> None:
        self._states[partition] = PARTITION_TRANSITIONS[self._states[partition], event]
