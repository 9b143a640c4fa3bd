"""The states of a partition at a worker: the whole table against what each state says, without bytes or a broker."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

from sfm_stream.transport.kafka.partitions import (
    TO_BE_REVOKED,
    TRANSITIONS,
    WITH_POSITION,
    WITHOUT_POSITION,
    Partitions,
    ReadingEvent,
    ReadingState,
)

S, E = ReadingState, ReadingEvent


@dataclass(frozen=True)
class Believed:
    """What is so of a partition, kept apart as flags: the group gave it, its position is known, the worker has it.

    stale: what the worker has is of an earlier assignment. held: it wants nothing of it for now.
    """

    given: bool = False
    located: bool = False
    told: bool = False
    stale: bool = False
    held: bool = False

    @property
    def state(self) -> ReadingState:
        if self.told and not self.stale:
            return S.HELD if self.held else S.READING
        lost = {(False, False): S.LOST, (True, False): S.LOST_AWAITING, (True, True): S.LOST_POSITIONED}
        new = {(False, False): S.ABSENT, (True, False): S.AWAITING, (True, True): S.POSITIONED}
        return (lost if self.told else new)[self.given, self.located]

    def after(self, event: ReadingEvent) -> Believed | None:
        """None: it cannot happen."""
        match event:
            case E.GIVEN:
                return replace(self, given=True, located=False, stale=self.told, held=False)
            case E.TAKEN:
                return replace(self, given=False, located=False, stale=self.told, held=False)
            case E.RESTARTED:
                known = self.given or self.told
                return replace(self, located=False, stale=self.told, held=False) if known else None
            case E.LOCATED:
                return replace(self, located=True) if self.given and not self.located else None
            case E.SOUGHT:
                return replace(self, held=False) if self.located else None
            case E.HOLD | E.GO_ON:
                return replace(self, held=event is E.HOLD) if self.told and not self.stale else None
            case E.TOLD_REVOKED:
                return replace(self, told=False, stale=False) if self.stale else None
            case E.TOLD_ASSIGNED:
                return replace(self, told=True) if self.located and not self.told else None


def reachable() -> set[Believed]:
    """Everything that any order of events leads to."""
    known, new = set(), {Believed()}
    while new:
        known |= new
        new = {after for each in new for event in E if (after := each.after(event)) is not None} - known
    return known


def test_every_state_is_reached_and_says_one_thing():
    assert sorted(each.state.name for each in reachable()) == sorted(state.name for state in S)


@pytest.mark.parametrize("event", E)
@pytest.mark.parametrize(
    "believed", sorted(reachable(), key=lambda each: each.state.value), ids=lambda it: it.state.name
)
def test_each_event_in_each_state_leads_where_the_flags_lead(believed, event):
    after = believed.after(event)
    assert TRANSITIONS.get((believed.state, event)) is (None if after is None else after.state)


def test_the_sets_of_states_are_what_they_say():
    each = {believed.state: believed for believed in reachable()}
    assert {state for state, it in each.items() if it.located} == WITH_POSITION
    assert {state for state, it in each.items() if it.given and not it.located} == WITHOUT_POSITION
    assert {state for state, it in each.items() if it.stale and not it.located} == TO_BE_REVOKED


def test_the_worker_is_told_of_a_partition_in_turn_whatever_happens():
    """In every order of five events that can happen: Assigned and Revoked alternate, and a position is of now."""
    for events in itertools.product(E, repeat=5):
        partitions, told, located = Partitions(), False, False
        for event in events:
            if (partitions.state(0), event) not in TRANSITIONS:
                break
            partitions.on(event, 0)
            if event in (E.TOLD_ASSIGNED, E.TOLD_REVOKED):
                assert told is (event is E.TOLD_REVOKED)
                told = not told
            located = event is E.LOCATED or (located and event not in (E.GIVEN, E.TAKEN, E.RESTARTED))
            assert (partitions.state(0) in WITH_POSITION) is located


def test_what_cannot_happen_is_refused_and_changes_nothing():
    partitions = Partitions()
    partitions.on(E.GIVEN, 3)
    with pytest.raises(LookupError, match="partition 3 is AWAITING: TOLD_ASSIGNED cannot happen"):
        partitions.on(E.TOLD_ASSIGNED, 3)
    assert partitions.state(3) is S.AWAITING


def test_positions_are_kept_as_long_as_they_hold():
    partitions = Partitions()
    for partition in (4, 1):
        partitions.on(E.GIVEN, partition)
        partitions.locate(partition, log_start=2, offset=partition + 5)
        partitions.on(E.TOLD_ASSIGNED, partition)
    assert list(partitions.positions().items()) == [(4, 9), (1, 6)]
    assert partitions.log_start(1) == 2
    partitions.advance(4, 12)
    partitions.on(E.HOLD, 1)
    partitions.seek(1, 3)
    assert partitions.positions() == {4: 12, 1: 3}
    assert partitions.having(frozenset({S.READING})) == [1, 4]
    partitions.on(E.TAKEN, 4)
    partitions.on(E.RESTARTED, 1)
    assert partitions.positions() == {}
    assert partitions.having(TO_BE_REVOKED) == [1, 4]
    assert partitions.having(WITHOUT_POSITION) == [1]
    partitions.on(E.TOLD_REVOKED, 4)
    assert partitions.having(frozenset(S)) == [1]
