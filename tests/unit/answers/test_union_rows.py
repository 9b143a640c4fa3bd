"""Answers over releases of several spans: what covers a question, where it comes from, and what is missing."""

import gc
import itertools
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from support.memory_topics import Topics
from support.published_topics import K1, K4, SHAPE, T0, VIEWS, closed, question, sketched, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, at, marker

from sfm_stream.answers.answer import answer
from sfm_stream.answers.key_union import KeyUnion
from sfm_stream.answers.release_terms import ReleaseTerms
from sfm_stream.answers.rows import rows_of
from sfm_stream.errors import IncompatibleError, QuestionError, StateError
from sfm_stream.estimation.estimate import Status, estimate
from sfm_stream.pipeline.rollup.coverage import Absence
from sfm_stream.privacy.epsilon import epsilon_of
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.tally_sum import TallySum
from sfm_stream.types import Window
from sfm_stream.units import SKETCHES
from sfm_stream.windows.grid import grid_of
from sfm_stream.wire.codec import decode_release

PRESENCE = ReleaseTerms("views", Absence(1))
DAY, HOUR = DAY_MS // QUARTER_MS, 4
"""In quarters of an hour."""


def hour(number, key="a", **other):
    """A release from raw of the hour of this number since T0."""
    return sketched(number * HOUR, key, window_ms=HOUR_MS, span="hour", **other)


def day(number, key="a", **other):
    return sketched(number * DAY, key, window_ms=DAY_MS, span="day", **other)


def window(number, key="a", **other):
    return sketched(number, key, span="15m", **other)


def decided(name, low, high, spans=("hour", "day"), **other):
    """Markers of a span from one quarter to another, one for each window. spans: all that the epoch releases."""
    size = {"15m": 1, "hour": HOUR, "day": DAY}[name]
    named = {"span": name, "spans": spans, **other}
    return [
        marker(T0 + n * QUARTER_MS, T0 + (n + size) * QUARTER_MS, size * QUARTER_MS, **named)
        for n in range(low, high, size)
    ]


def days_of(count, keys=("a",)):
    """So many days with every hour and day of these keys released and decided."""
    return [
        *(hour(n, key) for key in keys for n in range(24 * count)),
        *decided("hour", 0, DAY * count),
        *(day(n, key) for key in keys for n in range(count)),
        *decided("day", 0, DAY * count),
    ]


def asked(records, low, high, terms=VIEWS, grain="range"):
    return list(rows_of(Topics(records), terms, question(grain, span(low, high))))


# what covers a span


def test_a_span_is_covered_by_the_coarsest_releases_inside_it():
    records = days_of(3)
    (row,) = asked(records, 6 * HOUR, 2 * DAY + 3 * HOUR)
    assert dict(row.releases) == {"day": 1, "hour": 21}
    assert list(row.releases) == ["day", "hour"], "the coarsest first"
    assert (row.origin, row.windows, row.released, row.complete, row.missing) == ("merged", 22, 22, True, ())
    inside = [*(hour(n) for n in (*range(6, 24), *range(48, 51))), day(1)]
    assert row.estimate == estimate(Tally.of(decode_release(r).sketch for r in inside))
    assert row.epsilon == pytest.approx(22 * 4)
    assert asked(records[::-1], 6 * HOUR, 2 * DAY + 3 * HOUR) == [row], "whatever the order in the topic"


def test_one_release_of_the_whole_span_is_raw_and_answers_with_its_own_estimate():
    records = days_of(2)
    (row,) = asked(records, DAY, 2 * DAY)
    assert (row.origin, dict(row.releases), row.windows, row.epsilon) == ("raw", {"day": 1}, 1, epsilon_of(K4))
    assert row.estimate == estimate(decode_release(day(1)).sketch)
    (part,) = asked([*records, hour(48)], DAY, 2 * DAY + HOUR)
    assert (part.origin, dict(part.releases)) == ("merged", {"day": 1, "hour": 1})
    (open_day,) = asked([day(0), *decided("hour", 0, 3 * HOUR)], 0, DAY)
    assert (open_day.origin, open_day.complete) == ("raw", True), "whatever else comes, this answers"
    (alone,) = asked([day(1)], DAY, 3 * DAY)
    assert (alone.origin, alone.estimate.status) == ("merged", Status.LOWER_BOUND), "one release of a part is not raw"


def test_days_of_one_epsilon_are_not_mixed_with_the_tally_of_another():
    records = [*(hour(n, k=K1) for n in range(24)), day(1), *decided("hour", 0, 2 * DAY), *decided("day", 0, 2 * DAY)]
    (row,) = asked(records, 23 * HOUR, 2 * DAY)
    assert dict(row.releases) == {"day": 1, "hour": 1}
    assert row.epsilon == pytest.approx(4 + 1)


def test_a_withheld_day_is_answered_by_its_hours():
    records = [r for r in days_of(3) if r != day(1)]
    (row,) = asked(records, 0, 3 * DAY)
    assert dict(row.releases) == {"day": 2, "hour": 24}
    assert (row.windows, row.missing, row.estimate.status) == (26, (), Status.OK)


def test_keys_have_covers_of_their_own():
    records = [*days_of(2), *(hour(n, "b") for n in range(30)), day(1, "b")]
    first, second = asked(records, 0, 2 * DAY)
    assert (first.key, dict(first.releases)) == (("a",), {"day": 2})
    assert (second.key, dict(second.releases)) == (("b",), {"day": 1, "hour": 24})


# what is missing


def test_what_is_missing_is_said_with_its_times():
    records = [r for r in days_of(3) if r not in (day(1), hour(24), hour(25), hour(40))]
    (row,) = asked(records, 0, 3 * DAY)
    missing = (span(24 * HOUR, 26 * HOUR), span(40 * HOUR, 41 * HOUR))
    assert (row.missing, row.missing_ms) == (missing, 3 * HOUR_MS)
    assert (row.released, row.windows, row.complete) == (23, 26, True)
    assert (row.estimate.status, row.estimate.high) == (Status.LOWER_BOUND, math.inf)
    (exact,) = asked(records, 0, 3 * DAY, PRESENCE)
    assert (exact.missing, exact.estimate.status, exact.windows) == ((), Status.OK, 26)


def test_a_day_that_was_never_counted_takes_one_day_to_fill():
    (row,) = asked(days_of(2), 0, 4 * DAY, PRESENCE)
    assert (row.released, row.windows) == (2, 4)
    assert (row.missing, row.complete) == ((span(2 * DAY, 4 * DAY),), False)


@pytest.mark.parametrize(
    ("markers", "complete"),
    [
        (decided("hour", 0, DAY, ("hour",)), True),
        (decided("hour", 0, DAY), False),  # its day is still to come, the first one of the epoch
        (decided("hour", HOUR, DAY), True),  # counting began inside the day, which is never released
        ([*decided("hour", 0, DAY), *decided("day", 0, DAY)], True),
        ([*decided("hour", 0, DAY - HOUR), *decided("day", -DAY, 0)], False),
        ([*decided("hour", 0, DAY), *decided("day", -DAY, 0)], False),  # its day is still to come
        ([*decided("hour", 0, 30 * HOUR), *decided("day", -DAY, DAY)], True),
    ],
)
def test_a_union_is_complete_when_every_span_has_decided_what_lies_inside(markers, complete):
    (row,) = asked([hour(0), *markers], 0, DAY)
    assert row.complete is complete


def test_a_coarser_window_that_is_open_or_cut_does_not_keep_a_question_open():
    records = [hour(0), hour(1), *decided("hour", 0, 2 * HOUR), *decided("day", -DAY, 0)]
    (row,) = asked(records, 0, 2 * HOUR)
    assert (row.complete, row.missing) == (True, ())


def test_a_border_inside_a_base_window_is_refused_and_inside_a_coarser_one_is_not():
    records = days_of(1)
    assert asked(records, HOUR, 2 * HOUR)
    with pytest.raises(QuestionError, match="inside a window of epoch 1, which begins at 2026-01-01T01:00:00Z"):
        asked(records, HOUR + 1, 3 * HOUR)


def test_a_pipeline_of_days_alone():
    records = [*(day(n) for n in range(3)), *decided("day", 0, 3 * DAY, ("day",))]
    (row,) = asked(records, 0, 3 * DAY)
    assert (dict(row.releases), row.windows, row.complete, row.missing) == ({"day": 3}, 3, True, ())
    with pytest.raises(QuestionError, match="inside a window of epoch 1, which begins at 2026-01-01T00:00:00Z"):
        asked(records, HOUR, 3 * DAY)


def test_releases_that_go_while_they_are_read_are_an_error():
    class Shrinking(Topics):
        readings = 0

        def read(self, topic, *arguments):
            self.readings += 1
            records = list(super().read(topic, *arguments))
            return iter(records[self.readings - 2 :])

    with pytest.raises(StateError, match="went out of the sketch topic while it was read for an answer: ask again"):
        list(rows_of(Shrinking([hour(0), hour(1)]), VIEWS, question("range", span(0, DAY))))


# epochs and shapes


def test_epochs_with_spans_of_their_own():
    """Windows of 15 minutes for two days, then hours and days."""
    first = [window(n) for n in range(2 * DAY)] + [closed(0, 2 * DAY)]
    second = [*(hour(n, epoch=2) for n in range(48, 96)), *decided("hour", 2 * DAY, 4 * DAY, epoch=2)]
    second += [*(day(n, epoch=2) for n in (2, 3)), *decided("day", 2 * DAY, 4 * DAY, epoch=2)]
    (row,) = asked([*first, *second], DAY, 4 * DAY)
    assert dict(row.releases) == {"day": 2, "15m": DAY}
    assert (row.windows, row.epoch, row.complete, row.missing) == (DAY + 2, 2, True, ())
    (row,) = asked([r for r in [*first, *second] if r not in (day(3, epoch=2), window(100))], DAY, 4 * DAY)
    assert dict(row.releases) == {"day": 1, "hour": 24, "15m": DAY - 1}
    assert (row.windows, row.missing) == (1 + 24 + DAY, (span(100, 101),))
    markers = [
        closed(0, 2 * DAY),
        *decided("hour", 2 * DAY, 4 * DAY, epoch=2),
        *decided("day", 2 * DAY, 4 * DAY, epoch=2),
    ]
    (row,) = asked([window(100), day(2, epoch=2), *markers], DAY, 4 * DAY)
    assert row.windows == DAY + 2, "the gaps of each epoch are counted in its own windows"


def test_spans_of_different_shapes_are_not_joined():
    """Days have a shape of their own: whole days are answered by days, what begins inside one by hours."""
    small = SketchShape(32, 8)
    hours = [hour(n, shape=small) for n in range(72)] + decided("hour", 0, 3 * DAY)
    days = [day(n) for n in range(3)] + decided("day", 0, 3 * DAY)
    (row,) = asked([*hours, *days], 0, 3 * DAY)
    assert dict(row.releases) == {"day": 3}
    (row,) = asked([*hours, *days], HOUR, 3 * DAY)
    assert (dict(row.releases), row.missing) == ({"hour": 71}, ())
    (row,) = asked([r for r in [*hours, *days] if r not in hours[4:24]], HOUR, 3 * DAY)
    assert dict(row.releases) == {"hour": 51}
    assert row.missing == (span(4 * HOUR, DAY),)
    other = [hour(n, shape=small, epoch=2) for n in range(72, 96)]
    with pytest.raises(IncompatibleError, match="epochs 1 and 2 of pipeline views have sketches of different shape or"):
        asked([*days, *other], 0, 4 * DAY)


def test_single_windows_are_those_of_the_finest_span():
    rows = list(rows_of(Topics(days_of(1)), VIEWS, question("window")))
    assert [dict(row.releases) for row in rows] == [{"hour": 1}] * 24
    assert {row.origin for row in rows} == {"raw"}


# weeks and months


def released(zone, grain, low, high, key="a", spans=("day",)):
    """Releases and markers of every day (week, month) of a zone between two UTC times, as its grid has them."""
    grid = grid_of(grain, zone)
    borders = [grid.floor(at(low))]
    while borders[-1] < at(high):
        borders.append(grid.end(borders[-1]))
    records = []
    for start_ms, end_ms in pairwise(borders):
        number = (start_ms - T0) // QUARTER_MS
        records.append(sketched(number, key, window_ms=end_ms - start_ms, span=grain))
        records.append(marker(start_ms, end_ms, end_ms - start_ms, span=grain, spans=spans))
    return records


def by(grain, records, zone="UTC", terms=VIEWS, since=0, until=1 << 62):
    asking = replace(question(grain, Window(since, until)), zone=zone)
    return list(rows_of(Topics(records), terms, asking))


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("Europe/Berlin", [168, 167, 168]),
        ("Asia/Kathmandu", [168, 168, 168]),
        ("America/New_York", [168, 168, 168]),
        ("Australia/Lord_Howe", [168, 168, 168.5]),
    ],
)
def test_weeks_are_made_of_their_days_from_monday_on(zone, hours):
    """The last Sunday of March, and the first one of April."""
    records = released(zone, "day", "2026-03-16T00:00", "2026-04-05T12:00")
    rows = by("week", records, zone)[-3:]
    assert [(row.window.end_ms - row.window.start_ms) / HOUR_MS for row in rows] == hours
    assert [dict(row.releases) for row in rows] == [{"day": 7}] * 3
    assert {(row.origin, row.windows, row.grain, row.complete, row.missing) for row in rows} == {
        ("merged", 7, "week", True, ())
    }
    grid = grid_of("week", zone)
    assert all(grid.floor(row.window.start_ms) == row.window.start_ms for row in rows)
    assert all(one.window.end_ms == other.window.start_ms for one, other in pairwise(rows))


def test_months_are_made_of_their_days_and_of_weeks_inside_them():
    records = released("Europe/Berlin", "day", "2026-01-31T23:30", "2026-03-31T12:00")
    february, march = by("month", records, "Europe/Berlin")
    assert [dict(row.releases) for row in (february, march)] == [{"day": 28}, {"day": 31}]
    assert march.window.end_ms - march.window.start_ms == 31 * DAY_MS - HOUR_MS
    records, weeks = (
        released("Europe/Berlin", *each, "2026-03-31T12:00", spans=("day", "week"))
        for each in (("day", "2026-01-31T23:30"), ("week", "2026-02-02T00:00"))
    )
    february, march = by("month", [*records, *weeks], "Europe/Berlin")
    assert dict(february.releases) == {"week": 3, "day": 7}, "from Sunday, the 1st"
    assert dict(march.releases) == {"week": 4, "day": 3}
    assert (february.windows, march.windows) == (10, 7)


def test_a_week_that_was_released_from_raw_is_that_release():
    zone = "Asia/Kathmandu"
    spans = ("day", "week")
    days, weeks = (released(zone, grain, "2026-03-16T00:00", "2026-03-29T12:00", spans=spans) for grain in spans)
    rows = by("week", [*days, *weeks], zone)
    assert {(row.origin, tuple(row.releases.items()), row.windows) for row in rows} == {("raw", (("week", 1),), 1)}


def test_a_week_in_which_counting_began_and_one_that_is_open_are_lower_bounds():
    records = released("UTC", "day", "2026-03-18T00:00", "2026-03-31T00:00")
    first, whole, last = by("week", records, terms=PRESENCE)
    assert (first.released, first.windows, first.complete) == (5, 7, True)
    assert first.missing == (Window(at("2026-03-16"), at("2026-03-18")),)
    assert (whole.released, whole.windows, whole.complete, whole.missing) == (7, 7, True, ())
    assert (last.released, last.windows, last.complete) == (1, 7, False)
    assert [row.estimate.status for row in (first, whole, last)] == [Status.LOWER_BOUND, Status.OK, Status.LOWER_BOUND]


def test_weeks_are_chosen_by_span():
    records = released("UTC", "day", "2026-03-02T00:00", "2026-04-06T00:00")
    rows = by("week", records, since=at("2026-03-09"), until=at("2026-03-23"))
    assert [row.window.start_ms for row in rows] == [at("2026-03-09"), at("2026-03-16")]


def test_a_question_by_week_holds_the_sums_of_one_week():
    """Thirty weeks of three keys in order of time: at no record of the second reading are there more sums than keys."""
    keys = ("a", "b", "c")
    by_key = [released("UTC", "day", "2026-01-05T00:00", "2026-08-02T00:00", key) for key in keys]
    records = [record for together in zip(*by_key, strict=True) for record in together]
    held = []

    class Watched(Topics):
        def at(self, topic, *arguments):
            assert topic == SKETCHES
            for number, stored in enumerate(super().at(topic, *arguments)):
                yield stored
                if number % 10 == 0:
                    held.append(sum(isinstance(each, TallySum) for each in gc.get_objects()))

    gc.collect()
    before = sum(isinstance(each, TallySum) for each in gc.get_objects())
    rows = list(rows_of(Watched(records), VIEWS, question("week")))
    assert len(rows) == 30 * len(keys)
    assert before < max(held) <= before + len(keys)


def test_a_question_that_takes_too_long_is_ended_between_two_estimates(monkeypatch):
    """Five keys are added up in one reading; the time is over before the third is estimated."""
    made, looks = [], itertools.count(1)

    class Lent(Topics):
        def before_query(self):
            if next(looks) == 3:
                raise TimeoutError

    row = KeyUnion.row
    monkeypatch.setattr(KeyUnion, "row", lambda union, *terms: made.append(union.key) or row(union, *terms))
    with pytest.raises(TimeoutError):
        rows_of(Lent(days_of(2, "abcde")), VIEWS, question("range", span(0, 2 * DAY)))
    assert len(made) == 2


def test_an_answer_by_week_needs_no_roll_ups():
    records = released("UTC", "day", "2026-03-16T00:00", "2026-03-23T00:00")
    assert [row.grain for row in answer(Topics(records), VIEWS, question("week")).rows] == ["week"]
    assert decode_release(records[0]).sketch.shape == SHAPE
