"""The counting pipeline of one partition: what is published in which order, in which pieces, and after a restart."""

from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row, Rules, naive_count
from support.counting_runs import (
    FINGERPRINT,
    PRESENCE,
    SELECTED,
    SOURCE,
    Log,
    Same,
    Tape,
    batches_of,
    columns_of,
    contents,
    covered,
    declared,
    drain,
    first_state,
    markers_of,
    moved,
    plan_of,
    releases_of,
    run,
    state_in,
    table_of,
)

from sfm_stream.errors import StateError
from sfm_stream.pipeline.counting import position as state_module
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.position import decode_state, encode_state, require_continuation
from sfm_stream.pipeline.counting.releases import MARKER_KEY
from sfm_stream.privacy.key_rules import SelectedKeys
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, Commit, Reason, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import encode_key

KEYS = ["b", "a", "", 0, "aa", 7]
BY_BYTES = sorted(encode_key(key) for key in KEYS)
HUGE = 1 << 40


def at(*rows):
    """Rows (time, key, cell), arrival = event time, offsets 0, 1, ..."""
    return [Row(offset, time, time, key, cell) for offset, (time, key, cell) in enumerate(rows)]


def shown(records):
    """(window start, key) of each release, ("marker", from, through) of each marker."""
    found = []
    for record in records:
        content = decode(record.value)
        if record.key == MARKER_KEY:
            found.append(("marker", content.start_ms, content.through_ms))
        else:
            found.append((content.window.start_ms, record.key))
    return found


def marks(start, through):
    """One marker for each window of 10."""
    return [("marker", border, border + 10) for border in range(start, through, 10)]


def counter_of(plan, rows=(), coins=None, state=None):
    keys = table_of(plan)
    counter = WindowCounter(plan, 0, state or first_state(plan), keys, coins or Tape(1))
    if rows:
        counter.add(columns_of(rows, keys))
    return counter


# Order and completeness


def test_windows_in_order_of_time_and_keys_in_order_of_their_bytes():
    rows = at(*((start + 9 - i, key, 3) for start in (10, 0, 30) for i, key in enumerate(KEYS)), (60, "z", 1))
    log, _, _ = run(plan_of(grace=20), [rows], Tape(1), finish=False)
    assert shown(log.records) == [
        *((0, key) for key in BY_BYTES),
        ("marker", 0, 10),
        *((10, key) for key in BY_BYTES),
        ("marker", 10, 20),
        ("marker", 20, 30),
    ]
    for record in log.releases:
        assert record.timestamp_ms == decode(record.value).window.end_ms
        assert (record.topic, record.partition) == (SKETCHES, 0)
    assert [record.timestamp_ms for record in log.records if record.key == MARKER_KEY] == [10, 20, 30]


def test_a_release_says_what_the_plan_says():
    plan = plan_of(epsilon=2.5, unit="removed", start=50)
    log, _, _ = run(plan, [at((55, ("x", 1), 3), (60, ("x", 1), 4))], Tape(1))
    release = decode(log.releases[0].value)
    assert (release.pipeline, release.epoch, release.partition, release.partitions) == ("test", 1, 0, 1)
    assert (release.unit, release.sketch.flip_threshold, release.sketch.shape, release.sketch.hash) == (
        "removed", plan.span.flip_threshold, plan.span.shape, "xxh64",
    )  # fmt: skip
    marker, _ = markers_of(log.records)
    assert (marker.start_ms, marker.through_ms, marker.window_ms, marker.fingerprint) == (50, 60, 10, FINGERPRINT)


def test_nothing_is_due_until_the_clock_is_past_end_and_grace():
    counter = counter_of(plan_of(grace=5), at((3, "a", 1), (15, "a", 1)))
    assert counter.step() is None
    counter.add(columns_of([Row(2, 16, 16, "b", 1)], counter.keys))
    assert shown(counter.step().publish) == [(0, encode_key("a")), ("marker", 0, 10)]


def test_a_record_without_a_usable_item_moves_the_clock_all_the_same():
    counter = counter_of(plan_of(), at((3, "a", 1)))
    counter.add(columns_of([Row(1, 11, 11, None, 0, Reason.ITEM_MISSING)], counter.keys))
    assert shown(counter.step().publish) == [(0, encode_key("a")), ("marker", 0, 10)]


GAP = at((5, "a", 1), (1005, "b", 2))


def test_each_window_has_its_marker_whether_or_not_anything_was_counted_in_it():
    for keys in (PRESENCE, SELECTED):
        for batches in ([GAP], [GAP[:1], GAP[1:]]):
            log, _, _ = run(plan_of(keys), batches, Same(0))
            assert shown(log.records) == [
                (0, encode_key("a")), *marks(0, 1000), (1000, encode_key("b")), *marks(1000, 1010),
            ]  # fmt: skip
        far, _, _ = run(plan_of(keys, start=0), [at((995, "a", 1))], Same(0))
        assert shown(far.records) == [*marks(0, 990), (990, encode_key("a")), *marks(990, 1000)]


def test_a_removed_record_leaves_every_marker_as_it_was():
    """The one that first passes a border may be missing: what is closed by the next one is the same, piece by piece."""
    for rows in (at((5, "a", 1), (16, "a", 1), (35, "a", 1)), at((5, "a", 1), (35, "a", 1))):
        for step_every in (1, 3):
            log, _, _ = run(plan_of(declared()), [[row] for row in rows], Tape(1), step_every=step_every)
            assert shown(log.records) == marks(0, 40)


def test_a_long_gap_is_committed_in_pieces():
    log, _, _ = run(plan_of(max_transaction_bytes=500), [GAP], Same(255), finish=False)
    assert covered(log.records) == (0, 1000)
    *full, _ = sizes_of(log)
    largest = max(len(record.value) for record in log.records)
    assert len(full) > 10
    assert all(500 <= size < 500 + largest for size in full)
    assert [state_in(step).closed_through_ms for step in log.steps] == [
        markers_of(step.publish)[-1].through_ms for step in log.steps
    ]


def test_windows_without_an_event_are_empty_releases_of_declared_keys():
    log, _, _ = run(plan_of(declared("a", "b", "c")), [GAP], Same(255))
    names = [encode_key(key) for key in "abc"]
    each = [[*((start, key) for key in names), *marks(start, start + 10)] for start in range(0, 1010, 10)]
    assert shown(log.records) == [record for window in each for record in window]
    lit = {place: cells for place, cells in contents(log.records).items() if cells}
    assert lit == {(0, names[0]): {1}, (1000, names[1]): {2}}
    assert len({len(record.value) for record in log.releases}) == 1


def test_a_declared_key_with_no_event_at_all_looks_like_any_other():
    """Same places, same sizes; only coins and cells differ."""
    plan = plan_of(declared("a", "b"))
    busy, _, _ = run(plan, [at((5, "a", 1), (5, "b", 2), (15, "b", 3))], Tape(1))
    idle, _, _ = run(plan, [at((5, "a", 1), (15, "a", 3))], Tape(1))
    assert [(r.key, r.timestamp_ms, len(r.value)) for r in busy.records] == [
        (r.key, r.timestamp_ms, len(r.value)) for r in idle.records
    ]


def test_a_key_declared_for_later_takes_effect_there():
    plan = plan_of(declared("a", since={"new": 20, "newer": 35}))
    rows = at((5, "new", 1), (5, "a", 1), (21, "new", 2), (21, "newer", 9), (39, "newer", 3), (41, "newer", 4))
    log, reasons, _ = run(plan, [rows], Same(255))
    assert reasons == [Reason.KEY_NOT_DECLARED, 0, 0, Reason.KEY_NOT_DECLARED, Reason.KEY_NOT_DECLARED, 0]
    a, new, newer = (encode_key(key) for key in ("a", "new", "newer"))
    assert contents(log.records) == {
        (0, a): {1}, (10, a): set(), (20, a): set(), (30, a): set(), (40, a): set(),
        (20, new): {2}, (30, new): set(), (40, new): set(), (40, newer): {4},
    }  # fmt: skip


def test_selection_withholds_and_publishes():
    rows = at((5, "a", 1), (5, "b", 1), (5, "b", 2))
    withheld, _, _ = run(plan_of(SELECTED), [rows], Same(255))
    assert shown(withheld.records) == [("marker", 0, 10)]
    published, _, _ = run(plan_of(SELECTED), [rows], Same(0))
    assert contents(published.records, inverted=True) == {(0, encode_key("a")): {1}, (0, encode_key("b")): {1, 2}}


def test_finish_closes_every_window_that_the_clock_allows_and_nothing_before_the_start():
    log, _, counter = run(plan_of(skew=25), [[Row(0, 12, 30, "a", 1)]], Tape(1))
    assert shown(log.records) == [*marks(0, 30), (30, encode_key("a")), *marks(30, 40)]
    assert counter.step() is None
    counter.finish()
    assert counter.step() is None
    early, reasons, _ = run(plan_of(start=100), [at((50, "a", 1))], Tape(1))
    assert (early.steps, reasons) == ([], [Reason.BEFORE_START])
    ahead, reasons, _ = run(plan_of(start=70, skew=5), [[Row(0, 66, 70, "a", 1)]], Tape(1))
    assert reasons == [0]
    assert shown(ahead.records) == [(70, encode_key("a")), ("marker", 70, 80)], "its own arrival lies before the start"
    never, _, _ = run(plan_of(), [[Row(0, NO_TIME, NO_TIME, None, 0, Reason.MALFORMED)]], Tape(1))
    assert never.steps == []


def test_nothing_is_published_behind_the_last_border_of_an_epoch():
    log, reasons, counter = run(plan_of(declared("a"), end=30), [at((5, "a", 1), (25, "a", 1), (95, "a", 1))], Tape(1))
    assert reasons == [0, 0, Reason.AFTER_EPOCH]
    assert covered(log.records) == (0, 30)
    assert [place[0] for place in contents(log.records)] == [0, 10, 20]
    assert counter.state.closed_through_ms == 30


# One draw


def test_a_step_is_the_same_object_until_it_is_committed():
    counter = counter_of(plan_of(), at((5, "a", 1), (15, "a", 1), (25, "a", 1)))
    step = counter.step()
    assert counter.step() is step
    assert counter.checkpoint() is None, "a checkpoint must not overtake what is drawn"
    with pytest.raises(StateError, match="not due"):
        counter.committed(Step(step.publish, step.commit))
    assert counter.step() is step
    counter.add(columns_of([Row(3, 95, 95, "a", 1)], counter.keys))
    assert counter.step() is step, "new windows due do not change what was drawn"
    counter.committed(step)
    assert shown(counter.step().publish)[0] == (20, encode_key("a"))
    with pytest.raises(StateError, match="not due"):
        counter.committed(step)


def test_raw_state_is_kept_until_the_commit_and_dropped_by_it():
    counter = counter_of(plan_of(), at((5, "a", 1), (5, "b", 1), (15, "b", 1)))
    step = counter.step()
    assert counter.store.starts() == [0, 10]
    assert set(counter.keys) == {"a", "b"}
    counter.committed(step)
    assert counter.store.starts() == [10]
    assert set(counter.keys) == {"b"}


# Pieces


MODES = {
    "declared": declared(*KEYS, since={"late": 40}),
    "selected": SELECTED,
    "presence_is_public": PRESENCE,
}


def sizes_of(log):
    return [sum(len(record.value) for record in step.publish) for step in log.steps]


BUSY = at(*((start + i, key, i) for start in range(0, 60, 10) for i, key in enumerate(KEYS)), (200, "z", 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [1, 150, 300, 1000, 5000])
def test_a_close_in_pieces_is_the_close_in_one(mode, limit):
    plan = plan_of(MODES[mode], max_transaction_bytes=HUGE)
    whole, _, _ = run(plan, [BUSY], Tape(1))
    pieces, _, counter = run(plan_of(MODES[mode], max_transaction_bytes=limit), [BUSY], Tape(1))
    assert len(pieces.steps) >= len(whole.steps) == 2
    assert pieces.releases == whole.releases
    assert covered(pieces.records) == covered(whole.records) == (0, 210)
    largest = max(len(record.value) for record in pieces.records)
    assert all(size < limit + largest for size in sizes_of(pieces))
    cut = [
        size
        for step, size in zip(pieces.steps, sizes_of(pieces), strict=True)
        if state_in(step).span.cursor is not None
    ]
    assert cut or limit > 300 or mode == "selected"
    assert all(size >= limit for size in cut), "no piece is cut before it is full"
    assert counter.state.span.cursor is None


@pytest.mark.parametrize("limit", [1, 300])
def test_a_marker_comes_only_behind_all_releases_of_its_windows(limit):
    log, _, _ = run(plan_of(max_transaction_bytes=limit), [BUSY], Tape(1))
    through = 0
    for step in log.steps:
        for kind, *rest in [("release", *s) if s[0] != "marker" else s for s in shown(step.publish)]:
            if kind == "marker":
                assert rest[0] == through
                through = rest[1]
            else:
                assert rest[0] >= through
        state = state_in(step)
        assert through == state.closed_through_ms
        if state.span.cursor is not None:
            last = releases_of(step.publish)[-1]
            assert (last.key, decode(last.value).window.start_ms) == (state.span.cursor, state.closed_through_ms)


def test_the_cursor_passes_keys_that_were_withheld():
    """A withheld key is decided as well: a restart must not give it a second chance."""
    table = np.array([0, 0, (1 << 64) - 1], np.uint64)  # one cell: never; two: as good as always
    keys = SelectedKeys(SELECTED.epsilon, SELECTED.delta, table)
    rows = at((1, "a", 1), (1, "a", 2), (1, "b", 1), (1, "c", 1), (1, "c", 2), (15, "x", 1))
    log, _, _ = run(plan_of(keys, max_transaction_bytes=1), [rows], Tape(1), finish=False)
    assert [shown(step.publish) for step in log.steps] == [
        [(0, encode_key("a"))], [(0, encode_key("c"))], [("marker", 0, 10)],
    ]  # fmt: skip
    assert [state_in(step).span.cursor for step in log.steps] == [encode_key("a"), encode_key("c"), None]


# Positions


def test_the_position_is_the_first_record_of_the_oldest_open_window():
    rows = [Row(offset, time, time, key, 1) for offset, time, key in
            [(100, 25, "a"), (110, 5, "a"), (120, 15, "b"), (130, 31, "b"), (140, 38, "c")]]  # fmt: skip
    plan = plan_of(grace=20)
    counter = counter_of(plan)
    counter.add(columns_of(rows, counter.keys, next_offset=200))
    log = Log()
    drain(counter, log)
    assert counter.state.closed_through_ms == 10
    assert counter.state.offset == 100, "window 20 began with the first record"
    assert [commit.offset for commit in log.commits] == [100]
    counter.add(columns_of([Row(210, 51, 51, "a", 1)], counter.keys, next_offset=300))
    drain(counter, log)
    assert (counter.state.closed_through_ms, counter.state.offset) == (30, 130)
    counter.finish()
    drain(counter, log)
    assert (counter.state.closed_through_ms, counter.state.offset) == (60, 300), "nothing open: behind the last batch"


def test_a_checkpoint_moves_the_position_and_nothing_else():
    counter = counter_of(plan_of())
    assert counter.checkpoint() is None
    bad = [Row(4, 7, 7, None, 0, Reason.ITEM_MISSING)]
    counter.add(columns_of(bad, counter.keys, next_offset=9))
    step = counter.checkpoint()
    assert step.publish == ()
    state = state_in(step)
    assert (state.offset, state.clock_ms, state.closed_through_ms) == (9, 7, 0)
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


@st.composite
def histories(draw):
    """(mode, plan arguments, rows, first batching, second batching, commit failures)."""
    arguments = {
        "size": 10,
        "grace": draw(st.sampled_from([0, 7, 25])),
        "skew": draw(st.sampled_from([0, 15])),
        "start": draw(st.sampled_from([0, 30])),
        "max_transaction_bytes": draw(st.sampled_from([1, 200, 500, HUGE])),
    }
    rows, now = [], draw(st.integers(0, 40))
    as_file = draw(st.booleans())
    for offset in range(draw(st.integers(1, 40))):
        now = max(0, now + draw(st.one_of(st.integers(-9, 9), st.integers(0, 25))))
        event = now if as_file else max(0, now + draw(st.integers(-30, 20)))
        reason = draw(st.sampled_from([0] * 5 + [Reason.ITEM_MISSING]))
        rows.append(Row(2 * offset, now, event, draw(st.sampled_from(KEYS)), draw(st.integers(0, 31)), int(reason)))
    cuts = st.lists(st.integers(0, len(rows)), max_size=10)
    return draw(st.sampled_from(list(MODES))), arguments, rows, draw(cuts), draw(cuts), draw(st.integers(0, 2**32))


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
        assert counter.state.closed_through_ms == last.state.closed_through_ms
        assert counter.state.span.cursor is None


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


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
def test_a_restart_after_any_commit_goes_on_as_if_nothing_had_happened(history, kills):
    assert_restarts_agree(history, kills=kills)


@settings(max_examples=60, deadline=None)
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
        return super()._commit(replace(state, clock_ms=self._schedule.clock_ms))


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
    assert (state.closed_through_ms, state.span.cursor, state.offset, state.clock_ms) == (0, BY_BYTES[0], 1, 21)
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
    assert (state.closed_through_ms, state.span.cursor, state.offset, state.clock_ms) == (10, None, 1, 3)


# Idle time


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
    assert (counter.store.starts(), list(counter.keys)) == ([], [])
    assert (counter.state.closed_through_ms, counter.state.clock_ms, counter.state.offset) == (50, 22, 2)


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
    assert (counter.state.closed_through_ms, counter.state.clock_ms) == (10, 3)
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


@settings(max_examples=100, deadline=None)
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


# Limits: each stops the worker before anything is counted wrongly, and names its setting


def test_a_jump_of_the_clock_is_bounded():
    plan = plan_of(max_gap_windows=5)
    counter = counter_of(plan, at((5, "a", 1)))
    before = counter.state
    with pytest.raises(StateError, match=r"offset 2: .* jumps by 51ms, more than limits.max_gap_windows = 5"):
        counter.add(columns_of([Row(1, 6, 6, "a", 2), Row(2, 57, 57, "a", 3)], counter.keys))
    assert (counter.state, counter.step()) == (before, None)
    assert counter.store.get(0).first_offset == 0
    assert len(counter.store.get(0).key_ids()) == 1
    assert counter.store.raw_bytes() == 12, "nothing of the batch was counted"
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


def invalid(first, count, reason=Reason.KEY_MISSING):
    return [Row(first + i, 5, 5, None, 0, int(reason)) for i in range(count)]


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


@settings(max_examples=150, deadline=None)
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


# The committed state as bytes


STATE = replace(moved(first_state(plan_of()), closed_through_ms=50, cursor=b"\x91\xa1a\xff"), clock_ms=61, offset=17)


@pytest.mark.parametrize(
    "state", [STATE, moved(STATE, cursor=None), replace(moved(STATE, cursor=b""), declared="ab", source="ü")]
)
def test_a_state_survives_its_bytes(state):
    encoded = encode_state(state)
    assert encoded.decode("ascii" if state.source == SOURCE else "utf-8")
    assert decode_state(Commit(0, state.offset, encoded)) == state


def damaged():
    good = msgspec.json.decode(encode_state(STATE))
    yield "empty", b""
    yield "not JSON", b"\xff\xfe"
    yield "not text", encode_state(STATE)[:-1] + b"\xff"
    yield "cut off", encode_state(STATE)[:-1]
    yield "something behind", encode_state(STATE) + b"x"
    yield "an object", b"{}"
    yield "a field too few", msgspec.json.encode(good[:-1])
    yield "a field too many", msgspec.json.encode([*good, 1])
    for place in range(len(good)):
        wrong = good[:]
        wrong[place] = [] if place else "1"
        yield f"field {place} of a wrong type", msgspec.json.encode(wrong)
    yield "a float for an integer", msgspec.json.encode([*good[:7], 50.5, *good[8:]])
    yield "text for an integer", msgspec.json.encode([*good[:7], "50", *good[8:]])


@pytest.mark.parametrize(("name", "metadata"), [pytest.param(*case, id=case[0]) for case in damaged()])
def test_a_state_that_cannot_be_read_stops(name, metadata):
    with pytest.raises(StateError, match="cannot be read"):
        decode_state(Commit(0, STATE.offset, metadata))


def test_a_state_of_another_version_stops():
    fields = msgspec.json.decode(encode_state(STATE))
    fields[0] += 1
    with pytest.raises(StateError, match=r"version 2, this release reads 1"):
        decode_state(Commit(0, STATE.offset, msgspec.json.encode(fields)))


def test_a_state_for_another_offset_stops():
    with pytest.raises(StateError, match=r"committed offset 18 differs from its state's 17"):
        decode_state(Commit(0, 18, encode_state(STATE)))


# Going on with a state


def closed(plan, through=50, cursor=None):
    digest = state_module.declared_digest(plan, through)
    return replace(moved(first_state(plan), closed_through_ms=through, cursor=cursor), declared=digest)


def test_the_same_plan_goes_on():
    for keys in MODES.values():
        plan = plan_of(keys)
        require_continuation(closed(plan), plan, SOURCE, 0)
        require_continuation(first_state(plan), replace(plan, keys=PRESENCE), SOURCE, 0)


@pytest.mark.parametrize(
    ("change", "source", "message"),
    [
        (
            {"fingerprint": "ffff"},
            SOURCE,
            r"fingerprint 0123456789abcdef then, ffff now.*raise pipeline.epoch.*00.050Z",
        ),
        ({"partitions": 2}, SOURCE, r"had 1 partitions and now has 2.*[Rr]aise pipeline.epoch.*00.050Z"),
        ({}, "other", r"the input is 'other', the state is of 'input'"),
        (
            {"windows": plan_of(start=10).windows},
            SOURCE,
            r"window.start is 1970-01-01T00:00:00.010Z, this epoch began at 1970-01-01T00:00:00Z",
        ),
    ],
    ids=["fingerprint", "partitions", "source", "start"],
)
def test_a_changed_plan_is_refused_with_the_remedy(change, source, message):
    plan = plan_of()
    with pytest.raises(StateError, match=f"(?s){message}"):
        require_continuation(closed(plan), replace(plan, **change), source, 0)


def test_a_declared_list_binds_from_its_first_release_on():
    """Nothing is drawn: any list goes on, whatever an earlier version wrote for it."""
    plan = plan_of(declared("a"), start=50)
    assert state_module.declared_digest(plan, 50) == ""
    assert len({state_module.declared_digest(plan_of(keys, start=50), 60) for keys in MODES.values()}) == 2
    for written in ("", "ab" * 16):
        state = replace(first_state(plan), declared=written)
        require_continuation(state, plan, SOURCE, 0)
        require_continuation(state, replace(plan, keys=declared("b")), SOURCE, 0)
        with pytest.raises(
            StateError, match=r"partition 0: privacy.declared changed.*at or after 1970-01-01T00:00:00.060Z"
        ):
            require_continuation(moved(state, cursor=b""), plan, SOURCE, 0)


def test_the_digest_of_a_list_is_the_one_that_is_in_states_of_earlier_versions():
    plan = plan_of(declared("a", since={"b": 60, "c": 70}), start=50)
    assert state_module.declared_digest(plan, 70) == "0caf55d5778341cb6bffec82be0902c2"


DECLARED = declared("a", "b", since={"c": 30, "d": 50, "e": 70})


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(declared("a", since={"c": 30, "d": 50, "e": 70}), id="withdrawn"),
        pytest.param(declared("a", "b", "x", since={"c": 30}), id="added to closed windows"),
        pytest.param(declared("a", "b", since={"c": 30, "x": 40}), id="added to the last closed window"),
        pytest.param(declared("a", "b", since={"c": 20}), id="earlier"),
        pytest.param(declared("a", "b", since={"c": 50}), id="later"),
    ],
)
def test_a_changed_past_of_declared_keys_is_refused(keys):
    plan = plan_of(DECLARED)
    with pytest.raises(StateError, match=r"(?s)privacy.declared changed.*at or after 1970-01-01T00:00:00.050Z"):
        require_continuation(closed(plan), replace(plan, keys=keys), SOURCE, 0)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(declared("b", "a", since={"c": 30}), id="later keys taken back, another order"),
        pytest.param(declared("a", "b", since={"c": 30, "x": 50, "e": 60}), id="new ones, and another time"),
    ],
)
def test_the_future_of_declared_keys_may_change(keys):
    plan = plan_of(DECLARED)
    require_continuation(closed(plan), replace(plan, keys=keys), SOURCE, 0)


def test_a_window_decided_in_part_is_past_for_declared_keys():
    """With a cursor in window 50, its keys are fixed: one withdrawn is published, one added would be passed over."""
    plan = plan_of(declared("b", since={"c": 50}), max_transaction_bytes=1)
    rows = at((5, "b", 1), (65, "b", 1))
    log, _, _ = run(plan, [rows], Tape(1), finish=False)
    cursors = {state_in(step).closed_through_ms: state_in(step) for step in log.steps if state_in(step).span.cursor}
    state = cursors[50]
    require_continuation(state, plan, SOURCE, 0)
    for keys in (declared("b"), declared("b", since={"c": 50, "a": 50})):
        with pytest.raises(StateError, match=r"(?s)privacy.declared changed.*at or after 1970-01-01T00:00:00.060Z"):
            require_continuation(state, replace(plan, keys=keys), SOURCE, 0)
    require_continuation(state, replace(plan, keys=declared("b", since={"c": 50, "a": 60})), SOURCE, 0)
    with pytest.raises(StateError, match=r"not before 1970-01-01T00:00:00.060Z"):
        require_continuation(state, replace(plan, fingerprint="ff"), SOURCE, 0)


def test_naive_counting_agrees_with_the_whole_counter_over_all_modes():
    """The same rows through plain sets: what is in each release, in every mode."""
    rules = Rules(10, 0, 0, 0, 1 << 62)
    _, windows, _ = naive_count(rules, BUSY)
    flat = {(start, encode_key(key)): cells for start, keys in windows.items() for key, cells in keys.items()}
    presence, _, _ = run(plan_of(), [BUSY], Same(255))
    assert contents(presence.records) == flat
    selected, _, _ = run(plan_of(SELECTED), [BUSY], Same(0))
    assert contents(selected.records, inverted=True) == flat
    everything, _, _ = run(plan_of(declared(*KEYS, "z")), [BUSY], Same(255))
    found = contents(everything.records)
    assert {place: cells for place, cells in found.items() if cells} == flat
    assert len(found) == 21 * 7
    assert covered(everything.records) == (0, 210)
    assert all(a.timestamp_ms <= b.timestamp_ms for a, b in pairwise(everything.records))
