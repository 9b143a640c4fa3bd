"""What every worker has in common: what a transport reports, turned into work on the partitions that are assigned.

    event of partition p    what happens
    Assigned                the work of p begins, at its committed position
    RecordBatch             it is read, together with other batches of p in this poll, as many as fit into memory well
    InputEnd                the work of p is told of it, after the batches before it
    Revoked                 the work of p is dropped, with its batches of this poll and its step that is not committed

Events of one partition are handled in their order; partitions do not depend on each other. Once all events are handled,
the worker commits what is due. A worker is a subclass: it says what the work of one partition is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from sfm_stream.transport.contract import Transport
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Revoked

CHECKPOINT_S = 5.0
"""How often a loop calls checkpoint()."""
_READ_BYTES = 32 << 20
"""So much is read together of the batches of a poll, decompressed; a batch may have more by itself."""

Work = TypeVar("Work")
"""What a worker holds for one assigned partition."""


class PartitionWorker(ABC, Generic[Work]):
    """A worker on one transport. partitions: the work of each partition that is assigned."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.partitions: dict[int, Work] = {}

    def tick(self, stopping: Callable[[], bool] = lambda: False) -> bool:
        """One turn: poll, handle every event, commit what is due. Returns whether a partition or a record came.

        stopping: is asked between two commits.
        """
        came = False
        unread: dict[int, list[RecordBatch]] = {}
        events = deque(self._transport.poll())
        while events:  # taken out, so that nothing holds a batch that is read
            event = events.popleft()
            number = event.partition
            if isinstance(event, InputEnd):
                self._read_all(number, unread, stopping)
                if number in self.partitions:  # the end of one that was just lost says nothing
                    self._end(self.partitions[number], event)
            elif isinstance(event, Assigned | Revoked):
                unread.pop(number, None)
                self._drop(number)
                if isinstance(event, Assigned):
                    self.partitions[number] = self._begin(event)
                    came = True
            else:
                unread.setdefault(number, []).append(event)
                came = True
        for number in list(unread):
            self._read_all(number, unread, stopping)
        self._commit_due(stopping)
        return came

    @abstractmethod
    def checkpoint(self) -> None:
        """Commit how far a restart may begin to read, where that moved. Nothing is published."""

    @abstractmethod
    def _begin(self, event: Assigned) -> Work:
        """The work of a partition, at its committed position; the transport is told where to read."""

    @abstractmethod
    def _read(self, work: Work, batches: Sequence[RecordBatch], stopping: Callable[[], bool]) -> None:
        """Take batches of one partition, at least one, in order of offset."""

    @abstractmethod
    def _end(self, work: Work, end: InputEnd) -> None:
        """Nothing more can be read of a partition now, or for ever."""

    @abstractmethod
    def _commit_due(self, stopping: Callable[[], bool]) -> None:
        """Commit what is due in any partition. Called once in a turn, after its events."""

    def _revoked(self, work: Work) -> None:
        """Keep what has to outlive a lost partition."""

    def _read_all(self, number: int, unread: dict[int, list[RecordBatch]], stopping: Callable[[], bool]) -> None:
        batches = deque(unread.pop(number, ()))
        while batches:
            self._read(self.partitions[number], _taken(batches), stopping)

    def _drop(self, number: int) -> None:
        if number in self.partitions:
            self._revoked(self.partitions.pop(number))


def _taken(batches: deque[RecordBatch]) -> list[RecordBatch]:
    """The first of these batches, which are taken out: once they are read, nothing holds what they were made into."""
    taken = [batches.popleft()]
    room = _READ_BYTES - _unpacked_bytes(taken[0])
    while batches and (room := room - _unpacked_bytes(batches[0])) >= 0:
        taken.append(batches.popleft())
    return taken


def _unpacked_bytes(batch: RecordBatch) -> int:
    """Of a batch that can be compressed; 0 of others, whose size a poll bounds."""
    return getattr(batch, "unpacked_bytes", 0)
