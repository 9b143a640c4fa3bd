"""Pipelines of several released spans against an oracle that counts each span by itself; restarts; borders."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_days import day_borders
from reference.naive_spans import NaiveSpan, fixed, naive_spans
from reference.naive_windows import Row
from support.counting_cases import at, histories
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    SOURCE,
    Log,
    Same,
    Tape,
    batches_of,
    columns_of,
    declared,
    drain,
    first_state,
    run,
    state_in,
    table_of,
)
from support.span_runs import COARSER, assert_in_order, lit_cells, marked, spans_plan

from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.position import decode_state, encode_state, require_continuation
from sfm_stream.types import Commit, Reason
from sfm_stream.units import FOREVER_MS, HOUR_MS, MINUTE_MS
from sfm_stream.wire.keys import encode_key

QUIET = Same(255)
MODES = {"declared": declared("b", "a", "", 0, "aa", 7, since={"late": 40, "later": 70}), "presence": PRESENCE}


def naive_of(plan, until=2000):
    """The spans of a plan of fixed sizes, for the oracle."""
    start, end = plan.windows.start_ms, plan.windows.end_ms
    return [fixed(span.name, span.size_ms, start, end, until) for span in plan.spans]


def assert_as_the_oracle(plan, rows, log, reasons, spans):
    keys = plan.keys.effective if plan.keys is not PRESENCE else None
    windows = plan.windows
    stamped = windows.margin_ms is not None
    fates, cells, clock = naive_spans(spans, rows, windows.grace_ms, windows.max_future_skew_ms, stamped, keys)
    assert reasons == fates
    expected, closed = {}, {}
    for span in spans:
        last = span.window(clock + windows.max_future_skew_ms)[1] if clock >= 0 else 0
        closed[span.name] = span.released(0, last)
        for start, _ in closed[span.name]:
            there = {key for name, begin, key in cells if (name, begin) == (span.name, start)}
            listed = there if keys is None else {key for key, since in keys.items() if since <= start}
            for key in listed:
                expected[span.name, start, encode_key(key)] = cells.get((span.name, start, key), set())
    assert lit_cells(log.records) == expected
    assert marked(log.records) == {name: windows for name, windows in closed.items() if windows}
    assert_in_order(plan, log.records)


@settings(max_examples=100)
@given(histories(), st.sampled_from(sorted(MODES)), st.booleans())
def test_every_span_is_what_it_would_be_alone(history, mode, epoch_ends):
    _, arguments, rows, cuts, _, _ = history
    plan = spans_plan(MODES[mode], **arguments, end=130 if epoch_ends else FOREVER_MS)
    log, reasons, counter = run(plan, batches_of(rows, cuts), QUIET)
    assert_as_the_oracle(plan, rows, log, reasons, naive_of(plan))
    assert counter.step() is None
    assert counter.open_windows == 0, "nothing secret is left behind"


@settings(max_examples=30)
@given(histories(), st.sampled_from(sorted(MODES)))
def test_arrival_times_of_the_log_decide_for_each_span(history, mode):
    _, arguments, rows, cuts, _, _ = history
    arguments["margin"] = 200
    rows = [row._replace(event=max(0, row.event - 30)) for row in rows]
    plan = spans_plan(MODES[mode], unit="removed", **arguments)
    log, reasons, _ = run(plan, batches_of(rows, cuts), QUIET)
    assert_as_the_oracle(plan, rows, log, reasons, naive_of(plan))


@settings(max_examples=30)
@given(histories(), st.sampled_from([*sorted(MODES), "selected"]), st.data())
def test_restarts_give_what_one_run_gives(history, mode, data):
    """Killed between any two commits, within a window of any span too: nothing is lost or drawn again."""
    _, arguments, rows, cuts, _, seed = history
    plan = spans_plan({**MODES, "selected": SELECTED}[mode], **arguments)
    once, _, _ = run(plan, batches_of(rows, cuts), Tape(seed))
    tape, state, records = Tape(seed), first_state(plan), []
    for life in range(30):
        drawn = tape.position
        kill_at = None if life == 29 else data.draw(st.integers(0, 4))
        left = [row for row in rows if row.offset >= state.offset]
        keys = table_of(plan)
        counter, taken = WindowCounter(plan, 0, state, keys, tape), 0
        for batch in [*(batches_of(left, data.draw(st.lists(st.integers(0, 40), max_size=3))) if left else []), None]:
            counter.finish() if batch is None else counter.add(columns_of(batch, keys))
            while taken != kill_at and (step := counter.step()) is not None:
                counter.committed(step)
                records += step.publish
                taken, drawn = taken + 1, tape.position
            if taken == kill_at:
                break
            if batch is not None and (step := counter.checkpoint()) is not None:
                counter.committed(step)
        tape = Tape(seed)
        tape.digits(drawn)
        state = decode_state(Commit(0, counter.state.offset, encode_state(counter.state)))
        assert state == counter.state
        require_continuation(state, plan, SOURCE, 0)
        if taken != kill_at:
            break
    assert records == once.records


# Zones


def instant(zone, *when):
    return int(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()) * 1000


CASES = {
    "clocks forward": ("Europe/Berlin", (2026, 3, 28)),
    "clocks back": ("Europe/Berlin", (2026, 10, 24)),
    "half hours": ("Asia/Kolkata", (2026, 3, 28)),
    "half an hour back": ("Australia/Lord_Howe", (2026, 4, 4)),
    "half an hour forward": ("Australia/Lord_Howe", (2026, 10, 3)),
}


@st.composite
def days_of_events(draw):
    """(zone, start, rows): three days around a change of clocks."""
    zone, first = CASES[draw(st.sampled_from(sorted(CASES)))]
    start = instant(zone, *first) - draw(st.sampled_from([0, 30, 90])) * MINUTE_MS
    now, rows = start + draw(st.integers(0, 5)) * HOUR_MS, []
    for offset in range(draw(st.integers(1, 25))):
        now += draw(st.one_of(st.integers(0, 2 * HOUR_MS), st.integers(-HOUR_MS, 8 * HOUR_MS)))
        event = max(0, now - draw(st.sampled_from([0, 0, 1, 20 * MINUTE_MS, 3 * HOUR_MS, 30 * HOUR_MS])))
        rows.append(Row(offset, now, event, draw(st.sampled_from(["a", "b"])), draw(st.integers(0, 31))))
    return zone, start - start % (30 * MINUTE_MS), rows


@settings(max_examples=40)
@given(days_of_events(), st.lists(st.integers(0, 25), max_size=4))
def test_windows_hours_and_days_on_days_on_which_clocks_change(case, cuts):
    zone, start, rows = case
    plan = spans_plan(
        declared("a", "b"),
        size=30 * MINUTE_MS, coarser=("hour", "day"), zone=zone, start=start, grace=5 * MINUTE_MS, skew=HOUR_MS,
    )  # fmt: skip
    low, high = instant(zone, *min(CASES[c][1] for c in CASES if CASES[c][0] == zone)), max(r.arrival for r in rows)
    low = min(start, low) - 40 * 24 * HOUR_MS
    low = instant(zone, *datetime.fromtimestamp(low / 1000, ZoneInfo(zone)).timetuple()[:3])
    high += 3 * 24 * HOUR_MS
    spans = []
    for name, borders in {
        "30m": list(range(start - 60 * HOUR_MS, high, 30 * MINUTE_MS)),
        "hour": list(range(start - start % HOUR_MS - 60 * HOUR_MS, high, HOUR_MS)),
        "day": day_borders(zone, low, high),
    }.items():
        inside = [border for border in borders if border >= start]
        spans.append(NaiveSpan(name, borders, inside[0], FOREVER_MS))
    log, reasons, _ = run(plan, batches_of(rows, cuts), QUIET)
    assert_as_the_oracle(plan, rows, log, reasons, spans)
    lengths = {(end - begin) / HOUR_MS for begin, end in marked(log.records).get("day", [])}
    assert lengths <= {23, 23.5, 24, 24.5, 25}


# Borders and shapes


def test_a_window_that_the_epoch_covers_in_part_is_not_released():
    plan = spans_plan(start=30, end=150)
    log, _, _ = run(plan, [at(*((time, "a", time) for time in range(0, 31, 1)), (160, "a", 1))], QUIET)
    assert {name: (windows[0][0], windows[-1][1]) for name, windows in marked(log.records).items()} == {
        "10ms": (30, 150), "40ms": (40, 120), "60ms": (60, 120),
    }  # fmt: skip


def test_an_input_that_is_complete_releases_the_windows_of_its_last_record():
    log, _, _ = run(spans_plan(), [at((5, "a", 1), (130, "a", 2))], QUIET)
    assert {name: windows[-1][1] for name, windows in marked(log.records).items()} == {
        "10ms": 140, "40ms": 160, "60ms": 180,
    }  # fmt: skip


def test_what_is_late_for_its_window_may_count_for_its_hour():
    rows = at((5, "a", 1), (25, "a", 2), (6, "a", 3), (45, "a", 4), (7, "a", 5), (61, "a", 6), (8, "a", 7))
    log, reasons, _ = run(spans_plan(), [[row] for row in rows], QUIET)
    found = {place[:2]: cells for place, cells in lit_cells(log.records).items()}
    assert found["10ms", 0] == {1}
    assert found["40ms", 0] == {1, 2, 3}
    assert found["60ms", 0] == {1, 2, 3, 4, 5}
    assert reasons == [0, 0, 0, 0, 0, 0, Reason.LATE], "dropped only where no span takes it"


def test_a_step_has_windows_of_one_span_and_one_cursor():
    plan = spans_plan(declared("a", "b", "c"), max_transaction_bytes=1)
    log, _, _ = run(plan, [at((5, "a", 1), (130, "b", 2))], QUIET)
    for step in log.steps:
        assert len({type(record) and record.value[:40] for record in step.publish}) == 1
        state = state_in(step)
        assert sum(span.cursor is not None for span in state.spans) <= 1
        for span, counted in zip(state.spans, plan.spans, strict=True):
            if span.cursor is not None:
                assert span.cursor_end_ms == span.closed_through_ms + counted.size_ms


def test_the_position_is_the_first_record_of_the_oldest_window_of_any_span():
    plan = spans_plan(coarser=("60ms",))
    keys = table_of(plan)
    counter, log = WindowCounter(plan, 0, first_state(plan), keys, QUIET), Log()
    for offset, time in ((100, 5), (110, 15), (120, 25), (130, 59), (140, 61), (150, 75)):
        counter.add(columns_of([Row(offset, time, time, "a", 1)], keys))
        drain(counter, log)
        expected = 0 if time == 5 else 100 if time < 61 else 140
        assert counter.state.offset == expected, "the record of the open long window is read again"
    assert [span.closed_through_ms for span in counter.state.spans] == [70, 60]


def test_keys_are_held_while_any_window_holds_them_and_freed_then():
    plan = spans_plan(coarser=("60ms",))
    keys = table_of(plan)
    counter, log = WindowCounter(plan, 0, first_state(plan), keys, QUIET), Log()
    for offset, (time, key) in enumerate([(5, "a"), (15, "b"), (25, "c"), (35, "d"), (61, "e"), (71, "f")]):
        counter.add(columns_of([Row(offset, time, time, key, 1)], keys))
        drain(counter, log)
    assert set(keys) == {"e", "f"}
    assert counter.open_windows == 2, "the base window of f, and the long one of e"


def test_where_replay_begins_is_forgotten_with_its_window():
    plan = spans_plan(coarser=("60ms",))
    counter = WindowCounter(plan, 0, first_state(plan), keys := table_of(plan), QUIET)
    for offset, time in enumerate(range(5, 900, 10)):
        counter.add(columns_of([Row(offset, time, time, "a", 1)], keys))
        drain(counter, Log())
        for span in counter.spans:
            assert min(span.replay._points, default=time) >= span.progress.closed_through_ms


def test_keys_that_no_window_holds_are_no_reason_to_stop():
    """Of the windows before the first long one nothing is absorbed: what they held is free once they are closed."""
    plan = spans_plan(coarser=("60ms",), start=10, max_open_keys=6)
    counter = WindowCounter(plan, 0, first_state(plan), keys := table_of(plan), QUIET)
    for time in (15, 25, 35, 45, 55):
        rows = [Row(10 * time + n, time, time, f"{time}.{n}", 1) for n in range(3)]
        counter.add(columns_of(rows, keys))
        drain(counter, Log())
    assert {"55.0", "55.1", "55.2"} <= set(keys)


def test_selection_is_drawn_for_each_window_of_each_span():
    """With coins that always select, each span has its release; with those that never do, none has."""
    for digit, count in ((0, 3), (255, 0)):
        log, _, _ = run(spans_plan(SELECTED, shapes=()), [at((5, "a", 1), (6, "a", 2))], Same(digit))
        assert len(log.releases) == count
        assert set(marked(log.records)) == {"10ms", *COARSER}


def test_a_declared_key_takes_effect_in_a_coarser_window_from_its_next_one_on():
    plan = spans_plan(declared("a", since={"n": 10}))
    log, reasons, _ = run(plan, [at((5, "n", 1), (15, "n", 2), (65, "n", 3), (125, "a", 1))], QUIET)
    assert reasons == [Reason.KEY_NOT_DECLARED, 0, 0, 0]
    n = encode_key("n")
    places = {(span, start): cells for (span, start, key), cells in lit_cells(log.records).items() if key == n}
    assert [start for span, start in places if span == "10ms"][:2] == [10, 20]
    assert (places["10ms", 10], places["10ms", 60]) == ({2}, {3})
    assert {place: cells for place, cells in places.items() if place[0] != "10ms"} == {
        ("40ms", 40): {3}, ("40ms", 80): set(), ("40ms", 120): set(), ("60ms", 60): {3}, ("60ms", 120): set(),
    }  # fmt: skip


@pytest.mark.parametrize("mark", ["", "ends:1:00"])
def test_a_state_of_several_spans_survives_its_bytes(mark):
    plan = spans_plan(coarser=("40ms", "60ms"), start=30)
    state = replace(first_state(plan), offset=7, clock_ms=9, mark=mark, declared="ab")
    assert [span.closed_through_ms for span in state.spans] == [30, 30, 30], "no later than the base span"
    assert state.drawn_through_ms == 30, "nothing is drawn"
    half = replace(state.spans[1], cursor=b"\x00\xff", cursor_end_ms=80)
    state = replace(state, spans=(state.spans[0], half, state.spans[2]))
    assert decode_state(Commit(0, 7, encode_state(state))) == state
    assert state.drawn_through_ms == 80
