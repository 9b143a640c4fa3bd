"""A transport that counts what goes through another one, for the operator's eyes: no content, no key."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from sfm_stream.transport.contract import InputEvent, Transport
from sfm_stream.types import NO_TIME, Assigned, InputEnd, Revoked, Step

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Place:
    """Where a worker stands in one assigned partition: None as long as nothing says so.

    committed: the offset from which a restart would read. position: the offset after what was read last. read_ms:
    everything that was in the partition at this time has been read.
    """

    committed: int | None = None
    position: int | None = None
    read_ms: int = NO_TIME


class MeteredTransport:
    """A Transport over another one. outcomes: of transactions; "unknown" where the transport raised."""

    def __init__(self, transport: Transport, worker: str) -> None:
        self._transport, self._worker = transport, worker
        self.places: dict[int, Place] = {}
        self.outcomes: Counter[str] = Counter(committed=0, not_committed=0, unknown=0)
        self.batches = 0
        self.published = 0

    @property
    def partitions(self) -> int:
        return self._transport.partitions

    def poll(self) -> Sequence[InputEvent]:
        """As the other one."""
        events = self._transport.poll()
        for event in events:
            self._note(event)
        return events

    def seek(self, partition: int, offset: int) -> None:
        """As the other one."""
        self._transport.seek(partition, offset)
        self._read(partition, offset, offset)

    def hold(self, partitions: Set[int]) -> None:
        """As the other one."""
        self._transport.hold(partitions)

    def commit(self, step: Step) -> bool:
        """As the other one."""
        outcome = "unknown"
        try:
            done = self._transport.commit(step)
            outcome = "committed" if done else "not_committed"
        finally:
            self.outcomes[outcome] += 1
        if done:
            self.published += len(step.publish)
            for commit in step.commit:
                if commit.partition in self.places:
                    self.places[commit.partition].committed = commit.offset
        return done

    def close(self) -> None:
        self._transport.close()

    def _note(self, event: InputEvent) -> None:
        if isinstance(event, Assigned):
            self.places[event.partition] = Place()
            self._say("partition %d assigned", event.partition)
        elif isinstance(event, Revoked):
            self.places.pop(event.partition, None)
            self._say("partition %d given up", event.partition)
        elif isinstance(event, InputEnd):
            self.places[event.partition].read_ms = event.asked_ms
        else:
            self.batches += 1
            self._read(event.partition, event.first, event.next_offset)

    def _read(self, partition: int, first: int, position: int) -> None:
        """Where reading begins a restart would begin too, as long as nothing is committed."""
        place = self.places[partition]
        place.position = position
        if place.committed is None:
            place.committed = first

    def _say(self, message: str, partition: int) -> None:
        _log.info(message, partition, extra={"worker": self._worker})
