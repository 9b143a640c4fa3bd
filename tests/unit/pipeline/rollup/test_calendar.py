"""Quarters, hours, local days, weeks and months against a calendar that asks every quarter of an hour for its date."""

from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_days import day_borders, month_borders, week_borders

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.types import Window
from sfm_stream.units import HOUR_MS, QUARTER_MS

MINUTE_MS = 60_000
DAY_MS = 24 * HOUR_MS


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


SINCE = at("2015-01-01")
ZONES = {
    "UTC": "hour",
    "America/New_York": "hour",
    "America/Sao_Paulo": "hour",
    "Atlantic/Azores": "hour",
    "Pacific/Apia": "hour",
    "Antarctica/Troll": "hour",
    "Asia/Kolkata": "quarter",
    "Asia/Kathmandu": "quarter",
    "Australia/Lord_Howe": "quarter",
    "America/St_Johns": "quarter",
    "Asia/Pyongyang": "quarter",
}


@cache
def of(zone, window_ms=MINUTE_MS, since_ms=SINCE):
    return calendar(zone, window_ms, since_ms, until_year=2040)


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_sums_of_hours_or_of_quarters_where_the_zone_needs_them(zone):
    found = of(zone)
    assert found.zone == zone
    assert found.base == ZONES[zone]
    assert found.base_ms == (QUARTER_MS if found.base == "quarter" else HOUR_MS)
    assert found.grains == (("quarter", "hour", "day") if found.base == "quarter" else ("hour", "day"))


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("UTC", 24),
        ("Asia/Kathmandu", 24),
        ("America/New_York", 25),
        ("America/Sao_Paulo", 25),
        ("Australia/Lord_Howe", 24.5),
        ("Asia/Pyongyang", 24.5),
        ("Antarctica/Troll", 26),
    ],
)
def test_the_longest_day_bounds_what_an_item_can_lose(zone, hours):
    assert of(zone).longest_day_ms == hours * HOUR_MS


@pytest.mark.parametrize(
    ("zone", "inside", "start", "end"),
    [
        ("UTC", "2026-03-08T12:00", "2026-03-08T00:00", "2026-03-09T00:00"),
        ("America/New_York", "2026-03-08T12:00", "2026-03-08T05:00", "2026-03-09T04:00"),  # 23 hours
        ("America/New_York", "2026-11-01T12:00", "2026-11-01T04:00", "2026-11-02T05:00"),  # 25 hours
        ("Asia/Kolkata", "2026-03-08T12:00", "2026-03-07T18:30", "2026-03-08T18:30"),
        ("Asia/Kathmandu", "2026-03-08T12:00", "2026-03-07T18:15", "2026-03-08T18:15"),
        ("Australia/Lord_Howe", "2026-04-04T18:00", "2026-04-04T13:00", "2026-04-05T13:30"),  # 24.5 hours
        ("Australia/Lord_Howe", "2026-10-03T18:00", "2026-10-03T13:30", "2026-10-04T13:00"),  # 23.5 hours
        ("America/Sao_Paulo", "2018-11-04T12:00", "2018-11-04T03:00", "2018-11-05T02:00"),  # 00:00 is skipped
        ("America/Sao_Paulo", "2018-02-17T12:00", "2018-02-17T02:00", "2018-02-18T03:00"),  # 23:00 comes twice
        ("Atlantic/Azores", "2026-10-25T00:30", "2026-10-25T00:00", "2026-10-26T01:00"),  # 00:00 comes twice
        ("Atlantic/Azores", "2026-10-25T01:30", "2026-10-25T00:00", "2026-10-26T01:00"),
        ("Atlantic/Azores", "2026-03-29T12:00", "2026-03-29T01:00", "2026-03-30T00:00"),
    ],
)
def test_known_days(zone, inside, start, end):
    assert of(zone).span("day", at(inside)) == Window(at(start), at(end))


@pytest.mark.parametrize(
    ("zone", "grain", "inside", "start", "end"),
    [
        ("UTC", "week", "2026-01-01T12:00", "2025-12-29T00:00", "2026-01-05T00:00"),  # from Monday, over a year's end
        ("UTC", "month", "2024-02-29T23:59", "2024-02-01T00:00", "2024-03-01T00:00"),
        ("UTC", "month", "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("America/New_York", "week", "2026-03-08T12:00", "2026-03-02T05:00", "2026-03-09T04:00"),  # 167 hours
        ("America/New_York", "week", "2026-11-02T04:59", "2026-10-26T04:00", "2026-11-02T05:00"),  # 169 hours
        ("America/New_York", "month", "2026-03-31T12:00", "2026-03-01T05:00", "2026-04-01T04:00"),
        ("Asia/Kathmandu", "week", "2026-03-08T18:14", "2026-03-01T18:15", "2026-03-08T18:15"),
        ("Australia/Lord_Howe", "week", "2026-04-04T18:00", "2026-03-29T13:00", "2026-04-05T13:30"),  # 168.5 hours
        ("Australia/Lord_Howe", "month", "2026-10-15T00:00", "2026-09-30T13:30", "2026-10-31T13:00"),
        ("Atlantic/Azores", "month", "2026-10-31T12:00", "2026-10-01T00:00", "2026-11-01T01:00"),
    ],
)
def test_known_weeks_and_months(zone, grain, inside, start, end):
    assert of(zone).span(grain, at(inside)) == Window(at(start), at(end))


def test_a_week_without_one_of_its_days_has_six():
    """Samoa left out Friday, 30 December 2011."""
    samoa = calendar("Pacific/Apia", MINUTE_MS, at("2011-06-01"), 2013)
    week = samoa.span("week", at("2011-12-31T00:00"))
    assert week == Window(at("2011-12-26T10:00"), at("2012-01-01T10:00"))
    assert samoa.span("month", at("2011-12-31T00:00")).end_ms == at("2011-12-31T10:00")


def test_a_date_that_a_zone_leaves_out_takes_no_time():
    """Samoa went from 29 December 2011 to the 31st."""
    samoa = calendar("Pacific/Apia", MINUTE_MS, at("2011-06-01"), 2013)
    left, entered = samoa.span("day", at("2011-12-30T09:59")), samoa.span("day", at("2011-12-30T10:00"))
    assert left == Window(at("2011-12-29T10:00"), at("2011-12-30T10:00"))
    assert entered == Window(at("2011-12-30T10:00"), at("2011-12-31T10:00"))


def test_clocks_that_go_back_over_midnight_do_not_open_the_old_day_again():
    """In St. John's, until 2011, 00:01 became 23:01 of the day before."""
    st_johns = calendar("America/St_Johns", MINUTE_MS, at("2009-01-01"), 2012)
    day = Window(at("2010-11-07T02:30"), at("2010-11-08T03:30"))
    for inside in ("2010-11-07T02:30", "2010-11-07T02:31", "2010-11-07T03:29", "2010-11-07T03:30", "2010-11-08T03:29"):
        assert st_johns.span("day", at(inside)) == day
    assert st_johns.span("day", at("2010-11-07T02:29")).end_ms == day.start_ms
    assert st_johns.longest_day_ms == 25 * HOUR_MS


# years with every kind of change: the end of Brazil's DST, Samoa's, Pyongyang's half hour, and one of the future
YEARS = [(zone, year) for zone in ZONES for year in (2018, 2026)] + [
    ("America/St_Johns", 2010),
    ("America/St_Johns", 2007),
    ("Pacific/Apia", 2011),
    ("Asia/Pyongyang", 2015),
]


@pytest.mark.parametrize(("zone", "year"), YEARS)
def test_days_of_a_whole_year_are_those_of_the_naive_calendar(zone, year):
    found = of(zone, since_ms=at(f"{year - 1}-06-01"))
    low, high = at(f"{year}-01-01T12:00"), at(f"{year}-12-31T12:00")
    first = found.span("day", low).start_ms
    naive = day_borders(zone, first, high)
    mine, time_ms = [first], first
    while (time_ms := found.span("day", time_ms).end_ms) < high:
        mine.append(time_ms)
    assert mine == naive
    for start, end in pairwise(naive):
        for inside in (start, start + 1, (start + end) // 2, end - QUARTER_MS, end - 1):
            assert found.span("day", inside) == Window(start, end)


@pytest.mark.parametrize(("zone", "year"), YEARS)
@pytest.mark.parametrize(("grain", "oracle"), [("week", week_borders), ("month", month_borders)])
def test_weeks_and_months_of_a_whole_year_are_those_of_the_naive_calendar(zone, year, grain, oracle):
    found = of(zone, since_ms=at(f"{year - 1}-06-01"))
    naive = oracle(zone, found.span(grain, at(f"{year}-01-01T12:00")).start_ms, at(f"{year}-12-31T12:00"))
    assert len(naive) >= {"week": 52, "month": 12}[grain]
    for start, end in pairwise(naive):
        for inside in (start, start + 1, (start + end) // 2, end - QUARTER_MS, end - 1):
            assert found.span(grain, inside) == Window(start, end)


INSTANTS = st.one_of(
    st.integers(SINCE, at("2039-12-30")),
    st.builds(lambda quarter, by: SINCE + quarter * QUARTER_MS + by, st.integers(0, 800_000), st.integers(-1, 1)),
)


@settings(max_examples=400)
@given(st.sampled_from(sorted(ZONES)), INSTANTS, st.data())
def test_spans_tile_time(zone, time_ms, data):
    """Every instant lies in its span, every instant of the span has the same one, and the next begins where it ends."""
    found = of(zone)
    inner = None
    for grain in (*found.grains, "week", "month"):
        span = found.span(grain, time_ms)
        assert span.start_ms <= time_ms < span.end_ms
        assert not span.start_ms % found.base_ms
        assert not span.end_ms % found.base_ms
        assert found.span(grain, data.draw(st.integers(span.start_ms, span.end_ms - 1))) == span
        assert found.span(grain, span.end_ms).start_ms == span.end_ms
        assert found.span(grain, span.start_ms - 1).end_ms == span.start_ms
        for finer in (found.base, "day") if grain in ("week", "month") else (found.base,):
            part = found.span(finer, time_ms)
            assert span.start_ms <= part.start_ms, f"the {finer} tiles coarser spans"
            assert part.end_ms <= span.end_ms, f"the {finer} tiles coarser spans"
        length = span.end_ms - span.start_ms
        assert length == {"quarter": QUARTER_MS, "hour": HOUR_MS}.get(grain, length)
        assert length <= {"week": 7, "month": 31}.get(grain, 1) * found.longest_day_ms
        inner = inner or span
    assert inner == found.span(found.base, time_ms)


# what is refused


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "UTC\0", "europe", "America"])
def test_an_unknown_zone_is_refused_by_name(zone):
    with pytest.raises(ConfigError, match=r"^rollup\.zone: .* is not an IANA time zone name"):
        calendar(zone, MINUTE_MS, SINCE)


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [("UTC", 60), ("UTC", 30), ("UTC", 20), ("America/New_York", 12), ("Asia/Kolkata", 15), ("Asia/Kathmandu", 5)],
)
def test_windows_that_fill_the_base_spans_fit(zone, minutes):
    assert of(zone, minutes * MINUTE_MS).base_ms % (minutes * MINUTE_MS) == 0


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [
        ("UTC", 45),
        ("UTC", 120),
        ("America/New_York", 7),
        ("Asia/Kolkata", 60),
        ("Asia/Kolkata", 30),  # every day border is a window border, but no quarter is a whole window
        ("Asia/Kolkata", 10),
        ("Australia/Lord_Howe", 30),
        ("Asia/Kathmandu", 30),
        ("Asia/Kathmandu", 10),
    ],
)
def test_windows_that_do_not_fit_are_refused(zone, minutes):
    with pytest.raises(
        ConfigError, match=r'^rollup\.zone: .*choose a window\.size that divides (15|60) min, or "day"$'
    ):
        of(zone, minutes * MINUTE_MS)


@pytest.mark.parametrize(
    ("zone", "since"),
    [("Africa/Monrovia", "1970-06-01"), ("Pacific/Kiritimati", "1975-01-01")],
    ids=["44 min 30 s", "40 min"],
)
def test_days_that_do_not_begin_on_a_quarter_are_refused(zone, since):
    with pytest.raises(ConfigError, match=f"days of {zone} do not begin on quarters of an hour"):
        calendar(zone, 1000, at(since), 1990)
    assert calendar(zone, 1000, at("1990-01-01"), 2000).base == "hour"


def test_days_that_no_record_can_hold_are_refused():
    """Casey moved its clock by three hours, more than once."""
    with pytest.raises(ConfigError, match="have 21 to 27 hours, and only 22 to 26"):
        calendar("Antarctica/Casey", MINUTE_MS, at("2009-01-01"), 2025)
    assert calendar("Antarctica/Casey", MINUTE_MS, at("2024-01-01"), 2030).base == "hour"


def test_a_day_off_the_base_is_an_error_and_not_a_wrong_sum():
    """As when the rules of a zone change under a calendar that was made before."""
    with pytest.raises(StateError, match=r"^rollup\.zone Asia/Kolkata: the day 2026-03-08 does not begin and end on a"):
        Calendar("Asia/Kolkata", "hour", DAY_MS).span("day", at("2026-03-08T12:00"))
