"""Windows that time closes without a record."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_cases import (
    MODES,
    at,
    counter_of,
    histories,
    marks,
    shown,
)
from support.counting_runs import (
    Log,
    Tape,
    columns_of,
    covered,
    drain,
    first_state,
    plan_of,
    state_in,
)

from sfm_stream.errors import StateError
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.wire.keys import encode_key


def test_what_was_read_up_to_a_time_closes_without_a_record():
    """Windows with and without records; strictly past end and grace, as for a record at that time."""
    counter, log = counter_of(plan_of(grace=5), at((3, "a", 1), (22, "b", 1))), Log()
    drain(counter, log)
    counter.idle(25)
    assert not counter.behind
    assert counter.step() is None
    counter.idle(56)
    assert counter.behind
    drain(counter, log)
    assert not counter.behind
    assert shown(log.records) == [
        (0, encode_key("a")), *marks(0, 20), (20, encode_key("b")), *marks(20, 50),
    ]  # fmt: skip
    assert (counter.base.store.starts(), list(counter.keys)) == ([], [])
    assert (counter.state.base.closed_through_ms, counter.state.clock_ms, counter.state.offset) == (50, 22, 2)


@pytest.mark.parametrize("committed", [False, True])
def test_a_record_for_a_window_that_idle_time_closed_is_late(committed):
    """By its own arrival it would count: only here its window is decided. Records of open windows count."""
    counter = counter_of(plan_of(grace=5, skew=20), at((3, "a", 1), (22, "b", 1)))
    drain(counter, Log())
    counter.idle(36)
    step = counter.step()
    assert shown(step.publish) == [*marks(10, 20), (20, encode_key("b")), *marks(20, 30)]
    if committed:
        counter.committed(step)
    rows = [Row(2, 23, 23, "b", 2), Row(3, 24, 31, "b", 3), Row(4, 40, 39, "c", 4)]
    assert counter.add(columns_of(rows, counter.keys)).counts == {Reason.LATE: 1}
    if not committed:
        assert counter.step() is step, "new records do not change what was drawn"
        counter.committed(step)
    counter.finish()
    assert shown(counter.step().publish) == [(30, encode_key("b")), (30, encode_key("c")), *marks(30, 70)]


def test_idle_time_leaves_the_clock_to_the_records():
    """A record that arrives out of order still counts in every window that is not closed."""
    counter = counter_of(plan_of(grace=20), at((3, "a", 1)))
    counter.idle(31)
    drain(counter, Log())
    assert (counter.state.base.closed_through_ms, counter.state.clock_ms) == (10, 3)
    assert counter.add(columns_of([Row(1, 12, 12, "a", 1)], counter.keys)).counts == {}


def test_idle_twice_and_a_clock_on_the_wall_that_steps_back_change_nothing():
    counter, log = counter_of(plan_of(), at((3, "a", 1))), Log()
    for until in (31, 31, 15, NO_TIME, -(10**12), 31):
        counter.idle(until)
        drain(counter, log)
    assert shown(log.records) == [(0, encode_key("a")), *marks(0, 30)]
    assert not counter.behind


def test_idle_time_stays_between_the_borders_of_the_epoch():
    counter, log = counter_of(plan_of(start=50, end=90)), Log()
    counter.idle(50)
    assert not counter.behind
    counter.idle(10**6)
    drain(counter, log)
    assert covered(log.records) == (50, 90)


def test_idle_time_passes_any_number_of_windows_but_not_too_many_at_once():
    """Time that passes is no gap, nor is the record that ends it; a start that lies years back is one."""
    plan = plan_of(grace=7, max_gap_windows=5)
    counter, log = counter_of(plan, at((3, "a", 1))), Log()
    for until in range(0, 1000, 50):
        counter.idle(until)
        drain(counter, log)
    assert covered(log.records) == (0, 940)
    assert counter.add(columns_of([Row(1, 990, 990, "a", 1)], counter.keys)).counts == {}
    again = counter_of(plan, coins=Tape(1), state=replace(counter.state, offset=1))
    assert again.add(columns_of([Row(1, 990, 990, "a", 1)], again.keys)).counts == {}, "nor after a restart"
    fresh = counter_of(plan)
    with pytest.raises(
        StateError, match=r"6 windows without a record .* from 1970-01-01T00:00:00Z on.*limits.max_gap_windows = 5"
    ):
        fresh.idle(68)
    assert not fresh.behind
    fresh.idle(67)
    assert fresh.behind


@settings(max_examples=100)
@given(histories(), st.integers(0, 40), st.integers(-10, 120))
def test_a_replay_behind_idle_time_gives_the_same_releases(history, cut, ahead):
    """Kill after any commit; the next life reads as far, hears of the same idle time, and goes on."""
    mode, arguments, rows, _, _, seed = history
    plan = plan_of(MODES[mode], **arguments)
    cut = min(cut, len(rows))
    until = max((row.arrival for row in rows[:cut]), default=0) + ahead

    def live(state, tape):
        counter, log = counter_of(plan, coins=tape, state=state), Log()
        for part in (rows[:cut], rows[cut:]):
            for row in part:
                if row.offset >= state.offset:
                    counter.add(columns_of([row], counter.keys))
                    drain(counter, log, tape)
            counter.idle(until)
            drain(counter, log, tape)
        counter.finish()
        drain(counter, log, tape)
        return log

    once, done = live(first_state(plan), Tape(seed)), 0
    covered(once.records)
    for step, position in zip(once.steps, once.positions, strict=True):
        done += len(step.publish)
        assert live(state_in(step), Tape(seed, position)).records == once.records[done:]
