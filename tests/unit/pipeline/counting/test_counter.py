"""The counting pipeline of one partition: what is published in which order, and in which pieces."""

from itertools import pairwise

import numpy as np
import pytest
from reference.naive_windows import Row, Rules, naive_count
from support.counting_cases import BUSY, BY_BYTES, GAP, HUGE, KEYS, MODES, at, counter_of, marks, shown, sizes_of
from support.counting_runs import (
    FINGERPRINT,
    PRESENCE,
    SELECTED,
    Same,
    Tape,
    columns_of,
    contents,
    covered,
    declared,
    markers_of,
    plan_of,
    releases_of,
    run,
    state_in,
)

from sfm_stream.errors import StateError
from sfm_stream.privacy.key_rules import SelectedKeys
from sfm_stream.types import NO_TIME, Reason, Step
from sfm_stream.units import SKETCHES
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import MARKER_KEY, encode_key

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
        "removed", plan.spans[0].flip_threshold, plan.spans[0].shape, "xxh64",
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
    assert [state_in(step).base.closed_through_ms for step in log.steps] == [
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
    assert counter.state.base.closed_through_ms == 30


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
    assert counter.base.store.starts() == [0, 10]
    assert set(counter.keys) == {"a", "b"}
    counter.committed(step)
    assert counter.base.store.starts() == [10]
    assert set(counter.keys) == {"b"}


# Pieces


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
        if state_in(step).base.cursor is not None
    ]
    assert cut or limit > 300 or mode == "selected"
    assert all(size >= limit for size in cut), "no piece is cut before it is full"
    assert counter.state.base.cursor is None


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
        assert through == state.base.closed_through_ms
        if state.base.cursor is not None:
            last = releases_of(step.publish)[-1]
            assert (last.key, decode(last.value).window.start_ms) == (state.base.cursor, state.base.closed_through_ms)


def test_the_cursor_passes_keys_that_were_withheld():
    """A withheld key is decided as well: a restart must not give it a second chance."""
    table = np.array([0, 0, (1 << 64) - 1], np.uint64)  # one cell: never; two: as good as always
    keys = SelectedKeys(SELECTED.epsilon, SELECTED.delta, table)
    rows = at((1, "a", 1), (1, "a", 2), (1, "b", 1), (1, "c", 1), (1, "c", 2), (15, "x", 1))
    log, _, _ = run(plan_of(keys, max_transaction_bytes=1), [rows], Tape(1), finish=False)
    assert [shown(step.publish) for step in log.steps] == [
        [(0, encode_key("a"))], [(0, encode_key("c"))], [("marker", 0, 10)],
    ]  # fmt: skip
    assert [state_in(step).base.cursor for step in log.steps] == [encode_key("a"), encode_key("c"), None]


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
