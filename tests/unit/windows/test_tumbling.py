"""Which window a record belongs to, whether it counts, and when a window is due: tables, then any batching."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row, Rules, naive_count, naive_judge
from support.counting_runs import PRESENCE, Same, batches_of, columns_of, contents, covered, plan_of, run

from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import NO_TIME, EventColumns, Reason
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import FixedGrid
from sfm_stream.windows.tumbling import Tumbling
from sfm_stream.wire.keys import encode_key

WINDOWS = Tumbling(FixedGrid(10), grace_ms=5, max_future_skew_ms=3, start_ms=100, end_ms=200)
OK, LATE, FUTURE, BEFORE, AFTER = Reason.OK, Reason.LATE, Reason.FUTURE, Reason.BEFORE_START, Reason.AFTER_EPOCH


def columns(arrival, event, reason=0):
    one = np.array([0])
    return EventColumns(
        partition=0,
        next_offset=1,
        offsets=one.astype(np.int64),
        arrival_ms=one + arrival,
        event_ms=one + event,
        key_ids=one.astype(np.int32),
        cells=one.astype(np.uint32),
        reasons=(one + int(reason)).astype(np.uint8),
    )


def judge(arrival, event, clock, closed, windows=WINDOWS, reason=0):
    """(reason, start) of one record; clock: before it."""
    one = columns(arrival, event, reason)
    reasons, starts = windows.judge(one, windows.clocks(one, clock), closed)
    return Reason(int(reasons[0])), int(starts[0])


# arrival, event, clock before, closed through -> reason, window start
TABLE = [
    # the window of an event: start inclusive, end exclusive
    (120, 120, 0, 100, OK, 120),
    (129, 129, 0, 100, OK, 120),
    (130, 130, 0, 100, OK, 130),
    # late: only once the clock is past end + grace, here 130 + 5
    (135, 129, 0, 100, OK, 120),
    (136, 129, 0, 100, LATE, 120),
    (129, 129, 135, 100, OK, 120),
    (129, 129, 136, 100, LATE, 120),
    (120, 120, 136, 100, LATE, 120),
    (136, 130, 136, 100, OK, 130),
    # late: closed already, whatever the clock says
    (129, 129, 0, 120, OK, 120),
    (129, 129, 0, 130, LATE, 120),
    (129, 129, NO_TIME, 200, LATE, 120),
    # the future of its own arrival, by more than the allowed skew
    (120, 123, 0, 100, OK, 120),
    (120, 124, 0, 100, FUTURE, 120),
    (129, 132, 0, 100, OK, 130),
    (129, 133, 0, 100, FUTURE, 130),
    # the clock of others allows nothing: only the record's own arrival does
    (120, 124, 150, 100, FUTURE, 120),
    # before the first window
    (100, 100, 0, 100, OK, 100),
    (100, 99, 0, 100, BEFORE, 90),
    (100, 0, 0, 100, BEFORE, 0),
    (150, 99, 150, 100, BEFORE, 90),
    # behind the last window
    (199, 199, 0, 100, OK, 190),
    (200, 200, 0, 100, AFTER, 200),
    (199, 202, 0, 100, AFTER, 200),
    (199, 203, 0, 100, FUTURE, 200),
    (10**15, 10**15, 0, 100, AFTER, 10**15),
    # no arrival: not counted, first of all reasons that time gives
    (NO_TIME, 120, 0, 100, Reason.TIME_MISSING, 120),
    (NO_TIME, 99, 0, 100, Reason.TIME_MISSING, 90),
    (NO_TIME, 120, 500, 100, Reason.TIME_MISSING, 120),
]


@pytest.mark.parametrize(("arrival", "event", "clock", "closed", "reason", "start"), TABLE)
def test_the_fate_of_a_record(arrival, event, clock, closed, reason, start):
    assert judge(arrival, event, clock, closed) == (reason, start)


@pytest.mark.parametrize(("arrival", "event", "clock", "closed", "reason", "start"), TABLE)
def test_what_extraction_found_is_never_overruled(arrival, event, clock, closed, reason, start):
    assert judge(arrival, event, clock, closed, reason=Reason.ITEM_MISSING) == (Reason.ITEM_MISSING, start)


@pytest.mark.parametrize("case", [case for case in TABLE if case[3] == 100])
def test_the_oracle_agrees_with_the_table(case):
    arrival, event, clock, _, reason, _ = case
    rules = Rules(10, WINDOWS.grace_ms, WINDOWS.max_future_skew_ms, 100, 200)
    assert naive_judge(rules, max(clock, arrival), Row(0, arrival, event, "k", 0)) == reason


@pytest.mark.parametrize(
    ("clock", "through"),
    [(NO_TIME, -10), (15, 0), (16, 10), (115, 100), (116, 110), (125, 110), (126, 120), (205, 190), (206, 200),
     (207, 200), (10**15, 200)],
)  # fmt: skip
def test_a_window_is_due_strictly_after_its_end_and_grace(clock, through):
    assert WINDOWS.due_through(clock) == through


@settings(max_examples=200)
@given(st.integers(1, 50), st.integers(0, 100), st.integers(0, 1000), st.integers(0, 100))
def test_due_and_late_are_the_same_border(size, grace, clock, index):
    """A window is due exactly where a record of it would be late: nothing falls between the two."""
    windows = Tumbling(FixedGrid(size), grace, 10**6, 0)
    start = size * index
    due = start + size <= windows.due_through(clock)
    assert due == (start + size + grace < clock)
    assert (judge(0, start, clock, 0, windows)[0] == LATE) == due


STAMPED = Tumbling(FixedGrid(10), grace_ms=5, max_future_skew_ms=3, start_ms=100, end_ms=200, margin_ms=4)


@pytest.mark.parametrize(("clock", "through"), [(119, 100), (120, 110), (129, 110), (130, 120), (10**15, 200)])
def test_where_the_log_gives_arrival_times_a_window_closes_a_margin_later(clock, through):
    assert STAMPED.closed_by(clock) == through
    assert STAMPED.due_through(clock - 4) == through, "time without records is told less the margin already"
    assert WINDOWS.closed_by(clock) == WINDOWS.due_through(clock)


@settings(max_examples=200)
@given(st.integers(0, 300), st.integers(100, 190), st.integers(0, 300))
def test_where_the_log_gives_arrival_times_a_record_decides_for_itself(arrival, event, clock):
    """Whatever came before it: late is what arrives behind end and grace, and what is closed."""
    reason, start = judge(arrival, event, clock, 100, STAMPED)
    assert (reason == LATE) == (event <= arrival + 3 and start + 10 + 5 < arrival)
    assert judge(arrival, event, clock, start + 10, STAMPED)[0] in (LATE, FUTURE)


@settings(max_examples=200)
@given(st.integers(0, 50), st.integers(0, 9), st.integers(100, 300), st.integers(0, 100))
def test_no_step_back_within_the_margin_meets_a_closed_window(margin, grace, clock, step):
    windows = Tumbling(FixedGrid(10), grace, 10**6, 100, margin_ms=margin)
    step = min(step, margin)
    for start in range(100, clock, 10):
        if start + 10 <= windows.closed_by(clock):
            assert judge(clock - step, start, clock, 0, windows)[0] == LATE


@pytest.mark.parametrize(
    ("clock", "border"), [(120, 130), (126, 130), (127, 140), (130, 140), (196, 200), (197, 200), (500, 200)]
)
def test_the_last_border_holds_everything_that_the_clock_allows(clock, border):
    """An event up to the allowed skew ahead of the clock still lies before it."""
    assert WINDOWS.border_behind(clock) == border
    reason, start = judge(clock, clock + 3, clock, 100)
    assert reason == AFTER or start + 10 <= border


def test_without_an_end_the_windows_go_on_for_ever():
    windows = Tumbling(FixedGrid(10), 0, 0, 0)
    assert windows.end_ms == FOREVER_MS
    assert judge(10**15, 10**15, 0, 0, windows) == (OK, 10**15)


def test_the_clock_is_the_largest_arrival_and_never_goes_back():
    keys = KeyTable()
    rows = [Row(i, arrival, 0, "k", 0) for i, arrival in enumerate([5, 3, NO_TIME, 9, 7])]
    table = columns_of(rows, keys)
    assert WINDOWS.clocks(table, NO_TIME).tolist() == [5, 5, 5, 9, 9]
    assert WINDOWS.clocks(table, 8).tolist() == [8, 8, 8, 9, 9]
    assert WINDOWS.clocks(table, 100).tolist() == [100] * 5
    assert WINDOWS.clocks(columns_of([Row(0, NO_TIME, 5, "k", 0)], keys), NO_TIME).tolist() == [NO_TIME]


def test_no_rows_have_no_clock():
    empty = columns_of([], KeyTable(), next_offset=7)
    assert WINDOWS.clocks(empty, 100).tolist() == []
    reasons, starts = WINDOWS.judge(empty, WINDOWS.clocks(empty, 100), 100)
    assert (len(reasons), len(starts)) == (0, 0)


def test_judging_changes_neither_the_columns_nor_the_clock():
    one = columns(500, 120)
    WINDOWS.judge(one, WINDOWS.clocks(one, 0), 100)
    assert (one.reasons.tolist(), one.arrival_ms.tolist(), one.event_ms.tolist()) == ([0], [500], [120])


# Any batching of the same rows


@st.composite
def streams(draw):
    """(rules, rows): times around some windows, disorder, arrivals that are missing, records that say nothing."""
    rules = Rules(
        size=draw(st.sampled_from([1, 7, 10])),
        grace=draw(st.sampled_from([0, 1, 5, 25])),
        skew=draw(st.sampled_from([0, 4, 30])),
        start=70,
        end=draw(st.sampled_from([140, 210, FOREVER_MS - FOREVER_MS % 70])),
    )
    as_file = draw(st.booleans())
    rows, now = [], draw(st.integers(40, 90))
    for offset in range(draw(st.integers(0, 40))):
        now += draw(st.one_of(st.integers(-6, 6), st.integers(0, 30)))
        arrival = draw(st.one_of(st.just(now), st.just(now), st.just(NO_TIME)))
        event = arrival if as_file else max(0, now + draw(st.integers(-30, 12)))
        reason = draw(st.sampled_from([OK] * 6 + [Reason.ITEM_MISSING, Reason.MALFORMED]))
        if reason == Reason.MALFORMED or event == NO_TIME:
            reason, event, arrival = reason or Reason.TIME_MISSING, NO_TIME, NO_TIME if as_file else arrival
        row = Row(3 * offset, arrival, event, draw(st.sampled_from("abc")), draw(st.integers(0, 31)), int(reason))
        rows.append(row)
    return rules, rows, draw(st.lists(st.integers(0, 40), max_size=8))


@settings(max_examples=120)
@given(streams(), st.integers(1, 4))
def test_any_batching_gives_every_record_the_same_fate(stream, step_every):
    """The real counter, fed batch after batch and closing in between, against one record at a time."""
    rules, rows, cuts = stream
    plan = plan_of(PRESENCE, size=rules.size, grace=rules.grace, skew=rules.skew, start=rules.start, end=rules.end)
    reasons, windows, clock = naive_count(rules, rows)
    log, found, counter = run(plan, batches_of(rows, cuts) if rows else [], Same(255), step_every=step_every)
    assert found == reasons
    assert contents(log.records) == {
        (start, encode_key(key)): cells for start, keys in windows.items() for key, cells in keys.items()
    }
    assert counter.base.store.starts() == []
    at_once, _, _ = run(plan, [rows] if rows else [], Same(255))
    assert log.records == at_once.records, "markers included"
    border = min((clock + rules.skew) // rules.size * rules.size + rules.size, rules.end)
    if clock != NO_TIME and border > rules.start:
        assert covered(log.records) == (rules.start, border)
    else:
        assert not log.records
