"""Limits of one partition: each stops the worker before anything is counted wrongly, and names its setting."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_cases import (
    at,
    counter_of,
    invalid,
)
from support.counting_runs import (
    Tape,
    batches_of,
    columns_of,
    covered,
    declared,
    plan_of,
    run,
)

from sfm_stream.errors import StateError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Reason


def test_a_jump_of_the_clock_is_bounded():
    plan = plan_of(max_gap_windows=5)
    counter = counter_of(plan, at((5, "a", 1)))
    before = counter.state
    with pytest.raises(StateError, match=r"offset 2: .* jumps by 51ms, more than limits.max_gap_windows = 5"):
        counter.add(columns_of([Row(1, 6, 6, "a", 2), Row(2, 57, 57, "a", 3)], counter.keys))
    assert (counter.state, counter.step()) == (before, None)
    assert counter.base.store.get(0).first_offset == 0
    assert len(counter.base.store.get(0).key_ids()) == 1
    assert counter.base.store.raw_bytes() == 12, "nothing of the batch was counted"
    allowed = counter_of(plan, at((5, "a", 1), (55, "a", 3)))
    assert allowed.step() is not None


@pytest.mark.parametrize("batches", [1, 2])
def test_the_first_gap_is_measured_from_the_start(batches):
    """Before the start there is nothing to close, however old the first record is; and batching changes nothing."""
    plan = plan_of(start=1000, max_gap_windows=5)
    rows = at((3, "a", 1), (1010, "a", 1))
    log, reasons, _ = run(plan, batches_of(rows, [1] * (batches - 1)), Tape(1))
    assert reasons == [Reason.BEFORE_START, 0]
    assert covered(log.records) == (1000, 1020)
    with pytest.raises(StateError, match="max_gap_windows"):
        run(plan, batches_of(at((3, "a", 1), (1051, "a", 1)), [1] * (batches - 1)), Tape(1))


def test_a_run_of_unusable_records_is_bounded():
    plan = plan_of(max_consecutive_invalid=3)
    ok, bad = [Row(50, 5, 5, "a", 1)], invalid(60, 4)
    with pytest.raises(StateError, match=r"limits.max_consecutive_invalid = 3 .* mostly key_missing"):
        run(plan, [[*ok, *bad]], Tape(1))
    for cut in range(6):
        with pytest.raises(StateError, match="max_consecutive_invalid"):
            run(plan, batches_of([*ok, *bad], [cut]), Tape(1))
        _, reasons, _ = run(plan, batches_of([*invalid(0, 3), *ok, *invalid(60, 3)], [cut]), Tape(1))
        assert reasons.count(0) == 1


@pytest.mark.parametrize("reason", [Reason.KEY_MISSING, Reason.KEY_MISPLACED])
def test_a_batch_of_records_that_all_count_ends_a_run_and_an_empty_one_does_not(reason):
    counter = counter_of(plan_of(max_consecutive_invalid=3), at((5, "a", 1)))
    for batch in (invalid(1, 2, reason), [Row(3, 5, 5, "a", 1)], invalid(4, 2, reason)):
        counter.add(columns_of(batch, counter.keys))
    counter.add(columns_of([], counter.keys, next_offset=6))
    with pytest.raises(StateError, match="max_consecutive_invalid"):
        counter.add(columns_of(invalid(6, 2, reason), counter.keys))


@settings(max_examples=150)
@given(st.lists(st.booleans(), max_size=25), st.lists(st.integers(0, 25), max_size=8), st.integers(1, 4))
def test_the_longest_run_is_found_across_any_batches(usable, cuts, limit):
    rows = [Row(i, 5, 5, "a", 1) if good else invalid(i, 1)[0] for i, good in enumerate(usable)]
    longest = max(map(len, "".join("x."[good] for good in usable).split(".")))
    plan = plan_of(max_consecutive_invalid=limit)
    try:
        run(plan, batches_of(rows, cuts) if rows else [], Tape(1))
        stopped = False
    except StateError:
        stopped = True
    assert stopped == (longest > limit)


@pytest.mark.parametrize("reason", [Reason.LATE, Reason.FUTURE, Reason.BEFORE_START, Reason.AFTER_EPOCH])
def test_records_that_only_time_refuses_are_readable(reason):
    counter = counter_of(plan_of(grace=0, skew=0, start=50, end=90, max_consecutive_invalid=3), at((65, "a", 1)))
    row = {
        Reason.LATE: (60, 55), Reason.FUTURE: (65, 80), Reason.BEFORE_START: (65, 5), Reason.AFTER_EPOCH: (95, 95),
    }[reason]  # fmt: skip
    rows = [Row(i + 1, *row, "a", 1) for i in range(10)]
    assert counter.add(columns_of(rows, counter.keys)).counts == {reason: 10}


def test_keys_outside_the_declared_list_are_no_fault_of_the_configuration():
    """A public list may hold a few of many keys; the others are dropped, however many come in a row."""
    plan = plan_of(declared("a"), max_consecutive_invalid=3)
    rows = [*at((5, "a", 1)), *invalid(1, 10, Reason.KEY_NOT_DECLARED)]
    _, reasons, _ = run(plan, [rows], Tape(1))
    assert reasons == [0] + [Reason.KEY_NOT_DECLARED] * 10


def test_the_number_of_open_keys_is_bounded():
    plan = plan_of(max_open_keys=3)
    counter = counter_of(plan, at((5, "a", 1), (5, "b", 1), (5, "c", 1)))
    with pytest.raises(StateError, match=r"4 keys are open, limits.max_open_keys = 3"):
        counter.add(columns_of([Row(3, 5, 5, "d", 1)], counter.keys))
    later = counter_of(plan, at((5, "a", 1), (5, "b", 1), (5, "c", 1)))
    later.add(columns_of([Row(3, 15, 15, "a", 1)], later.keys))
    later.committed(later.step())
    later.add(columns_of([Row(4, 15, 15, "d", 1), Row(5, 15, 15, "e", 1)], later.keys))
    assert len(later.keys) == 3, "closed keys do not count"


def test_declared_keys_are_bounded_by_their_list():
    counter_of(plan_of(declared(*"abcdef"), max_open_keys=3), at((5, "a", 1)))


def test_the_memory_of_raw_sketches_is_bounded():
    shape = SketchShape(4096, 24)
    plan = plan_of(shape=shape, max_raw_bytes=410)
    rows = [Row(i, 5, 5, "a", i) for i in range(101)]
    # A key, its count and 4 bytes for each cell; the same cells again take no more.
    counter_of(plan, rows[:100])
    counter_of(plan, [row._replace(offset=n) for n, row in enumerate(rows[:100] * 5)])
    with pytest.raises(StateError, match=r"hold 412 bytes, limits.max_raw_bytes = 410"):
        counter_of(plan, rows)
