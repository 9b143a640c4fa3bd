"""States of a partition of the file transport: every state with every event."""

from __future__ import annotations

import pytest

from sfm_stream.transport.files.transport import PARTITION_TRANSITIONS, FilePartitionEvent, FilePartitionState

EVENTS = ["ASSIGNED", "SOUGHT", "HOLD", "LET_GO"]
TABLE = {
    "UNASSIGNED": "READING -  UNASSIGNED UNASSIGNED",
    "READING": "-     READING HELD       READING",
    "HELD": "-        READING HELD       READING",
}
"""State to the state after each of EVENTS, "-" where it cannot happen or is refused."""


@pytest.mark.parametrize("state", FilePartitionState, ids=lambda state: state.name)
@pytest.mark.parametrize("event", FilePartitionEvent, ids=lambda event: event.name)
def test_every_event_in_every_state(state: FilePartitionState, event: FilePartitionEvent) -> None:
    after = PARTITION_TRANSITIONS.get((state, event))
    expected = dict(zip(EVENTS, TABLE[state.name].split(), strict=True))[event.name]
    assert (after.name if after else "-") == expected
