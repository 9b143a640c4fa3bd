"""Arrival times that the log gives and that step back: by the margin nothing changes, beyond it counting stops.

A new leader whose clock is slower, or a clock that is set back, stamps later records with earlier times. Neighbours are
compared as in test_neighbours.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    Log,
    Same,
    columns_of,
    contents,
    drain,
    first_state,
    plan_of,
    state_in,
    table_of,
)
from support.neighbour_runs import DECLARED, HUGE, REAL, Event, assert_alike, cut, removed, run, same_places

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.types import NO_TIME, EventColumns, Reason
from sfm_stream.windows.tumbling import Tumbling
from sfm_stream.wire.keys import encode_key

KEYS = [DECLARED, PRESENCE]


def plan(keys=PRESENCE, margin=1000, size=1000, **arguments):
    return plan_of(keys, unit="removed", size=size, margin=margin, **arguments)


# One record of another item, stamped ahead of the others by less than the margin

AHEAD = [
    *(Event(500, "a", f"u{n}", 500) for n in range(50)),
    Event(1500, "a", "X", 1500),
    *(Event(700, "a", f"v{n}", 700) for n in range(50)),
    Event(1800, "a", "other", 1800),
    Event(5000, "a", "end", 5000),
]
X = ("a", "X", 1, 1000)


@pytest.mark.parametrize("keys", KEYS, ids=["declared", "presence"])
@pytest.mark.parametrize("places", [[], [50], [51], [50, 51], [20, 51, 90]])
def test_a_record_stamped_ahead_changes_one_cell_of_its_own(keys, places):
    batches = cut(AHEAD, places)
    assert_alike(REAL, plan(keys), batches, removed(batches, X))
    log = run(REAL, plan(keys), batches, Same(255))
    assert len(contents(log.records)[0, encode_key("a")]) > 20, "the records behind the step are counted"


class ClosesAtOnce(Tumbling):
    """The fault: a window closes as soon as the clock is past its end and grace."""

    def closed_by(self, clock_ms):
        return self.due_through(clock_ms)


class JudgesByTheClock(Tumbling):
    """The fault: a record is late where an earlier one arrived too late for its window."""

    def judge(self, columns, clocks, closed_through_ms):
        return Tumbling.judge(replace_margin(self), columns, clocks, closed_through_ms)


def replace_margin(windows):
    return Tumbling(windows.grid, windows.grace_ms, windows.max_future_skew_ms, windows.start_ms, windows.end_ms)


@pytest.mark.parametrize("wrong", [ClosesAtOnce, JudgesByTheClock])
def test_either_fault_is_caught(wrong):
    right = plan(DECLARED)
    windows = right.windows
    faulty = replace(
        right,
        windows=wrong(windows.grid, windows.grace_ms, windows.max_future_skew_ms, windows.start_ms, margin_ms=1000),
    )
    batches = cut(AHEAD, [50, 51])
    with pytest.raises(AssertionError, match="releases: the item moved more than one"):
        assert_alike(REAL, faulty, batches, removed(batches, X))


@st.composite
def stepping(draw):
    """(plan arguments, batches, target, margin): arrival times that step back by at most the margin."""
    margin = draw(st.sampled_from([1, 5, 30]))
    arguments = {
        "size": 10,
        "grace": draw(st.sampled_from([0, 3, 20])),
        "skew": draw(st.sampled_from([0, 15])),
        "margin": margin,
        "max_transaction_bytes": draw(st.sampled_from([1, 400, HUGE])),
    }
    events, clock = [], draw(st.integers(0, 30))
    for _ in range(draw(st.integers(1, 25))):
        arrival = max(0, clock + draw(st.integers(-margin, 14)))
        clock = max(clock, arrival)
        time = max(0, arrival + draw(st.integers(-12, 15)))
        events.append(Event(time, draw(st.sampled_from(["b", "a", 0])), draw(st.integers(0, 4)), arrival))
    chosen = draw(st.sampled_from(events))
    events.append(Event(clock + 60 + margin, "end", "end", clock + 60 + margin))
    batches = cut(events, draw(st.lists(st.integers(0, 25), max_size=5)))
    return arguments, batches, (chosen.key, chosen.item, chosen.time // 10, 10)


@settings(max_examples=150)
@given(stepping(), st.sampled_from(KEYS), st.integers(0, 2**32))
def test_within_the_margin_a_removed_item_moves_one_cell(case, keys, seed):
    arguments, batches, target = case
    chosen, neighbour = plan_of(keys, unit="removed", **arguments), removed(batches, target)
    assume(keys is DECLARED or same_places(chosen, batches, neighbour))
    assert_alike(REAL, chosen, batches, neighbour, seed)


@settings(max_examples=60)
@given(stepping(), st.sampled_from([0, 255]))
def test_within_the_margin_selection_of_other_keys_is_untouched(case, digit):
    arguments, batches, target = case
    chosen = plan_of(SELECTED, unit="removed", **arguments)
    logs = [run(REAL, chosen, part, Same(digit)) for part in (batches, removed(batches, target))]
    one, other = ({(r.key, r.timestamp_ms): r.value for r in log.releases} for log in logs)
    place = encode_key(target[0]), (target[2] + 1) * 10
    assert {p: v for p, v in one.items() if p != place} == {p: v for p, v in other.items() if p != place}


@settings(max_examples=100)
@given(stepping(), st.data())
def test_a_restart_counts_what_the_first_run_counted(case, data):
    """From any committed position, whatever stepped back before and behind it."""
    arguments, batches, _ = case
    chosen = plan_of(PRESENCE, unit="removed", **arguments)
    rows = [
        Row(offset, event.arrival, event.time, event.key, offset % 32)
        for batch in batches
        for offset, event in batch.records
    ]
    keys, log = table_of(chosen), Log()
    counter = WindowCounter(chosen, 0, first_state(chosen), keys, Same(255))
    for row in rows:
        counter.add(columns_of([row], keys))
        drain(counter, log)
    step = data.draw(st.sampled_from(log.steps))
    done = log.steps.index(step) + 1
    state, again = state_in(step), Log()
    keys = table_of(chosen)
    successor = WindowCounter(chosen, 0, state, keys, Same(255))
    for row in rows[state.offset :]:
        successor.add(columns_of([row], keys))
        drain(successor, again)
    assert again.records == [record for step in log.steps[done:] for record in step.publish]


# Beyond the margin


def counter_of(chosen):
    keys = table_of(chosen)
    return WindowCounter(chosen, 0, first_state(chosen), keys, Same(255)), keys


def rows(*arrivals, first=0):
    return [Row(first + n, arrival, arrival, "secret-key", n) for n, arrival in enumerate(arrivals)]


@pytest.mark.parametrize("split", [1, 2])
def test_a_step_of_the_margin_is_counted_and_a_larger_one_stops_with_the_numbers(split):
    for step, stops in ((1000, False), (1001, True)):
        counter, keys = counter_of(plan())
        both = rows(1500, 2500, 2500 - step)
        counter.add(columns_of(both[:split], keys))
        held = counter.base.store.raw_bytes()
        if not stops:
            assert counter.add(columns_of(both[split:], keys)).counts == {}
            continue
        with pytest.raises(StateError) as caught:
            counter.add(columns_of(both[split:], keys))
        words = str(caught.value)
        assert "partition 0, offset 2" in words
        assert "steps back by 1001ms" in words
        assert "from 1970-01-01T00:00:02.500Z to 1970-01-01T00:00:01.499Z" in words
        assert "window.clock_margin = 1s" in words
        assert "window.start to 1970-01-01T00:00:03Z" in words
        assert "secret-key" not in words
        assert counter.base.store.raw_bytes() == held, "nothing of the batch is counted"


def test_the_clock_of_the_committed_position_is_compared_too():
    chosen = plan(max_transaction_bytes=1)
    counter, keys = counter_of(chosen)
    counter.add(columns_of(rows(500, 9000), keys))
    log = Log()
    drain(counter, log)
    state = state_in(log.steps[-1])
    successor = WindowCounter(chosen, 0, state, keys, Same(255))
    assert state.clock_ms >= 500
    with pytest.raises(StateError, match="steps back"):
        successor.add(columns_of(rows(9000, 7999, first=1), keys))


def test_the_named_start_lies_behind_the_step():
    """Reading of a new epoch begins at the first record stamped window.start less the skew, so at none before it."""
    counter, keys = counter_of(plan(skew=700))
    with pytest.raises(StateError, match=r"window.start to 1970-01-01T00:00:04Z"):
        counter.add(columns_of(rows(3299, 2000), keys))
    counter, keys = counter_of(plan(skew=701))
    with pytest.raises(StateError, match=r"window.start to 1970-01-01T00:00:05Z"):
        counter.add(columns_of(rows(3299, 2000), keys))


@pytest.mark.parametrize("arrival", [3999, 4000])
def test_a_record_that_arrives_before_idle_time_was_told_stops_too(arrival):
    """The clock of its broker is further behind that of this host than the margin."""
    counter, keys = counter_of(plan())
    counter.add(columns_of(rows(500), keys))
    counter.idle(4000)
    if arrival == 4000:
        assert counter.add(columns_of(rows(arrival, first=1), keys)).counts == {}
        return
    with pytest.raises(
        StateError, match=r"offset 1: it arrived at 1970-01-01T00:00:03.999Z .* 1970-01-01T00:00:04Z already"
    ):
        counter.add(columns_of(rows(arrival, first=1), keys))


def test_where_arrival_is_part_of_the_record_any_step_is_taken():
    counter, keys = counter_of(plan_of(size=1000))
    assert counter.add(columns_of(rows(500, 90_000, 600), keys)).counts == {Reason.LATE: 1}
    counter.idle(95_000)
    assert counter.add(columns_of(rows(93_000, first=3), keys)).counts == {Reason.LATE: 1}


def test_a_record_without_a_time_is_no_step():
    counter, keys = counter_of(plan())
    rows_ = rows(2500, 2600)
    rows_.insert(1, Row(1, NO_TIME, 2500, "a", 1))
    table: EventColumns = columns_of([row._replace(offset=n) for n, row in enumerate(rows_)], keys)
    assert counter.add(table).counts == {Reason.TIME_MISSING: 1}
