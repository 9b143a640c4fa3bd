"""The whole pipeline on neighbouring inputs, on the same tape of coins: one item moves one cell of one release.

Neighbours differ by all records of one item under one key in one window. Where arrival is event time (files,
CreateTime), they are blanked in place: the item is null, the record and its time stay. Where the log stamps arrival
(LogAppendTime), they are removed; then the log may end earlier, so that the last windows are not closed in one run, and
what both have closed is compared. What is drawn from the tape depends on the coins alone, so with one tape both runs
flip the same cells, and every difference in the output comes from the data. Then the privacy of the whole follows
from that of one flip (tests/unit/privacy/test_flip_exact.py).

The check takes the pipeline as a parameter; the mutants below are wrong pipelines that it must catch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

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
    plan_of,
    releases_of,
    table_of,
)
from support.neighbours import assert_one_bit, assert_one_cell, assert_one_draw

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import Limits
from sfm_stream.pipeline.counting.releases import MARKER_KEY, ReleaseDraw
from sfm_stream.pipeline.in_hand import StepInHand
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import NO_TIME, EventColumns, InputEnd, Reason
from sfm_stream.wire.codec import decode, encode
from sfm_stream.wire.keys import encode_key

FORM = EventSchema(key=("k",), item="i", time="t", time_unit="ms", earliest_ms=0, latest_ms=1 << 40)
HUGE = 1 << 40


class Event(NamedTuple):
    """One record. arrival None: it arrives at its event time. text: given instead of JSON made of the fields."""

    time: int
    key: object
    item: object
    arrival: int | None = None
    text: bytes | None = None

    @property
    def value(self) -> bytes:
        return (
            self.text if self.text is not None else json.dumps({"k": self.key, "i": self.item, "t": self.time}).encode()
        )


@dataclass
class Batch:
    """Records by offset, as a transport brings them; some may be missing in between."""

    first: int
    next_offset: int
    records: list[tuple[int, Event]]
    partition: int = 0

    @property
    def count(self):
        return len(self.records)

    def offsets(self):
        return np.array([offset for offset, _ in self.records], np.int64)

    def arrivals(self):
        stamps = [event.arrival for _, event in self.records]
        return None if all(stamp is None for stamp in stamps) and stamps else np.array(stamps, np.int64)

    def keys(self):
        return [None] * self.count

    def values(self):
        return [event.value for _, event in self.records]


@dataclass(frozen=True)
class System:
    """A pipeline under test: what stands between extraction and counting, and the counter."""

    counter: type[WindowCounter] = WindowCounter
    between: Callable[[EventColumns], EventColumns] = lambda columns: columns


REAL = System()


def run(system, plan, batches, coins, closing=True) -> Log:
    """Extract, count, and after each batch (or closing=False: at the end only) perform what is due.

    The commit of every second step fails once and is tried again.
    """
    keys, log, attempts = table_of(plan), Log(), iter(range(1 << 30))
    extractor = PythonExtractor(format_of(FORM), plan.span.shape, keys=keys)
    counter = system.counter(plan, 0, first_state(plan), keys, coins)
    tape = coins if isinstance(coins, Tape) else None

    def perform():
        drain(counter, log, tape, fails=lambda: next(attempts) % 2)

    for batch in batches:
        counter.add(system.between(extractor.columns([batch])))
        if closing:
            perform()
    counter.finish()
    perform()
    return log


# What must hold


def assert_alike(system, plan, left, right, seed=1, same_end=True):
    """Runs neighbours on one tape. same_end False: one may have closed more windows at its end."""
    logs = [run(system, plan, batches, Tape(seed)) for batches in (left, right)]
    for log in logs:
        assert_one_draw(log)
    shorter = min((log.records for log in logs), key=len)
    if same_end:
        assert_one_cell(logs[0].records, logs[1].records)
        assert logs[0].positions[-1:] == logs[1].positions[-1:], "coins: the data decides how many are drawn"
    else:
        assert_one_cell(*(log.records[: len(shorter)] for log in logs))
        assert not shorter or shorter[-1].key == MARKER_KEY, "messages: one run ends inside a window"


# Neighbours


def hit(event, target):
    key, item, window, size = target
    return event.text is None and (event.key, event.item) == (key, item) and event.time // size == window


def cut(events, places):
    """Batches of consecutive offsets."""
    borders = sorted({0, len(events), *(place for place in places if 0 < place < len(events))})
    numbered = list(enumerate(events))
    return [Batch(a, b, numbered[a:b]) for a, b in pairwise(borders)]


def blanked(batches, target):
    """The item of every record of the target is null; nothing else moves."""
    return [
        replace(batch, records=[(o, e._replace(item=None) if hit(e, target) else e) for o, e in batch.records])
        for batch in batches
    ]


def removed(batches, target):
    """No record of the target is there; offsets stay, as in a log."""
    return [replace(batch, records=[(o, e) for o, e in batch.records if not hit(e, target)]) for batch in batches]


JUNK = [
    *(b"", b"{", b"[]", b"\xff", b"\x00\x00\x00\x00\x01x"),
    *(b'{"k": "a", "t": 30}', b'{"t": "x"}', b'{"i": 1, "t": 99}', b'{"k": true, "i": 1, "t": 60}'),
    *(b'{"k": "a", "i": 1.5, "t": 50}', b'{"k": "a", "i": 1, "i": 2, "t": 70}'),
]


@st.composite
def neighbours(draw, stamped, same_end=True):
    """(plan arguments, batches, target): one item that is there, under one key in one window.

    stamped: the log gives the arrival times. same_end: its last record is not the target's.
    """
    size = 10
    arguments = {
        "size": size,
        "grace": draw(st.sampled_from([0, 3, 20])),
        "skew": draw(st.sampled_from([0, 15])) if stamped else 0,
        "max_transaction_bytes": draw(st.sampled_from([1, 400, HUGE])),
    }
    events, now = [], draw(st.integers(0, 30))
    for _ in range(draw(st.integers(1, 25))):
        now = now + draw(st.integers(0, 14)) if stamped else max(0, now + draw(st.integers(-8, 14)))
        time = max(0, now + draw(st.integers(-12, 15))) if stamped else now
        arrival = now if stamped else None
        if draw(st.integers(0, 9)) == 0:
            events.append(Event(time, None, None, arrival, draw(st.sampled_from(JUNK))))
        else:
            events.append(Event(time, draw(st.sampled_from(["b", "a", 0, ""])), draw(st.integers(0, 4)), arrival))
    real = [event for event in events if event.text is None]
    assume(real)
    chosen = draw(st.sampled_from(real))
    batches = cut(events, draw(st.lists(st.integers(0, 25), max_size=5)))
    if stamped and same_end:
        # A later record ends both inputs, so that both clocks arrive at the same place.
        last = Event(now + 40, "end", "end", now + 40)
        batches.append(Batch(len(events), len(events) + 1, [(len(events), last)]))
    return arguments, batches, (chosen.key, chosen.item, chosen.time // size, size)


DECLARED = declared("a", "b", 0, "unseen", since={"": 40})


def same_places(plan, left, right):
    """Other items keep every key present: the case in which presence_is_public promises anything."""
    logs = [run(REAL, replace(plan, limits=Limits()), batches, Same(255)) for batches in (left, right)]
    return set(contents(logs[0].records)) == set(contents(logs[1].records))


@settings(max_examples=120, deadline=None)
@given(neighbours(stamped=False), st.integers(0, 2**32))
def test_blanked_in_place_declared(case, seed):
    arguments, batches, target = case
    assert_alike(REAL, plan_of(DECLARED, **arguments), batches, blanked(batches, target), seed)


@settings(max_examples=80, deadline=None)
@given(neighbours(stamped=False), st.integers(0, 2**32))
def test_blanked_in_place_presence_is_public(case, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(PRESENCE, **arguments), blanked(batches, target)
    assume(same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed)


@settings(max_examples=80, deadline=None)
@given(neighbours(stamped=True), st.integers(0, 2**32))
def test_removed_declared(case, seed):
    arguments, batches, target = case
    plan = plan_of(DECLARED, unit="removed", **arguments)
    assert_alike(REAL, plan, batches, removed(batches, target), seed)


@settings(max_examples=80, deadline=None)
@given(neighbours(stamped=True), st.integers(0, 2**32))
def test_removed_presence_is_public(case, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(PRESENCE, unit="removed", **arguments), removed(batches, target)
    assume(same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed)


@settings(max_examples=80, deadline=None)
@given(neighbours(stamped=True, same_end=False), st.sampled_from([DECLARED, PRESENCE]), st.integers(0, 2**32))
def test_removed_at_the_end_of_the_log_leaves_the_beginning_of_what_is_published(case, keys, seed):
    arguments, batches, target = case
    plan, neighbour = plan_of(keys, unit="removed", **arguments), removed(batches, target)
    assume(keys is DECLARED or same_places(plan, batches, neighbour))
    assert_alike(REAL, plan, batches, neighbour, seed, same_end=False)


@settings(max_examples=80, deadline=None)
@given(st.booleans().flatmap(neighbours), st.sampled_from(["declared", "selected", "presence"]), st.integers(0, 255))
def test_every_other_release_is_byte_equal_under_constant_coins(case, mode, digit):
    """Coins that show the same digit for ever do not depend on what was drawn before: selection can be compared too.

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

Z = ("a", "z", 2, 10)
FILE = [
    *(Event(5, "a", "x"), Event(8, "b", "y"), Event(12, "b", "x")),
    Event(25, "a", "z"),  # past the end of window 10
    *(Event(9, "b", "w"), Event(13, "b", "w"), Event(21, "a", "v"), Event(22, "b", "u"), Event(41, "b", "y")),
]
STAMPED = [
    *(Event(5, "a", "x", 5), Event(8, "b", "y", 8), Event(28, "a", "v", 9)),
    Event(29, "a", "z", 11),  # arrives past the end of window 0
    *(Event(9, "b", "w", 12), Event(19, "b", "w", 19), Event(22, "b", "u", 22), Event(41, "b", "y", 41)),
]
PASSES = [
    *(Event(5, "a", "x", 5), Event(15, "a", "y", 9)),
    Event(16, "a", "z", 16),  # the first to arrive past the end of window 0; without it the next one passes three
    *(Event(34, "a", "x", 35), Event(41, "b", "x", 41)),
]
PASSING = ("a", "z", 1, 10)
LAST = ("a", "z", 4, 10)
FILE_LAST = [*FILE, Event(43, "a", "y"), Event(49, "a", "z")]
FIRST_OF_ITS_KEY = ("b", "first", 0, 10)
ORDER = [Event(1, "b", "first"), Event(2, "a", "x"), Event(3, "b", "y"), Event(15, "a", "x")]


def places_to_cut(events):
    return [[], [3], [4], [3, 4], [2, 6], list(range(len(events)))]


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
        extractor = PythonExtractor(format_of(FORM), plan.span.shape, keys=keys)
        counter.add(extractor.columns(batches[:1]))
        drain(counter, Log())
        assert counter.add(extractor.columns(batches[1:2])).counts == {}
        assert counter.step() is not None, "the item alone makes a window due"
        assert counter.add(extractor.columns(batches[2:3])).counts[Reason.LATE] >= 1


# Mutants: each is caught by the same check


def event_clock(columns):
    """A watermark from the event times of what is counted."""
    usable = columns.reasons == Reason.OK
    return replace(columns, arrival_ms=np.where(usable, columns.event_ms, NO_TIME))


def no_clock_of_bad_items(columns):
    """Records without a usable item do not move the clock."""
    bad = (columns.reasons >= Reason.ITEM_MISSING) & (columns.reasons <= Reason.ITEM_RANGE)
    return replace(columns, arrival_ms=np.where(bad, NO_TIME, columns.arrival_ms))


class SecondDraw(WindowCounter):
    """Draws again whenever it is asked again, as after a commit that failed."""

    def step(self):
        self._in_hand = StepInHand()
        return super().step()


class ChangedDraw(WindowCounter):
    draw = ReleaseDraw

    def __init__(self, plan, partition, state, keys, coins):
        super().__init__(plan, partition, state, keys, coins)
        self._draw = self.draw(plan, partition, keys, coins)


class FirstArrivalOrder(ChangedDraw):
    """Keys in the order of their ids: of their first usable record."""

    class draw(ReleaseDraw):
        def _candidates(self, window, content):
            if isinstance(self._plan.keys, DeclaredKeys):
                return super()._candidates(window, content)
            return sorted(super()._candidates(window, content), key=lambda pair: pair[1])

        def decisions(self, window, content, after):
            self._listed = (-1, [])
            return super().decisions(window, content, None)


class PresentOnly(ChangedDraw):
    """Saves the empty releases of declared keys."""

    class draw(ReleaseDraw):
        def _candidates(self, window, content):
            present = set(content.key_ids().tolist()) if content is not None else set()
            return [(key, key_id) for key, key_id in super()._candidates(window, content) if key_id in present]


class CoinsForLitKeysOnly(ChangedDraw):
    """Saves the coins of declared keys without an event."""

    class draw(ReleaseDraw):
        def _release(self, window, key, raw):
            coins, self._coins = self._coins, self._coins if raw.popcount() else Same(255)
            try:
                return super()._release(window, key, raw)
            finally:
                self._coins = coins


class OneMarkerForAllThatIsDue(WindowCounter):
    """A close marker over every window that one record made due."""

    def _next_releases(self):
        prepared = super()._next_releases()
        if prepared is None:
            return None
        markers = [record for record in prepared.step.publish if record.key == MARKER_KEY]
        wide = replace(decode(markers[-1].value), start_ms=decode(markers[0].value).start_ms)
        publish = (*releases_of(prepared.step.publish), replace(markers[-1], value=encode(wide)))
        return replace(prepared, step=replace(prepared.step, publish=publish))


LONE = ("b", "w", 0, 10)
LONELY = [Event(3, "a", "x"), Event(4, "b", "w"), Event(15, "a", "x")]
IN_TIME = [
    *(Event(5, "a", "x", 5), Event(6, "a", "y", 6)),
    Event(14, "a", "z", 7),  # an event of the near future
    *(Event(9, "b", "w", 8), Event(15, "a", "w", 15), Event(41, "b", "y", 41)),
]

NEXT = ("a", "z", 1, 10)
CASES = {
    "clock of usable rows": (System(between=event_clock), PRESENCE, 0, FILE, blanked, Z, "releases"),
    "clock of events": (System(between=event_clock), DECLARED, 20, IN_TIME, removed, NEXT, "releases"),
    "no clock of bad items": (System(between=no_clock_of_bad_items), DECLARED, 0, FILE, blanked, Z, "releases"),
    "second draw, blanked": (System(SecondDraw), DECLARED, 0, FILE, blanked, Z, "draws"),
    "second draw, removed": (System(SecondDraw), PRESENCE, 20, STAMPED, removed, Z, "draws"),
    "order of first arrival": (System(FirstArrivalOrder), PRESENCE, 0, ORDER, blanked, FIRST_OF_ITS_KEY, "messages"),
    "present keys only": (System(PresentOnly), DECLARED, 0, LONELY, blanked, LONE, "messages"),
    "coins for lit keys only": (System(CoinsForLitKeysOnly), DECLARED, 0, LONELY, blanked, LONE, "cells|releases"),
    "a marker for all": (System(OneMarkerForAllThatIsDue), DECLARED, 20, PASSES, removed, PASSING, "messages"),
}


@pytest.mark.parametrize(
    ("system", "keys", "skew", "events", "neighbour", "target", "problem"), CASES.values(), ids=CASES
)
def test_a_wrong_pipeline_is_caught(system, keys, skew, events, neighbour, target, problem):
    plan, batches = plan_of(keys, skew=skew), cut(events, range(len(events)) if events is PASSES else [])
    other = neighbour(batches, target)
    assert_alike(REAL, plan, batches, other)
    with pytest.raises(AssertionError, match=f"^({problem}): "):
        assert_alike(system, plan, batches, other)


@pytest.mark.parametrize("stamped", [False, True])
def test_the_generated_neighbours_catch_the_clock_mutant_too(stamped):
    """The search itself is strong enough: it finds the item that makes others late."""
    keys, change = DECLARED, removed if stamped else blanked

    @settings(max_examples=1200, deadline=None, database=None, derandomize=True)
    @given(neighbours(stamped))
    def search(case):
        arguments, batches, target = case
        plan = plan_of(keys, **{**arguments, "max_transaction_bytes": HUGE})
        assert_alike(System(between=event_clock), plan, batches, change(batches, target))

    with pytest.raises(AssertionError):
        search()


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
