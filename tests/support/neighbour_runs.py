"""Inputs that differ by one item, and the counting pipeline driven over both of them on one tape of coins.

What must hold of the outputs is in neighbours.py. A pipeline under test is a System: wrong ones can be driven too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.counting_runs import (
    Log,
    Same,
    Tape,
    contents,
    declared,
    drain,
    first_state,
    table_of,
)
from support.neighbours import assert_one_cell, assert_one_draw

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.plan import CountingPlan, Limits
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.released_span import widest
from sfm_stream.types import EventColumns, RecordBatch
from sfm_stream.wire.keys import MARKER_KEY

FORM = EventSchema(key=("k",), item="i", time="t", time_unit="ms", earliest_ms=0, latest_ms=1 << 40)
HUGE = 1 << 40


Target: TypeAlias = tuple[Any, Any, int, int]
"""Key, item, number of the window and its size."""


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
    def count(self) -> int:
        return len(self.records)

    def offsets(self) -> NDArray[np.int64]:
        return np.array([offset for offset, _ in self.records], np.int64)

    def arrivals(self) -> NDArray[np.int64] | None:
        stamps = [event.arrival for _, event in self.records]
        return None if all(stamp is None for stamp in stamps) and stamps else np.array(stamps, np.int64)

    def keys(self) -> list[bytes | None]:
        return [None] * self.count

    def values(self) -> list[bytes | None]:
        return [event.value for _, event in self.records]


@dataclass(frozen=True)
class System:
    """A pipeline under test: what stands between extraction and counting, and the counter."""

    counter: type[WindowCounter] = WindowCounter
    between: Callable[[EventColumns], EventColumns] = lambda columns: columns


REAL = System()


def run(system: System, plan: CountingPlan, batches: Iterable[RecordBatch], coins: Coins, closing: bool = True) -> Log:
    """Extract, count, and after each batch (or closing=False: at the end only) perform what is due.

    The commit of every second step fails once and is tried again.
    """
    keys, log, attempts = table_of(plan), Log(), iter(range(1 << 30))
    extractor = PythonExtractor(format_of(FORM), widest(plan.spans), keys=keys)
    counter = system.counter(plan, 0, first_state(plan), keys, coins)
    tape = coins if isinstance(coins, Tape) else None

    def perform() -> None:
        drain(counter, log, tape, fails=lambda: next(attempts) % 2)

    for batch in batches:
        counter.add(system.between(extractor.columns([batch])))
        if closing:
            perform()
    counter.finish()
    perform()
    return log


# What must hold


def assert_alike(
    system: System,
    plan: CountingPlan,
    left: Sequence[RecordBatch],
    right: Sequence[RecordBatch],
    seed: int = 1,
    same_end: bool = True,
) -> None:
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


def hit(event: Event, target: Target) -> bool:
    """Whether a record is one of the target's."""
    key, item, window, size = target
    return event.text is None and (event.key, event.item) == (key, item) and event.time // size == window


def cut(events: Sequence[Event], places: Iterable[int]) -> list[Batch]:
    """Batches of consecutive offsets."""
    borders = sorted({0, len(events), *(place for place in places if 0 < place < len(events))})
    numbered = list(enumerate(events))
    return [Batch(a, b, numbered[a:b]) for a, b in pairwise(borders)]


def blanked(batches: Iterable[Batch], target: Target) -> list[Batch]:
    """The item of every record of the target is null; nothing else moves."""
    return [
        replace(batch, records=[(o, e._replace(item=None) if hit(e, target) else e) for o, e in batch.records])
        for batch in batches
    ]


def removed(batches: Iterable[Batch], target: Target) -> list[Batch]:
    """No record of the target is there; offsets stay, as in a log."""
    return [replace(batch, records=[(o, e) for o, e in batch.records if not hit(e, target)]) for batch in batches]


JUNK = [
    *(b"", b"{", b"[]", b"\xff", b"\x00\x00\x00\x00\x01x"),
    *(b'{"k": "a", "t": 30}', b'{"t": "x"}', b'{"i": 1, "t": 99}', b'{"k": true, "i": 1, "t": 60}'),
    *(b'{"k": "a", "i": 1.5, "t": 50}', b'{"k": "a", "i": 1, "i": 2, "t": 70}'),
]


@st.composite
def neighbours(draw: st.DrawFn, stamped: bool, same_end: bool = True) -> tuple[dict[str, Any], list[Batch], Target]:
    """(plan arguments, batches, target): one item that is there, under one key in one window.

    stamped: the log gives the arrival times. same_end: its last record is not the target's.
    """
    size = 10
    arguments = {
        "size": size,
        "grace": draw(st.sampled_from([0, 3, 20])),
        "skew": draw(st.sampled_from([0, 15])) if stamped else 0,
        "count_share": draw(st.sampled_from([0, 0.5])),
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


def same_places(plan: CountingPlan, left: Sequence[RecordBatch], right: Sequence[RecordBatch]) -> bool:
    """Other items keep every key present: the case in which presence_is_public promises anything."""
    logs = [run(REAL, replace(plan, limits=Limits()), batches, Same(255)) for batches in (left, right)]
    return set(contents(logs[0].records)) == set(contents(logs[1].records))


# Inputs in which the event of one item closes a window

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


def places_to_cut(events: Sequence[Event]) -> list[list[int]]:
    """Ways to cut into batches."""
    return [[], [3], [4], [3, 4], [2, 6], list(range(len(events)))]
