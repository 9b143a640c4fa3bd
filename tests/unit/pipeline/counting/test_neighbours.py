"""The whole pipeline on neighbouring inputs, on the same tape of coins: one item moves one cell of one release, and its
noisy count, where it has one, by one.

Neighbours differ by all records of one item under one key in one window. Where arrival is event time (files,
CreateTime), they are blanked in place: the item is null, the record and its time stay. Where the log stamps arrival
(LogAppendTime), they are removed; then the log may end earlier, so that the last windows are not closed in one run, and
what both have closed is compared. What is drawn from the tape depends on the coins alone, so with one tape both runs
flip the same cells, and every difference in the output comes from the data. Then the privacy of the whole follows
from that of one flip (tests/unit/privacy/test_flip_exact.py).

The check takes the pipeline as a parameter: test_neighbour_mutants.py has wrong pipelines that it must catch.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.counting_runs import (
    PRESENCE,
    SELECTED,
    Log,
    Same,
    Tape,
    contents,
    drain,
    first_state,
    plan_of,
    table_of,
)
from support.neighbour_runs import (
    DECLARED,
    FILE,
    FILE_LAST,
    FIRST_OF_ITS_KEY,
    FORM,
    LAST,
    ORDER,
    PASSES,
    PASSING,
    REAL,
    STAMPED,
    Event,
    Z,
    assert_alike,
    blanked,
    cut,
    neighbours,
    places_to_cut,
    removed,
    run,
    same_places,
)
from support.neighbours import assert_one_bit, assert_one_cell

from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd, Reason
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import MARKER_KEY, encode_key


@settings(max_examples=120)
@given(neighbours(stamped=False), st.integers(0, 2**32))
def test_blanked_in_place_declared(case, seed):
    arguments, batches, target = case
    assert_alike(REAL, plan_of(DECLARED, **arguments), batches, blanked(batches, target), seed)


@settings(max_examples=80)
@given(neighbours(stamped=False), st.integers(0, 2**32))
def test_blanked_in_place_presence_is_public(case, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(PRESENCE, **arguments), blanked(batches, target)
    assume(same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed)


@settings(max_examples=80)
@given(neighbours(stamped=True), st.integers(0, 2**32))
def test_removed_declared(case, seed):
    arguments, batches, target = case
    plan = plan_of(DECLARED, unit="removed", **arguments)
    assert_alike(REAL, plan, batches, removed(batches, target), seed)


@settings(max_examples=80)
@given(neighbours(stamped=True), st.integers(0, 2**32))
def test_removed_presence_is_public(case, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(PRESENCE, unit="removed", **arguments), removed(batches, target)
    assume(same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed)


@settings(max_examples=80)
@given(neighbours(stamped=True, same_end=False), st.sampled_from([DECLARED, PRESENCE]), st.integers(0, 2**32))
def test_removed_at_the_end_of_the_log_leaves_the_beginning_of_what_is_published(case, keys, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(keys, unit="removed", **arguments), removed(batches, target)
    assume(keys is DECLARED or same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed, same_end=False)


@settings(max_examples=80)
@given(st.booleans().flatmap(neighbours), st.sampled_from(["declared", "selected", "presence"]), st.integers(1, 255))
def test_every_other_release_is_byte_equal_under_constant_coins(case, mode, digit):
    """Coins that show the same digit for ever do not depend on what was drawn before: selection can be compared too.

    Not 0 for ever, with which the noise of a count has no end.

    The target's own release may come or go (selection decides on its popcount) or change in one cell. No other may.
    """
    arguments, batches, target = case
    stamped = batches[0].arrivals() is not None
    plan = plan_of({"declared": DECLARED, "selected": SELECTED, "presence": PRESENCE}[mode], **arguments)
    logs = [
        run(REAL, plan, part, Same(digit)) for part in (batches, (removed if stamped else blanked)(batches, target))
    ]
    one, other = ({(r.key, r.timestamp_ms): r.value for r in log.releases} for log in logs)
    place = encode_key(target[0]), (target[2] + 1) * target[3]
    assert {p: v for p, v in one.items() if p != place} == {p: v for p, v in other.items() if p != place}
    if place in one and place in other:
        assert_one_bit(decode(one[place]), decode(other[place]))
    else:
        assert mode != "declared" or (place in one) == (place in other)
    markers = [[r.value for r in log.records if r.key == MARKER_KEY] for log in logs]
    assert markers[0] == markers[1]


# The item whose event closes a window


@pytest.mark.parametrize("keys", [DECLARED, PRESENCE], ids=["declared", "presence"])
@pytest.mark.parametrize("seed", range(3))
def test_an_item_whose_event_closes_a_window(keys, seed):
    for places in places_to_cut(FILE):
        for events, target in ((FILE, Z), (FILE_LAST, LAST), (ORDER, FIRST_OF_ITS_KEY)):
            batches = cut(events, places)
            assert_alike(REAL, plan_of(keys), batches, blanked(batches, target), seed)
        batches = cut(STAMPED, places)
        plan = plan_of(keys, unit="removed", skew=20)
        assert_alike(REAL, plan, batches, removed(batches, Z), seed)


@pytest.mark.parametrize("keys", [DECLARED, PRESENCE], ids=["declared", "presence"])
@pytest.mark.parametrize("grace", [0, 10])
def test_a_removed_record_that_was_the_first_to_pass_a_border(keys, grace):
    """The next one passes several at once. It publishes no less, and in the same pieces."""
    for places in places_to_cut(PASSES):
        batches = cut(PASSES, places)
        neighbour = removed(batches, PASSING)
        assert_alike(REAL, plan_of(keys, unit="removed", skew=20, grace=grace), batches, neighbour)
    last = cut(PASSES[:3], [1])
    assert_alike(REAL, plan_of(keys, unit="removed", skew=20), last, removed(last, PASSING), same_end=False)


def test_the_closing_item_does_close_and_does_count():
    """Otherwise the test above would say nothing."""
    for events, plan in ((FILE, plan_of()), (STAMPED, plan_of(skew=20))):
        batches = cut(events, [3, 4])
        log = run(REAL, plan, batches, Same(255))
        neighbour = run(REAL, plan, (removed if events is STAMPED else blanked)(batches, Z), Same(255))
        with_z, without = contents(log.records), contents(neighbour.records)
        assert with_z != without
        assert {place for place in with_z if with_z[place] != without[place]} == {(20, encode_key("a"))}
        counter = WindowCounter(plan, 0, first_state(plan), keys := table_of(plan), Same(255))
        extractor = PythonExtractor(format_of(FORM), plan.spans[0].shape, keys=keys)
        counter.add(extractor.columns(batches[:1]))
        drain(counter, Log())
        assert counter.add(extractor.columns(batches[1:2])).counts == {}
        assert counter.step() is not None, "the item alone makes a window due"
        assert counter.add(extractor.columns(batches[2:3])).counts[Reason.LATE] >= 1


# How the input is cut into batches


def test_markers_do_not_tell_how_the_input_was_cut(tmp_path):
    """A real file, read in real chunks: a longer item moves the border of a chunk between two closes."""
    outputs = []
    for item in ("z" * 40, None):
        events = [
            Event(5, "a", "x"),
            Event(5, "a", item),
            Event(15, "a", "x"),
            Event(25, "a", "x"),
            Event(35, "a", "x"),
        ]
        path = tmp_path / f"{item}.jsonl"
        path.write_bytes(b"".join(event.value + b"\n" for event in events))
        lines = LineInput(str(path), complete=True, chunk_bytes=128)
        batches = []
        while not isinstance(batch := lines.read(0), InputEnd):
            batches += [] if batch is None else [batch]
        lines.close()
        outputs.append(run(REAL, plan_of(DECLARED), batches, Tape(1)).records)
    assert_one_cell(*outputs)
