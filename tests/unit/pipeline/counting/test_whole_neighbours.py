"""Neighbouring files, counted whole on one tape of coins: one item moves one cell of one release.

Where both borders are configured all records of the item are *removed*, the first and the last of the file among them.
Where the data gives a border they are *blanked in place*: their times stay. The files are real, read in chunks.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
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
    declared,
    drain,
    first_state,
    moved,
    table_of,
)
from support.neighbours import assert_one_bit, assert_one_cell, assert_one_draw
from support.whole_runs import whole_plan

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.pipeline.counting.schedule import Schedule
from sfm_stream.pipeline.counting.whole import WholeCounter
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import NO_TIME, InputEnd, Reason
from sfm_stream.windows.whole import Whole
from sfm_stream.wire.codec import decode
from sfm_stream.wire.keys import MARKER_KEY, encode_key

FORM = EventSchema(key=("k",), item="i", time="t", time_unit="ms", earliest_ms=0, latest_ms=1000)
DECLARED = declared("a", "b", 0, "unseen", since={"": 40})
MODES = {"declared": DECLARED, "presence": PRESENCE, "selected": SELECTED}
FIXED = {"start": 0, "until": 100}
HUGE = 1 << 40
JUNK = [
    b"{",
    b"[]",
    b"\xff",
    b'{"k": "a", "t": 30}',
    b'{"t": "x"}',
    b'{"i": 1, "t": 99}',
    b'{"k": 1.5, "i": 1, "t": 7}',
]


def line(time, key, item):
    return json.dumps({"k": key, "i": item, "t": time}).encode()


def hit(record, target):
    key, item, window = target
    return isinstance(record, tuple) and record[1:] == (key, item) and record[0] // 10 == window


def removed(records, target):
    return [record for record in records if not hit(record, target)]


def blanked(records, target):
    return [(record[0], record[1], None) if hit(record, target) else record for record in records]


def published(folder: Path, plan, records, coins, counter=WholeCounter, chunk_bytes=64) -> Log:
    """Write the file, read it, count it, and commit every second step only the second time."""
    path = folder / "in.jsonl"
    path.write_bytes(b"".join((r if isinstance(r, bytes) else line(*r)) + b"\n" for r in records))
    lines = LineInput(str(path), complete=True, whole=True, chunk_bytes=chunk_bytes)
    keys, log, attempts = table_of(plan), Log(), iter(range(1 << 30))
    extractor = PythonExtractor(format_of(FORM), plan.spans[0].shape, keys=keys)
    counting = counter(plan, 0, first_state(plan), keys, coins)
    while not isinstance(batch := lines.read(0), InputEnd):
        if batch is not None:
            counting.add(extractor.columns([batch]))
            drain(counting, log)
    lines.close()
    counting.finish()
    drain(counting, log, coins if isinstance(coins, Tape) else None, fails=lambda: next(attempts) % 2)
    assert_one_draw(log)
    return log


@st.composite
def files(draw):
    """(records, target): the target is in the file."""
    records = draw(
        st.lists(
            st.tuples(st.integers(0, 99), st.sampled_from(["b", "a", 0, ""]), st.integers(0, 4))
            | st.sampled_from(JUNK),
            min_size=1,
            max_size=25,
        )
    )
    real = [record for record in records if isinstance(record, tuple)]
    assume(real)
    # The first and the last of the file more often than others.
    time, key, item = draw(st.sampled_from([real[0], real[-1], *real]))
    return records, (key, item, time // 10)


def same_places(folder, plan, left, right):
    """Other items keep every key present: the case in which presence_is_public promises anything."""
    plan = replace(plan, limits=replace(plan.limits, max_transaction_bytes=HUGE))
    one, other = (contents(published(folder, plan, records, Same(255)).records) for records in (left, right))
    return set(one) == set(other)


def assert_alike(folder, plan, left, right, seed=1, counter=WholeCounter):
    logs = [published(folder, plan, records, Tape(seed), counter) for records in (left, right)]
    assert_one_cell(logs[0].records, logs[1].records)
    assert logs[0].positions[-1:] == logs[1].positions[-1:], "coins: the data decides how many are drawn"
    assert [len(step.publish) for step in logs[0].steps] == [len(step.publish) for step in logs[1].steps], "steps"


@settings(max_examples=150)
@given(files(), st.sampled_from(["declared", "presence"]), st.sampled_from([1, 400, HUGE]), st.integers(0, 2**32))
def test_removed_between_configured_borders(tmp_path_factory, case, mode, room, seed):
    records, target = case
    folder, plan = tmp_path_factory.getbasetemp(), whole_plan(MODES[mode], max_transaction_bytes=room, **FIXED)
    assert plan.unit == "removed"
    other = removed(records, target)
    assume(mode == "declared" or same_places(folder, plan, records, other))
    assert_alike(folder, plan, records, other, seed)


@settings(max_examples=100)
@given(
    files(),
    st.sampled_from(["declared", "presence"]),
    st.sampled_from([{}, {"start": 20}, {"until": 70}]),
    st.sampled_from([1, HUGE]),
    st.integers(0, 2**32),
)
def test_blanked_where_the_data_gives_a_border(tmp_path_factory, case, mode, borders, room, seed):
    records, target = case
    folder, plan = tmp_path_factory.getbasetemp(), whole_plan(MODES[mode], max_transaction_bytes=room, **borders)
    assert plan.unit == "blanked"
    other = blanked(records, target)
    assume(mode == "declared" or same_places(folder, plan, records, other))
    assert_alike(folder, plan, records, other, seed)


@settings(max_examples=120)
@given(files(), st.sampled_from(sorted(MODES)), st.booleans(), st.integers(0, 255))
def test_every_other_release_is_byte_equal_under_constant_coins(tmp_path_factory, case, mode, fixed, digit):
    """So that selection can be compared too: the target's own release may come, go or change in one cell."""
    records, target = case
    folder, plan = tmp_path_factory.getbasetemp(), whole_plan(MODES[mode], **(FIXED if fixed else {}))
    logs = [
        published(folder, plan, part, Same(digit))
        for part in (records, (removed if fixed else blanked)(records, target))
    ]
    one, other = ({(r.key, r.timestamp_ms): r.value for r in log.releases} for log in logs)
    place = encode_key(target[0]), (target[2] + 1) * 10
    assert {p: v for p, v in one.items() if p != place} == {p: v for p, v in other.items() if p != place}
    if place in one and place in other:
        assert_one_bit(decode(one[place]), decode(other[place]))
    else:
        assert mode != "declared" or (place in one) == (place in other)
    markers = [[r.value for r in log.records if r.key == MARKER_KEY] for log in logs]
    assert markers[0] == markers[1]


# Wrong pipelines: each is caught by the same check


class ClockOfTheFile(WholeCounter):
    """Records behind the latest time by more than a window do not count: the way of order "time"."""

    latest = -1

    def add(self, columns):
        clocks = np.maximum(np.maximum.accumulate(columns.event_ms), self.latest)
        self.latest = int(clocks[-1]) if len(clocks) else self.latest
        late = (columns.event_ms + 10 < clocks) & (columns.reasons == Reason.OK)
        return super().add(replace(columns, reasons=np.where(late, np.uint8(Reason.LATE), columns.reasons)))


class WindowsOfTheData(WholeCounter):
    """The first and the last record decide, though both borders are configured."""

    @property
    def windows(self):
        windows = super().windows
        return Whole(windows.grid, 0, 0, 0, windows.end_ms, None, False, None)

    def finish(self):
        start, end = min(self._occupied, default=0), max(self._occupied, default=-10) + 10
        self.state = replace(moved(self.state, closed_through_ms=start), start_ms=start)
        self.base.begin_at(replace(self.windows, start_ms=start), self.state.base, NO_TIME)
        self.base.schedule = Schedule(self.windows, start, end)


class WindowsOfWhatCounts(WholeCounter):
    """Only records that count say which windows there are: a blanked one takes its window along."""

    def _note_times(self, columns, starts):
        super()._note_times(columns, np.where(columns.reasons == Reason.OK, starts, -10))


class ArrivalOrder(WholeCounter):
    """Releases in the order in which the file first holds their keys."""

    def finish(self):
        super().finish()
        listed = self.base.draw._candidates
        self.base.draw._candidates = lambda window, content: sorted(
            listed(window, content), key=lambda pair: (pair[1], pair[0])
        )


FILE = [(5, "b", "x"), (25, "b", "z"), (7, "a", "w"), (8, "b", "y"), (15, "a", "x"), (27, "b", "y"), (63, "a", "q")]
MUTANTS = {
    "a clock": (ClockOfTheFile, FIXED, removed, ("b", "z", 2), "messages|releases|cells"),
    "windows of the data": (WindowsOfTheData, FIXED, removed, ("a", "q", 6), "messages"),
    "windows of what counts": (WindowsOfWhatCounts, {}, blanked, ("a", "q", 6), "messages"),
}


@pytest.mark.parametrize(("counter", "borders", "neighbour", "target", "problem"), MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_pipeline_is_caught(tmp_path, counter, borders, neighbour, target, problem):
    plan, other = whole_plan(DECLARED, **borders), neighbour(FILE, target)
    assert other != FILE
    assert_alike(tmp_path, plan, FILE, other)
    with pytest.raises(AssertionError, match=f"^({problem})"):
        assert_alike(tmp_path, plan, FILE, other, counter=counter)


def test_an_order_of_keys_that_follows_the_file_is_caught(tmp_path):
    records = [(1, "b", "first"), (2, "a", "x"), (3, "b", "y")]
    plan, other = whole_plan(PRESENCE, **FIXED), removed(records, ("b", "first", 0))
    assert_alike(tmp_path, plan, records, other)
    with pytest.raises(AssertionError, match=r"messages|releases"):
        assert_alike(tmp_path, plan, records, other, counter=ArrivalOrder)


def test_without_borders_removal_is_not_promised_and_would_show(tmp_path):
    """Why the unit is "blanked" there: the last record takes its window with it."""
    plan, other = whole_plan(DECLARED), removed(FILE, ("a", "q", 6))
    with pytest.raises(AssertionError, match="messages"):
        assert_alike(tmp_path, plan, FILE, other)
