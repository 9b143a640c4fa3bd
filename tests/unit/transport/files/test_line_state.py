"""States of the line reader: every state with every event, and every transition met while real lines are read."""

from __future__ import annotations

import gzip
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from sfm_stream.errors import StateError
from sfm_stream.transport.files.line_state import ON_THE_WAY, TRANSITIONS, LineEvent, LineState, stops_to
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd

EVENTS = ["SOUGHT", "HEADED_FOR_STOP", "REACHED_STOP", "REACHED_LINE", "REACHED_INSIDE", "OUTGREW", "NEWLINE", "END"]
TABLE = {
    "IN_LINES": "MOVING -        -            -            -              IN_LONG_LINE -        ENDED",
    "IN_LONG_LINE": "MOVING -    -            -            -              -            IN_LINES ENDED",
    "MOVING": "MOVING SKIPPING   -            -            -              -            -        -",
    "SKIPPING": "MOVING -        MOVING       IN_LINES     INSIDE_LINE    -            -        -",
    "INSIDE_LINE": "MOVING -     -            -            -              -            -        ENDED",
    "ENDED": "MOVING -           -            -            -              -            -        -",
}
"""State to the state after each of EVENTS, "-" where it cannot happen."""
EVERY = [(state, event) for state in LineState for event in LineEvent]


@pytest.mark.parametrize(("state", "event"), EVERY, ids=lambda each: each.name)
def test_every_event_in_every_state(state: LineState, event: LineEvent) -> None:
    expected = dict(zip(EVENTS, TABLE[state.name].split(), strict=True))[event.name]
    after = TRANSITIONS.get((state, event))
    assert (after.name if after else "-") == expected


def test_the_end_is_left_by_a_seek_only_and_every_state_can_end_or_move_on() -> None:
    assert [event for state, event in TRANSITIONS if state is LineState.ENDED] == [LineEvent.SOUGHT]
    reached = {LineState.IN_LINES}
    while more := {after for (state, _), after in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(LineState)


def test_reading_takes_every_transition_of_the_table_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every entry is needed. What is not in the table would be a KeyError."""
    taken = set()
    take = LineInput._take

    def noted(lines: LineInput, event: LineEvent) -> None:
        taken.add((lines._state, event))
        take(lines, event)

    monkeypatch.setattr(LineInput, "_take", noted)
    monkeypatch.setattr("sfm_stream.transport.files.lines.SKIP_BYTES", 1)
    path = tmp_path / "f"
    data = b"a\n" + b"x" * 20 + b"\nb\nlast"
    for content in (data, data[:12], data[:-4]):
        for stored, whole in ((content, False), (content, True), (gzip.compress(content), False)):
            path.write_bytes(stored)
            for reads, offset in product(range(30), (0, 1, 2, 23, len(content))):
                lines = LineInput(str(path), complete=True, whole=whole, max_line_bytes=4, chunk_bytes=3)
                read(lines, reads)
                lines.seek(0, offset)
                read(lines, reads % 3)
                lines.seek(0, 2)
                read(lines, 99)
                lines.close()
    path.write_bytes(b"".join(b"%06d\n" % n for n in range(3000)))
    lines = LineInput(str(path), complete=False)
    lines.seek(0, 14_000)  # with a stop where the first span ends
    read(lines, 99_999)
    lines.close()
    assert taken == set(TRANSITIONS)


def read(lines: LineInput, times: int) -> None:
    """So many times, or up to what is wrong with the offset."""
    with suppress(StateError):
        for _ in range(times):
            lines.read(0)


@pytest.mark.parametrize(
    ("offset", "expected", "stops"),
    [
        (0, None, [0]),
        (5, None, [5]),
        (100, None, [10, 100]),
        (0, 5, [5, 0]),
        (0, 100, [10, 100, 0]),
        (40, 100, [10, 100, 40]),
        (100, 100, [10, 100]),
        (100, 40, [10, 40, 100]),
        (7, 4, [7, 4, 7]),
        (7, 0, [7, 0, 7]),
    ],
)
def test_the_way_to_an_offset_leads_over_what_the_mark_is_of(
    offset: int, expected: int | None, stops: list[int]
) -> None:
    assert stops_to(offset, expected, span_bytes=10) == stops


@pytest.mark.parametrize("whole", [False, True])
def test_another_offset_may_be_sought_on_the_way(tmp_path: Path, whole: bool) -> None:
    """Even the offset at which reading stood before: the stream has moved on since."""
    data = b"".join(b"%07d\n" % n for n in range(400_000))
    (tmp_path / "f").write_bytes(data)
    lines = LineInput(str(tmp_path / "f"), complete=True, whole=whole)
    lines.seek(0, len(data))
    assert lines.read(0) is None
    assert lines._state in ON_THE_WAY
    lines.seek(0, 0)
    while (batch := lines.read(0)) is None:
        pass
    assert not isinstance(batch, InputEnd)
    assert (batch.first, list(batch.values()[:2])) == (0, [b"0000000", b"0000001"])
