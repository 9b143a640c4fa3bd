"""Which windows an epoch has decided: every row of the table, and what was decided at an offset, against plain sets."""

from __future__ import annotations

from itertools import product

import pytest

from sfm_stream.pipeline.rollup.decided import DecidedHistory, DecidedWindows
from sfm_stream.types import Window

SIZE = 10
NONE = DecidedWindows(SIZE)
SOME = DecidedWindows(SIZE, 50, 80)


def test_before_the_first_marker_nothing_is_decided_and_any_marker_follows():
    assert not NONE.some
    assert NONE.count_in(Window(0, 1000)) == 0
    assert all(NONE.follows(start) for start in (0, 50, 1000))
    assert NONE.marked(50, 80) == SOME
    assert SOME.some


@pytest.mark.parametrize(
    ("start", "through", "after"),
    [
        pytest.param(80, 90, (50, 90), id="next"),
        pytest.param(80, 200, (50, 200), id="far"),
        pytest.param(70, 80, (50, 80), id="again"),
        pytest.param(50, 60, (50, 80), id="an earlier one again"),
        pytest.param(30, 40, (50, 80), id="from before"),
        pytest.param(60, 90, (50, 90), id="overlapping"),
    ],
)
def test_a_marker_that_follows_goes_on_or_changes_nothing(start, through, after):
    assert SOME.follows(start)
    assert SOME.marked(start, through) == DecidedWindows(SIZE, *after)


@pytest.mark.parametrize("start", [81, 90, 1000])
def test_a_marker_behind_a_gap_does_not_follow(start):
    assert not SOME.follows(start)


@pytest.mark.parametrize(
    ("span", "count"),
    [((0, 50), 0), ((0, 60), 1), ((50, 80), 3), ((70, 200), 1), ((80, 200), 0), ((0, 1000), 3), ((60, 70), 1)],
)
def test_how_many_windows_of_a_span_are_decided(span, count):
    assert SOME.count_in(Window(*span)) == count


@pytest.mark.parametrize(("span", "count"), [((50, 80), 1), ((50, 79), 1), ((40, 60), 0), ((60, 90), 0), ((90, 99), 0)])
def test_a_window_of_the_calendar_is_decided_as_a_whole(span, count):
    days = DecidedWindows(None, 50, 80)
    assert (days.count_in(Window(*span)), days.windows_in(Window(*span))) == (count, 1)


MARKERS = [(0, 10), (10, 20), (0, 10), (10, 40)]


@pytest.mark.parametrize("markers", list(product(MARKERS, repeat=3)))
def test_sequences_of_markers_decide_what_plain_sets_hold(markers):
    decided, plain = NONE, set()
    for start, through in markers:
        windows = set(range(start, through, SIZE))
        follows = not plain or start <= max(plain) + SIZE
        assert decided.follows(start) == follows
        if not follows:
            return
        decided = decided.marked(start, through)
        first = min(plain) if plain else start
        plain |= {window for window in windows if window >= first}
        assert (decided.from_ms, decided.through_ms) == (min(plain), max(plain) + SIZE)
        for low, high in product(range(0, 50, SIZE), repeat=2):
            assert decided.count_in(Window(low, high)) == sum(low <= window < high for window in plain)


# At an offset


def history(*markers):
    """(history, what is decided by now) after markers of (offset, epoch and span, start, through)."""
    found, now = DecidedHistory(), {}
    for offset, span, start, through in markers:
        before = now.setdefault(span, NONE)
        found.note(offset, span, before)
        now[span] = before.marked(start, through)
    return found, now


FINE, LONG, NEXT = (1, "5m"), (1, "hour"), (2, None)
LOG = [(3, FINE, 0, 10), (4, LONG, 0, 10), (5, NEXT, 30, 40), (8, FINE, 10, 20), (9, NEXT, 40, 60), (12, LONG, 10, 30)]


@pytest.mark.parametrize("offset", range(14))
def test_what_was_decided_before_an_offset(offset):
    found, now = history(*LOG)
    _, before = history(*(marker for marker in LOG if marker[0] < offset))
    assert found.at(offset, now) == {span: before.get(span, NONE) for span in now}


def test_later_offsets_are_answered_after_earlier_ones():
    found, now = history(*LOG)
    for offset in range(14):
        fresh, _ = history(*LOG)
        assert found.at(offset, now) == fresh.at(offset, now)


def test_markers_before_the_offset_are_forgotten():
    found, now = history(*LOG)
    found.at(9, now)
    assert [marker.offset for marker in found._markers] == [9, 12]
    found.at(13, now)
    assert not found._markers
