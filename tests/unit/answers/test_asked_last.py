"""`--last`: which hours, days, weeks or months are the last ones that are over and decided."""

import pytest
from support.memory_topics import Topics
from support.published_topics import T0, VIEWS, closed, question, sketched, span
from support.rollup_runs import DAY_MS, HOUR_MS, QUARTER_MS, at, marker

from sfm_stream.answers.answer import answer
from sfm_stream.answers.asked_last import LastUnits, parse_last
from sfm_stream.answers.question import Question
from sfm_stream.answers.settled import settled
from sfm_stream.errors import NothingFound, QuestionError
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS

DAY = DAY_MS // QUARTER_MS


def last(text, now, zone="UTC", decided_ms=FOREVER_MS):
    return parse_last(text, "range", "hour", "15m", at(now)).span(decided_ms, zone)


@pytest.mark.parametrize(
    ("text", "now", "zone", "start", "end"),
    [
        ("7d", "2026-03-11T10:20", "UTC", "2026-03-04", "2026-03-11"),
        ("7d", "2026-03-11T00:00", "UTC", "2026-03-04", "2026-03-11"),
        ("7d", "2026-03-10T23:59:59", "UTC", "2026-03-03", "2026-03-10"),
        ("24h", "2026-03-11T10:20", "UTC", "2026-03-10T10:00", "2026-03-11T10:00"),
        ("1w", "2026-03-11T10:20", "UTC", "2026-03-02", "2026-03-09"),
        ("4w", "2026-03-16T00:00", "UTC", "2026-02-16", "2026-03-16"),
        ("1mo", "2026-03-31T23:59", "UTC", "2026-02-01", "2026-03-01"),
        ("3mo", "2026-03-11T10:20", "UTC", "2025-12-01", "2026-03-01"),
        # days of 23 hours, of 25, and of half an hour more: local days, whatever they last
        ("7d", "2026-03-31T12:00", "Europe/Berlin", "2026-03-23T23:00", "2026-03-30T22:00"),
        ("1d", "2026-03-30T00:00", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("1w", "2026-10-26T12:00", "Europe/Berlin", "2026-10-18T22:00", "2026-10-25T23:00"),
        ("2d", "2026-04-05T14:00", "Australia/Lord_Howe", "2026-04-03T13:00", "2026-04-05T13:30"),
        ("1mo", "2026-04-01T00:00", "Asia/Kathmandu", "2026-02-28T18:15", "2026-03-31T18:15"),
        ("7d", "2026-03-10T18:14", "Asia/Kathmandu", "2026-03-02T18:15", "2026-03-09T18:15"),
    ],
)
def test_the_last_whole_units_before_the_time_of_asking(text, now, zone, start, end):
    assert last(text, now, zone) == Window(at(start), at(end))


def test_the_end_is_what_is_decided_where_that_is_earlier():
    assert last("2d", "2026-03-11T10:00", decided_ms=at("2026-03-10T23:45")) == Window(
        at("2026-03-08"), at("2026-03-10")
    )
    assert last("2h", "2026-03-11T10:00", decided_ms=at("2026-03-10T23:45")).end_ms == at("2026-03-10T23:00")
    assert last("2h", "2026-03-11T10:00", decided_ms=at("2026-03-11T12:00")).end_ms == at("2026-03-11T10:00")


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "07d", "-1d", "7 d", "1.5d", "7D", "30m", "7d7d", "999999d", "٣d"]
)
def test_what_is_no_number_of_units_is_refused_with_the_four_forms(text):
    with pytest.raises(QuestionError, match=r"is not a number of hours, days, weeks or months: 24h, 7d, 4w, 3mo"):
        parse_last(text, "range", "hour", "15m", 0)


@pytest.mark.parametrize(
    ("text", "grain", "base", "remedy"),
    [
        ("7d", "week", "hour", "7d is not made of whole weeks: ask for weeks, 4w"),
        ("24h", "day", "hour", "24h is not made of whole days: ask for days, 7d"),
        ("4w", "month", "hour", "4w is not made of whole months: ask for months, 3mo"),
        ("1mo", "week", "hour", "1mo is not made of whole weeks: ask for weeks, 4w"),
        ("7d", "hour", "quarter", "7d is not made of whole hours of UTC in this zone: ask --by quarter"),
    ],
)
def test_units_that_the_rows_do_not_fill_are_refused_with_the_remedy(text, grain, base, remedy):
    with pytest.raises(QuestionError, match=remedy):
        parse_last(text, grain, base, "15m", 0)
    assert parse_last("24h", "hour", "quarter", "15m", 0).unit == "hour"


@pytest.mark.parametrize(
    ("text", "windows", "remedy"),
    [
        ("24h", "day", "24h is not made of whole days: ask for days, 7d"),
        ("7d", "week", "7d is not made of whole weeks: ask for weeks, 4w"),
        ("1mo", "week", "1mo is not made of whole weeks: ask for weeks, 4w"),
        ("4w", "month", "4w is not made of whole months: ask for months, 3mo"),
    ],
)
def test_units_that_the_windows_do_not_fill_are_refused_with_the_remedy(text, windows, remedy):
    with pytest.raises(QuestionError, match=remedy):
        parse_last(text, "range", "hour", windows, 0)
    assert parse_last(text, "range", "hour", "hour", 0).text == text


def test_before_1970_there_is_nothing():
    with pytest.raises(QuestionError, match="3mo begins before 1970"):
        last("3mo", "1970-02-11T00:00")


# up to where everything is decided


def settled_end(markers, text="1h", now="2026-01-20", zone="UTC"):
    asking = Question("range", zone=zone, last=parse_last(text, "range", "hour", "15m", at(now)))
    return settled(Topics(markers), "views", asking).span.end_ms


def markers_of(name, low, high, size, spans=("hour", "day")):
    return [
        marker(T0 + n * QUARTER_MS, T0 + (n + size) * QUARTER_MS, size * QUARTER_MS, span=name, spans=spans)
        for n in range(low, high, size)
    ]


def test_every_partition_has_to_have_decided():
    one, other = (closed(0, high, partition=p, partitions=3) for p, high in ((0, 40), (2, 25)))
    assert settled_end([one]) == T0 + 10 * HOUR_MS
    assert settled_end([one, other]) == T0 + 6 * HOUR_MS, "one that never decided anything holds nothing up"
    newer = closed(40, 60, partition=0, partitions=1, epoch=2)
    assert settled_end([one, other, newer]) == T0 + 15 * HOUR_MS, "partitions of an older epoch hold nothing up"
    assert settled_end([one, other], now="2026-01-01T05:30") == T0 + 5 * HOUR_MS


def test_every_span_has_to_have_decided_what_ends_by_then():
    assert settled_end(markers_of("hour", 0, 30 * 4, 4, ("hour",))) == T0 + 30 * HOUR_MS
    hours, first_day = markers_of("hour", 0, 30 * 4, 4), markers_of("day", 0, DAY, DAY)
    assert settled_end(hours) == T0 + 23 * HOUR_MS, "the first day is still to come"
    assert settled_end(hours[1:]) == T0 + 30 * HOUR_MS, "a day in which counting began is never released"
    assert settled_end([*hours, *first_day]) == T0 + 30 * HOUR_MS
    behind = [*markers_of("hour", 0, 2 * DAY, 4), *first_day]
    assert settled_end(behind) == T0 + 47 * HOUR_MS, "the second day is still to come"
    assert settled_end(behind, "1d") == T0 + DAY_MS
    assert settled_end([*behind, *markers_of("day", DAY, 2 * DAY, DAY)], "1d") == T0 + 2 * DAY_MS


def test_nothing_decided_is_nothing_to_answer():
    asking = Question("range", last=LastUnits("1d", 1, "day", at("2026-01-20")))
    for records in ([], [sketched(0)], [closed(0, 4, pipeline="other")]):
        with pytest.raises(NothingFound, match="pipeline views has published nothing yet: no window of it is closed"):
            answer(Topics(records), VIEWS, asking)


def test_the_answer_is_that_of_the_same_span_asked_by_its_borders():
    records = [sketched(n) for n in range(12)] + [closed(0, 12)]
    asking = question("range", span(4, 12))
    by_last = Question("range", last=LastUnits("2h", 2, "hour", at("2026-02-01")))
    assert answer(Topics(records), VIEWS, by_last) == answer(Topics(records), VIEWS, asking)
    too_early = Question("range", last=LastUnits("5h", 5, "hour", at("2026-02-01")))
    (row,) = answer(Topics(records), VIEWS, too_early).rows
    assert (row.window.start_ms, row.released, row.windows) == (T0 - 2 * HOUR_MS, 12, 20)
