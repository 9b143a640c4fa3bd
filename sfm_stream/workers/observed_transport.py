"""A transport around another one that counts what goes through it, for the operator's metrics. It keeps no content."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from sfm_stream.transport.contract import InputEvent, Transport
from sfm_stream.types import NO_TIME, Assigned, InputEnd, Revoked, Step

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Progress:
    """How far a worker is in one assigned partition; None where nothing says so yet.

    committed: the offset from which a restart would read. position: the offset after what was read last. read_ms:
    everything that was in the partition at this time has been read.
    """

    committed: int | None = None
    position: int | None = None
    read_ms: int = NO_TIME


class ObservedTransport:
    """A Transport over another one.

    progress: of each assigned partition. outcomes: number of transactions by outcome, "unknown" where the transport
    raised. batches: number of batches read. published: number of records committed.
    """

    def __init__(self, transport: Transport, worker: str) -> None:
        self._transport, self._worker = transport, worker
        self.progress: dict[int, Progress] = {}
        self.outcomes: Counter[str] = Counter(committed=0, not_committed=0, unknown=0)
        self.batches = 0
        self.published = 0

    @property
    def partitions(self) -> int:
        return self._transport.partitions

    def poll(self) -> Sequence[InputEvent]:
        """As the transport below."""
        events = self._transport.poll()
        for event in events:
            self._note(event)
        return events

    def seek(self, partition: int, offset: int) -> None:
        """As the transport below."""
        self._transport.seek(partition, offset)
        self._read(partition, offset, offset)

    def hold(self, partitions: Set[int]) -> None:
        """As the transport below."""
        self._transport.hold(partitions)

    def commit(self, step: Step) -> bool:
        """As the transport below."""
        outcome = "unknown"
        try:
            done = self._transport.commit(step)
            outcome = "committed" if done else "not_committed"
        finally:
            self.outcomes[outcome] += 1
        if done:
            self.published += len(step.publish)
            for commit in step.commit:
                if commit.partition in self.progress:
                    self.progress[commit.partition].committed = commit.offset
        return done

    def close(self) -> None:
        self._transport.close()

    def _note(self, event: InputEvent) -> None:
        if isinstance(event, Assigned):
            self.progress[event.partition] = Progress()
            self._say("partition %d assigned", event.partition)
        elif isinstance(event, Revoked):
            self.progress.pop(event.partition, None)
            self._say("partition %d given up", event.partition)
        elif isinstance(event, InputEnd):
            self.progress[event.partition].read_ms = event.asked_ms
        else:
            self.batches += getattr(event, "batches", 1)  # of the log, however the client hands them on
            self._read(event.partition, event.first, event.next_offset)

    def _read(self, partition: int, first: int, position: int) -> None:
        """Note what was read. As long as nothing is committed, a restart begins where reading began."""
        progress = self.progress[partition]
        progress.position = position
        if progress.committed is None:
            progress.committed = first

    def _say(self, message: str, partition: int) -> None:
        _log.info(message, partition, extra={"worker": self._worker})
