"""Which windows are open, due and closed: every row of the table, and every sequence of events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sfm_stream.pipeline.counting.schedule import Schedule, WindowState
from sfm_stream.types import NO_TIME, Window
from sfm_stream.windows.grid import FixedGrid
from sfm_stream.windows.tumbling import Tumbling

SIZE, GRACE, SKEW, MARGIN, END = 10, 3, 15, 4, 60
WINDOWS = Tumbling(FixedGrid(SIZE), GRACE, SKEW, 0, END, MARGIN)
BEGUN = Schedule.begin(WINDOWS, 0, NO_TIME)


def states(schedule):
    """O, D or C for each window up to the end of the epoch."""
    return "".join(schedule.state_of(start).value[0].upper() for start in range(0, END, SIZE))


def test_a_window_goes_from_open_to_due_to_closed():
    assert states(BEGUN) == "OOOOOO"
    due = BEGUN.arrived(20 + GRACE + MARGIN + 1)
    assert (states(due), due.behind) == ("DDOOOO", True)
    closed = due.closed(10)
    assert (states(closed), closed.behind) == ("CDOOOO", True)
    assert list(closed.due_windows()) == [Window(10, 20)]
    done = closed.closed(20)
    assert (states(done), done.behind, list(done.due_windows())) == ("CCOOOO", False, [])
    assert done.state_of(0) is WindowState.CLOSED


# The events, one row of the table each


@pytest.mark.parametrize(("clock", "found"), [(17, "OOOOOO"), (18, "DOOOOO"), (27, "DOOOOO"), (28, "DDOOOO")])
def test_records_close_a_window_once_the_clock_is_past_end_grace_and_margin(clock, found):
    after = BEGUN.arrived(clock)
    assert states(after) == found
    assert (after.clock_ms, after.idle_ms, after.closed_through_ms) == (clock, NO_TIME, 0)


@pytest.mark.parametrize(("until", "found"), [(13, "OOOOOO"), (14, "DOOOOO"), (23, "DOOOOO"), (24, "DDOOOO")])
def test_time_alone_closes_a_window_once_it_is_past_end_and_grace(until, found):
    """The caller has taken the margin off."""
    after = BEGUN.idle(until)
    assert states(after) == found
    assert (after.clock_ms, after.idle_ms, after.closed_through_ms) == (NO_TIME, until, 0)


@pytest.mark.parametrize(("clock", "found"), [(4, "DDOOOO"), (5, "DDDOOO"), (1000, "DDDDDD")])
def test_the_end_of_the_input_closes_what_a_record_up_to_the_clock_may_belong_to(clock, found):
    after = BEGUN.arrived(clock).complete()
    assert states(after) == found
    assert (after.clock_ms, after.idle_ms, after.closed_through_ms) == (clock, NO_TIME, 0)


def test_the_end_of_an_input_without_a_time_closes_nothing():
    assert BEGUN.complete() == BEGUN


def test_the_end_of_an_input_that_is_counted_whole_closes_up_to_a_border():
    after = BEGUN.complete_at(30)
    assert states(after) == "DDDOOO"
    assert (after.clock_ms, after.idle_ms, after.closed_through_ms) == (NO_TIME, NO_TIME, 0)


def test_a_commit_closes_and_leaves_the_other_times():
    before = BEGUN.arrived(40).idle(30)
    after = before.closed(20)
    assert after == replace(before, closed_through_ms=20)


# At a committed position


@pytest.mark.parametrize(
    ("closed", "clock", "found"),
    [(0, NO_TIME, "OOOOOO"), (20, NO_TIME, "CCOOOO"), (0, 28, "DDOOOO"), (20, 28, "CCOOOO"), (20, 38, "CCDOOO")],
)
def test_what_the_committed_clock_has_passed_is_due_at_once(closed, clock, found):
    begun = Schedule.begin(WINDOWS, closed, clock)
    assert states(begun) == found
    assert (begun.clock_ms, begun.idle_ms) == (clock, NO_TIME)


# Every sequence

EVENTS = {
    "arrived 9": lambda s: s.arrived(9),
    "arrived 30": lambda s: s.arrived(30),
    "arrived 200": lambda s: s.arrived(200),
    "idle 26": lambda s: s.idle(26),
    "idle -100": lambda s: s.idle(-100),
    "complete": lambda s: s.complete(),
    "closed what is due": lambda s: s.closed(s.due_ms),
    "closed one": lambda s: s.closed(next(s.due_windows(), Window(0, 0)).end_ms),
}


@pytest.mark.parametrize("first", EVENTS)
def test_no_window_and_no_time_ever_goes_back(first):
    order = "ODC"
    for names in product(EVENTS, repeat=4):
        schedule = EVENTS[first](BEGUN)
        for name in names:
            before, schedule = schedule, EVENTS[name](schedule)
            pairs = list(zip(states(before), states(schedule), strict=True))
            assert all(order.index(old) <= order.index(new) for old, new in pairs)
            assert all((old, new) != ("O", "C") for old, new in pairs), "closed without having been due"
            assert states(schedule) == "".join(sorted(states(schedule))), "closed, then due, then open"
            assert schedule.clock_ms >= before.clock_ms
            assert schedule.idle_ms >= before.idle_ms
            assert schedule.behind == ("D" in states(schedule))
            starts = [start for start in range(0, END, SIZE) if schedule.state_of(start) is WindowState.DUE]
            assert [window.start_ms for window in schedule.due_windows()] == starts
