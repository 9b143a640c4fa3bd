"""Pipelines of several released spans on neighbouring inputs: one cell and one step of the count in each span, no more.

And what an item that is always active changes in a day is what the budget of a day is the sum of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.naive_windows import Row
from support.counting_runs import PRESENCE, Tape, run, span_of
from support.neighbour_runs import DECLARED, REAL, Event, System, blanked, cut, neighbours, removed
from support.neighbour_runs import run as run_system
from support.neighbours import assert_one_bit
from support.span_runs import spans_plan

from sfm_stream.config.config import parse_config
from sfm_stream.errors import BudgetError, StateError
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.privacy.budget import Budget
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import HOUR_MS, MINUTE_MS
from sfm_stream.wire.codec import Release, decode

SHAPES = (SketchShape(16, 2), SketchShape(32, 3), SketchShape(16, 4))
COUNT = Decimal("0.5")
STARTS = {"10ms": 10, "40ms": 40, "60ms": 60}


def changed(one, other):
    """The pairs of releases that differ. Everything else is byte for byte the same."""
    outside = [[(r.topic, r.key, r.timestamp_ms, len(r.value)) for r in records] for records in (one, other)]
    assert outside[0] == outside[1], "messages: the outputs differ in more than bits"
    pairs = [(decode(a.value), decode(b.value)) for a, b in zip(one, other, strict=True) if a.value != b.value]
    for a, b in pairs:
        assert_one_bit(a, b)
    return [a for a, _ in pairs]


def assert_one_in_each_span(system, plan, left, right, target, seed):
    logs = [run_system(system, plan, batches, Tape(seed)) for batches in (left, right)]
    releases = changed(logs[0].records, logs[1].records)
    assert logs[0].positions[-1:] == logs[1].positions[-1:], "coins: the data decides how many are drawn"
    assert max(Counter(release.span for release in releases).values(), default=0) <= 1, "spans: two releases of one"
    for release in releases:
        size = STARTS[release.span]
        assert release.window.start_ms == target[2] * 10 // size * size, "windows: another one than that of the item"


@settings(max_examples=30)
@given(neighbours(stamped=False), st.sampled_from([DECLARED, PRESENCE]), st.integers(0, 2**32))
def test_blanked_in_place_it_changes_one_cell_and_one_count_in_each_span(case, keys, seed):
    arguments, batches, target = case
    plan = spans_plan(keys, count=COUNT, shapes=SHAPES, **arguments)
    assume(keys is DECLARED or alike(plan, batches, blanked(batches, target)))
    assert_one_in_each_span(REAL, plan, batches, blanked(batches, target), target, seed)


@settings(max_examples=30)
@given(neighbours(stamped=True), st.sampled_from([DECLARED, PRESENCE]), st.integers(0, 2**32))
def test_removed_it_changes_one_cell_and_one_count_in_each_span(case, keys, seed):
    arguments, batches, target = case
    plan = spans_plan(keys, count=COUNT, shapes=SHAPES, unit="removed", **arguments)
    assume(keys is DECLARED or alike(plan, batches, removed(batches, target)))
    assert_one_in_each_span(REAL, plan, batches, removed(batches, target), target, seed)


def alike(plan, left, right):
    """Other items keep every key present in every window of every span."""
    places = [
        [(r.key, r.timestamp_ms) for r in run_system(REAL, plan, batches, Tape(0)).records] for batches in (left, right)
    ]
    return places[0] == places[1]


class InTheNextToo(WindowCounter):
    """A base window is absorbed by the coarser window behind its own as well."""

    def _absorb(self, closed):
        super()._absorb(closed)
        for start in closed:
            for span in self._coarser:
                span.absorb(span.windows.grid.end(span.windows.grid.floor(start)), self.base.store.get(start))


def test_a_counter_that_moves_an_item_into_two_windows_of_a_span_is_caught():
    events = [(5, "a", "x"), (7, "b", "y"), (25, "a", "z"), (41, "b", "x"), (95, "a", "y"), (130, "b", "y")]
    batches = cut([Event(time, key, item, time) for time, key, item in events], [2, 4])
    target = ("a", "z", 2, 10)
    plan = spans_plan(DECLARED, count=COUNT, shapes=SHAPES, unit="removed")
    assert_one_in_each_span(REAL, plan, batches, removed(batches, target), target, 1)
    with pytest.raises(AssertionError, match="spans: two releases of one"):
        assert_one_in_each_span(System(InTheNextToo), plan, batches, removed(batches, target), target, 1)


# The budget


def instant(zone, *when):
    return int(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()) * 1000


LONG = ("day", "week", "month")
DAYS = {
    "25 hours": ("Europe/Berlin", 25, 60, LONG, {"1h": 25, "day": 1, "week": 1, "month": 1}),
    "hours of UTC in half hours": ("Asia/Kolkata", 28, 15, ("hour", "day"), {"15m": 96, "hour": 25, "day": 1}),
    "24.5 hours": ("Australia/Lord_Howe", 5, 30, ("hour", "day"), {"30m": 49, "hour": 25, "day": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", DAYS)
def test_an_item_that_is_always_active_loses_the_budget_of_a_day_and_a_span_left_out_of_it_shows(case):
    zone, day, minutes, coarser, expected = DAYS[case]
    month = 4 if day == 5 else 10
    begin, end, size = instant(zone, 2026, month, day), instant(zone, 2026, month, day + 1), minutes * MINUTE_MS
    start = begin - 70 * 24 * HOUR_MS
    plan = spans_plan(size=size, coarser=coarser, zone=zone, start=start - start % size, max_gap_windows=10**6)
    others = [Row(0, time, time, "k", 1) for time in range(begin - 2 * HOUR_MS, end + 2 * HOUR_MS, size)]
    item = [row._replace(cell=9) for row in others if begin <= row.event < end]
    both = sorted([*others, *item], key=lambda row: row.event)
    numbered = [[row._replace(offset=n) for n, row in enumerate(rows)] for rows in (both, others)]
    records = [run(plan, [rows], Tape(1))[0].records for rows in numbered]
    found = Counter(release.span for release in changed(*records))
    assert found == expected
    days = calendar(zone, MINUTE_MS, begin - 400 * 24 * HOUR_MS, 2028)
    budget = Budget(plan.spans, Decimal(0), Decimal(0), days.longest_day_ms, days.day_step_ms)
    loss = sum(found[span.name] * span.epsilon for span in plan.spans)
    assert loss <= budget.epsilon_per_day
    if end - begin == days.longest_day_ms:
        assert loss == budget.epsilon_per_day, "the worst case is met, and no more is charged"
    for span in plan.spans:
        without = replace(budget, spans=tuple(each for each in plan.spans if each != span))
        assert without.epsilon_per_day < loss, "a span left out of the budget"


CONFIG = """
pipeline.id = "p"
input.path = "in.jsonl"
event = {{ key = "page", item = "user", time = "at", time_unit = "ms" }}
window = {{ size = "1h", grace = "5m" }}
privacy = {{ epsilon = 0.5, count_share = 0, keys = "presence_is_public", max_epsilon_per_item_day = {limit} }}
output.path = "out.sqlite"
[[spans]]
size = "day"
epsilon = 1
count_share = 0.25
buckets = 1024
"""


def test_what_is_released_is_what_is_priced(tmp_path):
    config = parse_config(CONFIG.format(limit=13), tmp_path)
    plan = config.plan(1, 0)
    assert plan.spans == config.budget.spans
    assert [(span.name, str(span.count_epsilon), str(span.shape)) for span in plan.spans] == [
        ("1h", "0", "4096x24"), ("day", "0.25", "1024x24"),
    ]  # fmt: skip
    with pytest.raises(BudgetError, match=r"24 of 1h, 1 of day\) of a day can lose epsilon 13"):
        parse_config(CONFIG.format(limit="12.9"), tmp_path)
    with pytest.raises(StateError, match="are of 1h, day, its released spans of 1h: what is priced is not"):
        replace(plan, spans=plan.spans[:1])
    with pytest.raises(StateError, match="what is priced is not"):
        replace(plan, spans=(plan.spans[0], span_of("week")))


def test_releases_of_the_stream_are_of_the_spans_of_the_plan():
    log = run(spans_plan(), [[Row(0, 5, 5, "a", 1), Row(1, 130, 130, "a", 1)]], Tape(1))[0]
    assert {decode(r.value).span for r in log.records if isinstance(decode(r.value), Release)} == set(STARTS)
