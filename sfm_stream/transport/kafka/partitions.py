"""The states of a partition of the input at one worker, and the one table of transitions between them.

Two sides take part, and neither waits for the other. The consumer group gives partitions and takes them; the transport
then looks up where reading goes on. The worker is told of both, Revoked and Assigned, at the end of a poll that went
well. So each state says what the group gave, whether the position is known, and what the worker still believes:

    =================  =================  ===================  =============================================
    state              given by the group  position known       the worker believes
    =================  =================  ===================  =============================================
    ABSENT             no                 no                   it does not have it
    AWAITING           yes                no                   it does not have it
    POSITIONED         yes                yes                  it does not have it
    READING            yes                yes                  it has it
    HELD               yes                yes                  it has it, and wants nothing of it for now
    LOST               no                 no                   it has it as before
    LOST_AWAITING      yes, anew          no                   it has it as before
    LOST_POSITIONED    yes, anew          yes                  it has it as before
    =================  =================  ===================  =============================================

There is no state "at its end": a partition that is read to its end goes on being read (idle_ends.py).
"""

from __future__ import annotations

from enum import Enum, auto
from types import MappingProxyType


class ReadingState(Enum):
    """Of one partition; see the table above."""

    ABSENT = auto()
    AWAITING = auto()
    POSITIONED = auto()
    READING = auto()
    HELD = auto()
    LOST = auto()
    LOST_AWAITING = auto()
    LOST_POSITIONED = auto()


class ReadingEvent(Enum):
    """What happens to one partition."""

    GIVEN = auto()
    """By the group; also to a worker that has it: what it knows of the partition is void."""
    TAKEN = auto()
    """By the group."""
    LOCATED = auto()
    """The position is known at which reading goes on."""
    SOUGHT = auto()
    """Reading goes on at another position, at once."""
    HOLD = auto()
    """The worker wants nothing of it for now."""
    GO_ON = auto()
    """The worker wants more of it."""
    RESTARTED = auto()
    """The worker dropped what it had in hand: reading goes on at the committed position, which has to be looked up."""
    TOLD_REVOKED = auto()
    """The worker was told that it lost the partition."""
    TOLD_ASSIGNED = auto()
    """The worker was told that it has the partition, and from where on."""


S, E = ReadingState, ReadingEvent
TRANSITIONS = MappingProxyType(
    {
        (S.ABSENT, E.GIVEN): S.AWAITING,
        (S.ABSENT, E.TAKEN): S.ABSENT,
        (S.AWAITING, E.GIVEN): S.AWAITING,
        (S.AWAITING, E.TAKEN): S.ABSENT,
        (S.AWAITING, E.LOCATED): S.POSITIONED,
        (S.AWAITING, E.RESTARTED): S.AWAITING,
        (S.POSITIONED, E.GIVEN): S.AWAITING,
        (S.POSITIONED, E.TAKEN): S.ABSENT,
        (S.POSITIONED, E.SOUGHT): S.POSITIONED,
        (S.POSITIONED, E.RESTARTED): S.AWAITING,
        (S.POSITIONED, E.TOLD_ASSIGNED): S.READING,
        (S.READING, E.GIVEN): S.LOST_AWAITING,
        (S.READING, E.TAKEN): S.LOST,
        (S.READING, E.SOUGHT): S.READING,
        (S.READING, E.HOLD): S.HELD,
        (S.READING, E.GO_ON): S.READING,
        (S.READING, E.RESTARTED): S.LOST_AWAITING,
        (S.HELD, E.GIVEN): S.LOST_AWAITING,
        (S.HELD, E.TAKEN): S.LOST,
        (S.HELD, E.SOUGHT): S.READING,
        (S.HELD, E.HOLD): S.HELD,
        (S.HELD, E.GO_ON): S.READING,
        (S.HELD, E.RESTARTED): S.LOST_AWAITING,
        (S.LOST, E.GIVEN): S.LOST_AWAITING,
        (S.LOST, E.TAKEN): S.LOST,
        (S.LOST, E.RESTARTED): S.LOST,
        (S.LOST, E.TOLD_REVOKED): S.ABSENT,
        (S.LOST_AWAITING, E.GIVEN): S.LOST_AWAITING,
        (S.LOST_AWAITING, E.TAKEN): S.LOST,
        (S.LOST_AWAITING, E.LOCATED): S.LOST_POSITIONED,
        (S.LOST_AWAITING, E.RESTARTED): S.LOST_AWAITING,
        (S.LOST_AWAITING, E.TOLD_REVOKED): S.AWAITING,
        (S.LOST_POSITIONED, E.GIVEN): S.LOST_AWAITING,
        (S.LOST_POSITIONED, E.TAKEN): S.LOST,
        (S.LOST_POSITIONED, E.SOUGHT): S.LOST_POSITIONED,
        (S.LOST_POSITIONED, E.RESTARTED): S.LOST_AWAITING,
        (S.LOST_POSITIONED, E.TOLD_REVOKED): S.POSITIONED,
    }
)
"""(state, event) to the state after it. What is not here cannot happen."""
WITH_POSITION = frozenset({S.POSITIONED, S.READING, S.HELD, S.LOST_POSITIONED})
WITHOUT_POSITION = frozenset({S.AWAITING, S.LOST_AWAITING})
"""Given by the group, and waiting for their position."""
TO_BE_REVOKED = frozenset({S.LOST, S.LOST_AWAITING})
"""The worker is to be told that it lost them, before anything else of them."""


class Partitions:
    """The state of each partition of the input, and of those with a position how far they are read."""

    def __init__(self) -> None:
        self._states: dict[int, ReadingState] = {}
        self._log_starts: dict[int, int] = {}
        self._next_offsets: dict[int, int] = {}

    def state(self, partition: int) -> ReadingState:
        return self._states.get(partition, ReadingState.ABSENT)

    def having(self, states: frozenset[ReadingState]) -> list[int]:
        """Partitions in one of these states, ascending."""
        return sorted(partition for partition, state in self._states.items() if state in states)

    def positions(self) -> dict[int, int]:
        """Partition to the offset of its next batch, of those with a position; in the order in which they got it."""
        return dict(self._next_offsets)

    def log_start(self, partition: int) -> int:
        """The first offset of the log when the position was looked up."""
        return self._log_starts[partition]

    def on(self, event: ReadingEvent, partition: int) -> None:
        """Raises LookupError for an event that cannot happen in the state of the partition."""
        before = self.state(partition)
        try:
            after = TRANSITIONS[before, event]
        except KeyError:
            raise LookupError(f"partition {partition} is {before.name}: {event.name} cannot happen") from None
        self._states[partition] = after
        if after is ReadingState.ABSENT:
            del self._states[partition]
        if after not in WITH_POSITION:
            self._next_offsets.pop(partition, None)
            self._log_starts.pop(partition, None)

    def locate(self, partition: int, log_start: int, offset: int) -> None:
        """Its position was looked up: the log begins at log_start, and reading goes on at `offset`."""
        self.on(ReadingEvent.LOCATED, partition)
        self._log_starts[partition], self._next_offsets[partition] = log_start, offset

    def seek(self, partition: int, offset: int) -> None:
        self.on(ReadingEvent.SOUGHT, partition)
        self._next_offsets[partition] = offset

    def advance(self, partition: int, offset: int) -> None:
        """A batch of it ends before this offset."""
        self._next_offsets[partition] = offset
