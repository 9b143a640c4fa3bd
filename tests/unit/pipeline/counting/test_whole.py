"""Counting an input whole: equal to plain sets, in any order, through any kills; limits that stop it."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    SMALL,
    Failing,
    Same,
    Tape,
    batches_of,
    columns_of,
    contents,
    covered,
    declared,
    markers_of,
    releases_of,
    state_in,
)
from support.whole_runs import begin, read, run_whole, whole_plan

from sfm_stream.errors import EntropyError, StateError
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import encode_key

HUGE = 1 << 40
QUIET = Same(255)
KEYS = declared("a", "b", "unseen", since={"late": 30})


@st.composite
def inputs(draw):
    """(rows in any order, places where batches end)."""
    count = draw(st.integers(0, 40))
    rows = []
    for offset in range(count):
        event = draw(st.integers(0, 79))
        reason = draw(st.sampled_from([0] * 8 + [Reason.ITEM_TYPE, Reason.KEY_MISSING, Reason.TIME_MISSING]))
        time = NO_TIME if reason == Reason.TIME_MISSING else event
        key, cell = draw(st.sampled_from(["a", "b", "late"])), draw(st.integers(0, SMALL.cells - 1))
        rows.append(Row(3 * offset, time, time, key, cell, int(reason)))
    return rows, draw(st.lists(st.integers(1, 40), max_size=5))


def oracle(rows, keys, size, start, until, end):
    """((first border, last border) or None, contents, reasons), with plain sets."""
    last = min(x for x in (until, end) if x is not None) if until is not None or end is not None else None
    reasons, found = [], defaultdict(set)
    inside = []
    for row in rows:
        reason, window = row.reason, row.event // size * size
        if row.event != NO_TIME:
            fits = (start is None or window >= start) and (last is None or window < last)
            if fits:
                inside.append(window)
            if reason == 0 and start is not None and window < start:
                reason = Reason.BEFORE_START
            elif reason == 0 and end is not None and window >= end:
                reason = Reason.AFTER_EPOCH
            elif reason == 0 and until is not None and window >= until:
                reason = Reason.AFTER_END
            elif reason == 0 and keys is KEYS and row.key == "late" and window < 30:
                reason = Reason.KEY_NOT_DECLARED
        reasons.append(int(reason))
        if reason == 0:
            found[window, encode_key(row.key)].add(row.cell)
    if start is not None and until is not None:
        span = (start, last)
    elif not inside:
        return None, {}, reasons
    else:
        span = (min(inside) if start is None else start, max(inside) + size if until is None else last)
    if keys is KEYS:
        windows = range(span[0], span[1], size)
        every = {(w, encode_key(k)) for w in windows for k in ("a", "b", "unseen", "late") if k != "late" or w >= 30}
        return span, {place: found.get(place, set()) for place in every}, reasons
    return span, dict(found), reasons


@settings(max_examples=250)
@given(
    inputs(),
    st.sampled_from([PRESENCE, KEYS]),
    st.sampled_from([None, 0, 20]),
    st.sampled_from([None, 50, 100]),
    st.sampled_from([None, 40]),
    st.sampled_from([1, 300, HUGE]),
    st.lists(st.integers(0, 4), max_size=4),
)
def test_the_same_as_plain_sets(case, keys, start, until, end, room, kills):
    rows, cuts = case
    plan = whole_plan(
        keys, start=start, until=until, max_transaction_bytes=room, **({} if end is None else {"end": end})
    )
    log, reasons = run_whole(plan, batches_of(rows, cuts) if rows else [], QUIET, kills)
    span, places, fates = oracle(rows, keys, 10, start, until, end)
    assert reasons == fates
    assert covered(log.records) == (None if span is None or span[0] >= span[1] else span)
    assert contents(log.records) == places


@settings(max_examples=80)
@given(inputs(), st.sampled_from([PRESENCE, KEYS, SELECTED]), st.sampled_from([(None, None), (0, 100)]), st.randoms())
def test_any_order_gives_the_same_bytes_under_the_same_coins(case, keys, borders, rng):
    rows, cuts = case
    if not rows:
        return
    other = rows[:]
    rng.shuffle(other)
    other = [row._replace(offset=offset) for offset, row in enumerate(other)]
    plan = whole_plan(keys, start=borders[0], until=borders[1], max_transaction_bytes=200)
    published = [run_whole(plan, batches, Tape(5))[0].records for batches in (batches_of(rows, cuts), [other])]
    assert published[0] == published[1]


@settings(max_examples=80)
@given(inputs(), st.sampled_from([PRESENCE, KEYS, SELECTED]), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_a_kill_between_releases_loses_nothing_and_draws_nothing_again(case, keys, kills):
    rows, cuts = case
    batches = batches_of(rows, cuts) if rows else []
    plan = whole_plan(keys, max_transaction_bytes=1)
    log, _ = run_whole(plan, batches, Tape(1), kills)
    places = [(record.key, record.timestamp_ms) for record in log.records]
    assert len(places) == len(set(places)), "published twice"
    if keys is not SELECTED:
        whole, _ = run_whole(plan, batches, Tape(2))
        assert sorted(places) == sorted((record.key, record.timestamp_ms) for record in whole.records)
    marked = [marker.through_ms for marker in markers_of(log.records)]
    assert marked == sorted(marked)
    for step in log.steps[:-1]:
        assert state_in(step).offset == 0, "before the last release the input has to be read again"


def rows_of(times, key="a"):
    return [Row(offset, time, time, key, offset % SMALL.cells, 0) for offset, time in enumerate(times)]


def test_a_device_a_day_ahead_makes_nothing_late():
    day = 24 * 360
    times = [(n % 600) * 10 + (day * 10 if n % 10 == 0 else 0) for n in range(6000)]
    plan = whole_plan(size=3600, max_gap_windows=30)
    log, reasons = run_whole(plan, batches_of(rows_of(times), range(0, 6000, 500)), QUIET)
    assert set(reasons) == {0}
    assert {start for start, _ in contents(log.records)} == {time // 3600 * 3600 for time in times}


def test_state_is_where_it_can_be_read_from_again():
    plan = whole_plan(start=0, max_transaction_bytes=1)
    counter = begin(plan, QUIET)
    for rows in batches_of(rows_of([5, 25, 15]), [1, 2]):
        assert counter.add(columns_of(rows, counter.keys)).counts == {}
        assert counter.step() is None, "nothing is released before the end"
        assert counter.checkpoint() is None, "nothing is kept before the end"
    counter.read_to("whole")
    counter.finish()
    states = []
    while (step := counter.step()) is not None:
        assert counter.checkpoint() is None
        counter.committed(step)
        states.append(state_in(step))
    assert [state.offset for state in states] == [0] * (len(states) - 1) + [3]
    assert {state.mark for state in states} == {"whole"}
    assert states[-1].base.closed_through_ms == 30
    again = begin(plan, QUIET, states[-1])
    assert read(again, []) == []
    assert again.step() is None


def test_records_of_windows_that_are_released_are_neither_dropped_nor_counted_again():
    plan = whole_plan(max_transaction_bytes=1)
    counter = begin(plan, QUIET)
    rows = [*rows_of([5, 25, 15, 5]), Row(9, 4, 4, "a", 0, int(Reason.ITEM_TYPE))]
    read(counter, [rows])
    while counter.state.base.closed_through_ms <= 10:
        step = counter.step()
        assert step is not None
        counter.committed(step)
    again = begin(plan, QUIET, state_in(step))
    columns = columns_of(rows, again.keys)
    dropped = again.add(columns)
    assert dropped.counts == {Reason.ITEM_TYPE: 1}
    assert dropped.released == {20: 3, 10: 2}[again.state.base.closed_through_ms]


def test_empty_inputs_release_what_is_configured_and_nothing_else():
    assert run_whole(whole_plan(KEYS), [], QUIET)[0].records == []
    assert run_whole(whole_plan(KEYS, start=10), [], QUIET)[0].records == []
    log, _ = run_whole(whole_plan(KEYS, start=10, until=40), [], QUIET)
    assert covered(log.records) == (10, 40)
    assert len(log.releases) == 3 * 3 + 1
    unreadable = [Row(0, NO_TIME, NO_TIME, "a", 0, int(Reason.TIME_MISSING))]
    assert run_whole(whole_plan(KEYS), [unreadable], QUIET)[0].records == []


# Limits


@pytest.mark.parametrize(
    ("arguments", "times", "found"),
    [
        ({}, [700, 5, 705], r"offset 1 and offset 0: 69 windows .* between .*00\.010Z and .*00\.700Z"),
        ({}, [5, 700], r"offset 0 and offset 1: 69 windows"),
        ({"start": 0}, [700], r"offset 0: 70 windows .* between .*00:00Z and .*00\.700Z"),
        ({"until": 1000}, [5], r"offset 0: 99 windows .* between .*00\.010Z and .*00:01Z"),
    ],
)
def test_an_absurd_time_does_not_make_windows_without_number(arguments, times, found):
    plan = whole_plan(max_gap_windows=68, **arguments)
    counter = begin(plan, QUIET)
    with pytest.raises(StateError, match=found + r".*max_gap_windows = 68.*event\.earliest.*window\.end"):
        read(counter, [rows_of(times)])
    assert counter.step() is None
    run_whole(whole_plan(max_gap_windows=99, **arguments), [rows_of(times)], QUIET)


def test_borders_that_are_configured_are_meant():
    """Between them nothing hangs on the data, so the gap is not looked at."""
    log, _ = run_whole(whole_plan(start=0, until=1000, max_gap_windows=3), [rows_of([5, 700])], QUIET)
    assert covered(log.records) == (0, 1000)


def test_a_gap_is_seen_whatever_the_records_hold():
    """A record whose item is blanked has its time still."""
    rows = [Row(n, time, time, "a", 0, int(Reason.ITEM_MISSING) if n else 0) for n, time in enumerate((5, 300, 595))]
    run_whole(whole_plan(max_gap_windows=30), [rows], QUIET)
    with pytest.raises(StateError, match="29 windows"):
        run_whole(whole_plan(max_gap_windows=27), [rows], QUIET)


def test_too_many_keys_name_the_other_order():
    rows = [Row(n, 10 * n, 10 * n, f"k{n}", 0, 0) for n in range(20)]
    run_whole(whole_plan(max_open_keys=20), [rows], QUIET)
    with pytest.raises(StateError, match=r'20 keys are open.*max_open_keys = 19.*input\.order = "time"'):
        run_whole(whole_plan(max_open_keys=19), [rows], QUIET)


def test_too_much_state_names_the_other_order():
    rows = [Row(n, 10 * (n % 7), 10 * (n % 7), f"k{n % 13}", n % SMALL.cells, 0) for n in range(3000)]
    batches = batches_of(rows, range(0, 3000, 250))
    # 7 windows with 13 bitmaps of 4 bytes: 364 bytes. The same cells over and over take no more.
    for _ in range(2):
        run_whole(whole_plan(max_raw_bytes=400), batches, QUIET)
        batches = batches + batches
    with pytest.raises(StateError, match=r'raw sketches hold.*max_raw_bytes = 300.*input\.order = "time"'):
        run_whole(whole_plan(max_raw_bytes=300), batches, QUIET)


def test_a_run_of_unusable_records_stops_as_ever():
    rows = [Row(n, 5, 5, "a", 0, int(Reason.ITEM_TYPE)) for n in range(20)]
    with pytest.raises(StateError, match="max_consecutive_invalid = 10"):
        run_whole(whole_plan(max_consecutive_invalid=10), [rows], QUIET)


def test_no_entropy_releases_nothing_more_and_a_second_reading_goes_on():
    rows = rows_of([5, 15, 25])
    plan = whole_plan(max_transaction_bytes=1)
    counter = begin(plan, Failing(QUIET, 1))
    read(counter, [rows])
    with pytest.raises(EntropyError):  # noqa: PT012 -- some step fails, not the first
        while (step := counter.step()) is not None:
            counter.committed(step)
    again = begin(plan, QUIET, counter.state)
    read(again, [rows])
    steps = []
    while (step := again.step()) is not None:
        steps += step.publish
        again.committed(step)
    assert [decode(r.value).window.start_ms for r in releases_of(steps)] == [10, 20]


def test_thousands_of_windows_in_no_order():
    rng = random.Random(3)
    times = [rng.randrange(40_000) for _ in range(20_000)]
    log, reasons = run_whole(whole_plan(max_gap_windows=100), batches_of(rows_of(times), range(0, 20_000, 700)), QUIET)
    assert set(reasons) == {0}
    cells = defaultdict(set)
    for offset, time in enumerate(times):
        cells[time // 10 * 10, encode_key("a")].add(offset % SMALL.cells)
    assert contents(log.records) == cells
    assert all(a.through_ms == b.start_ms for a, b in pairwise(markers_of(log.records)))
