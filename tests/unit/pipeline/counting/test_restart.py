"""Positions of one partition, and what a restart from each of them gives."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_cases import (
    BUSY,
    BY_BYTES,
    MODES,
    at,
    counter_of,
    histories,
)
from support.counting_runs import (
    PRESENCE,
    SOURCE,
    Log,
    Same,
    Tape,
    batches_of,
    columns_of,
    covered,
    drain,
    first_state,
    moved,
    plan_of,
    releases_of,
    run,
    state_in,
    table_of,
)

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.position import decode_state, encode_state, require_continuation
from sfm_stream.types import NO_TIME, Commit, Reason

# Positions


def test_the_position_is_the_first_record_of_the_oldest_open_window():
    rows = [Row(offset, time, time, key, 1) for offset, time, key in
            [(100, 25, "a"), (110, 5, "a"), (120, 15, "b"), (130, 31, "b"), (140, 38, "c")]]  # fmt: skip
    plan = plan_of(grace=20)
    counter = counter_of(plan)
    counter.add(columns_of(rows, counter.keys, next_offset=200))
    log = Log()
    drain(counter, log)
    assert counter.state.base.closed_through_ms == 10
    assert counter.state.offset == 100, "window 20 began with the first record"
    assert [commit.offset for commit in log.commits] == [100]
    counter.add(columns_of([Row(210, 51, 51, "a", 1)], counter.keys, next_offset=300))
    drain(counter, log)
    assert (counter.state.base.closed_through_ms, counter.state.offset) == (30, 130)
    counter.finish()
    drain(counter, log)
    assert (counter.state.base.closed_through_ms, counter.state.offset) == (60, 300), (
        "nothing open: behind the last batch"
    )


def test_a_checkpoint_moves_the_position_and_nothing_else():
    counter = counter_of(plan_of())
    assert counter.checkpoint() is None
    bad = [Row(4, 7, 7, None, 0, Reason.ITEM_MISSING)]
    counter.add(columns_of(bad, counter.keys, next_offset=9))
    step = counter.checkpoint()
    assert step.publish == ()
    state = state_in(step)
    assert (state.offset, state.clock_ms, state.base.closed_through_ms) == (9, 7, 0)
    assert counter.step() is step
    counter.committed(step)
    assert counter.checkpoint() is None
    counter.add(columns_of([Row(9, 8, 8, "a", 1), Row(10, 8, 8, "a", 2)], counter.keys, next_offset=20))
    assert counter.checkpoint() is None, "the open window begins where the position is already"
    counter.add(columns_of([Row(20, 9, 9, "a", 3)], counter.keys, next_offset=21))
    assert counter.checkpoint() is None


def test_a_checkpoint_never_overtakes_a_step():
    """The position moved while the step waits for its commit; what was drawn must not be thrown away."""
    counter = counter_of(plan_of(), [Row(0, 3, 3, None, 0, Reason.ITEM_MISSING), *at((0, "", 0), (5, "a", 1))[1:]])
    counter.add(columns_of([Row(2, 15, 15, "a", 2)], counter.keys))
    step = counter.step()
    assert state_in(step) != counter.state
    assert counter.checkpoint() is None
    assert counter.step() is step
    counter.committed(step)


def test_a_batch_without_records_moves_the_position():
    counter = counter_of(plan_of())
    counter.add(columns_of([], counter.keys, next_offset=50))
    assert state_in(counter.checkpoint()).offset == 50


# Restart: replay from what is committed


def assert_restarts_agree(history, counter_class=WindowCounter, kills=None):
    """Kill after a committed step, replay from its position: the rest of the releases, byte for byte.

    kills: the numbers of these steps, None for all of them.

    The second life reads the log from the committed offset in batches of its own and goes on with the tape where the
    step had left it.
    """
    mode, arguments, rows, cuts, other_cuts, seed = history
    plan = plan_of(MODES[mode], **arguments)
    log, _, last = run_with(counter_class, plan, batches_of(rows, cuts), Tape(seed))
    whole, through = log.releases, covered(log.records)
    done, records = 0, []
    for number, (step, position) in enumerate(zip(log.steps, log.positions, strict=True)):
        done += len(releases_of(step.publish))
        records += step.publish
        if kills is not None and number not in {kill % len(log.steps) for kill in kills}:
            continue
        state = state_in(step)
        require_continuation(state, plan, SOURCE, 0)
        left = [row for row in rows if row.offset >= state.offset]
        again, _, counter = run_with(
            counter_class, plan, batches_of(left, other_cuts) if left else [], Tape(seed, position), state
        )
        assert again.releases == whole[done:], "restart: other releases than the first run"
        assert again.records == log.records[len(records) :], "restart: other markers than the first run"
        assert covered([*records, *again.records]) == through, "restart: other windows decided"
        assert counter.state.base.closed_through_ms == last.state.base.closed_through_ms
        assert counter.state.base.cursor is None


def run_with(counter_class, plan, batches, tape, state=None):
    """As support's run, with the counter under test."""
    keys, log = table_of(plan), Log()
    counter = counter_class(plan, 0, state or first_state(plan), keys, tape)
    for rows in batches:
        counter.add(columns_of(rows, keys))
        drain(counter, log, tape)
    counter.finish()
    drain(counter, log, tape)
    return log, None, counter


@settings(max_examples=100)
@given(histories(), st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_a_restart_after_any_commit_goes_on_as_if_nothing_had_happened(history, kills):
    assert_restarts_agree(history, kills=kills)


@settings(max_examples=60)
@given(histories(), st.data())
def test_a_chain_of_restarts_gives_what_one_run_gives(history, data):
    """Killed again and again, between commits too: what is lost is replayed, what is committed is never drawn again."""
    mode, arguments, rows, cuts, _, _ = history
    plan = plan_of(MODES[mode], **arguments)
    once, _, _ = run(plan, batches_of(rows, cuts), Same(255))
    state, records = first_state(plan), []
    for life in range(60):
        left = [row for row in rows if row.offset >= state.offset]
        counter, taken = counter_of(plan, coins=Same(255), state=state), 0
        kill_at = None if life == 59 else data.draw(st.integers(0, 3))
        batches = [*batches_of(left, data.draw(st.lists(st.integers(0, 40), max_size=4))), None] if left else [None]
        killed = False
        for batch in batches:
            if batch is None:
                counter.finish()
            else:
                counter.add(columns_of(batch, counter.keys))
            while not killed and (step := counter.step()) is not None:
                killed = taken == kill_at
                if not killed:
                    counter.committed(step)
                    records += step.publish
                    taken += 1
            if not killed and batch is not None and (step := counter.checkpoint()) is not None:
                counter.committed(step)
            if killed:
                break
        state = decode_state(Commit(0, counter.state.offset, encode_state(counter.state)))
        if not killed:
            break
    assert records == once.records


class ClockOfNow(WindowCounter):
    """Commits the clock of now instead of the clock at the position: due windows look late when they are replayed."""

    def _commit(self, state):
        return super()._commit(replace(state, clock_ms=self.base.schedule.clock_ms))


class PositionOfNow(WindowCounter):
    """Commits the end of what was read, as a plain consumer does."""

    def _commit(self, state):
        return super()._commit(replace(state, offset=self._position))


class NoCursor(WindowCounter):
    """Forgets which keys of a window are decided: they get a second draw."""

    def _commit(self, state):
        return super()._commit(moved(state, cursor=None))


class NoClock(WindowCounter):
    """Commits no clock: what was late counts when it is replayed."""

    def _commit(self, state):
        return super()._commit(replace(state, clock_ms=NO_TIME))


PIECEWISE = ("presence_is_public", {"max_transaction_bytes": 1}, BUSY, [], [], 1)
LATE_AGAIN = (
    "declared",
    {"skew": 25, "max_transaction_bytes": 1},
    # A record without an item moves the clock past windows 0 and 10, then window 30 opens, then a record is late.
    [
        Row(0, 21, 21, None, 0, Reason.ITEM_MISSING),
        Row(1, 10, 30, "a", 2),
        Row(2, 15, 15, "a", 3),
        Row(3, 41, 41, "a", 4),
    ],
    [3],
    [],
    1,
)


@pytest.mark.parametrize(
    ("mutant", "history"),
    [(ClockOfNow, PIECEWISE), (PositionOfNow, PIECEWISE), (NoCursor, PIECEWISE), (NoClock, LATE_AGAIN)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_wrong_committed_state_is_caught(mutant, history):
    assert_restarts_agree(history)
    with pytest.raises((AssertionError, StateError)):
        assert_restarts_agree(history, mutant)


def test_a_window_that_the_committed_clock_has_passed_is_due_at_once():
    """Found late once, a record is late again, and what made its window due need not be replayed."""
    plan = plan_of(MODES["declared"], **LATE_AGAIN[1])
    counter = counter_of(plan, LATE_AGAIN[2][:3])
    step = counter.step()
    state = state_in(step)
    assert (state.base.closed_through_ms, state.base.cursor, state.offset, state.clock_ms) == (0, BY_BYTES[0], 1, 21)
    again = counter_of(plan, coins=Same(255), state=state)
    assert again.behind
    before = Log()
    drain(again, before)
    assert covered(before.records) == (0, 20)
    assert again.add(columns_of(LATE_AGAIN[2][1:3], again.keys)).counts == {Reason.LATE: 1}
    assert not again.behind, "the next window is open"


def test_the_clock_before_the_position_is_part_of_the_state():
    """Behind a committed marker, what had moved the clock is not replayed; its clock is in the state."""
    counter = counter_of(plan_of(PRESENCE, grace=5), at((3, "a", 1), (21, "a", 1), (22, "b", 1)))
    state = state_in(counter.step())
    assert (state.base.closed_through_ms, state.base.cursor, state.offset, state.clock_ms) == (10, None, 1, 3)
