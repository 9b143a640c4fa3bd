"""Borders of windows: those of a fixed length, and of days, weeks and months as a plain walk over dates finds them."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_stream.units import DAY_MS, FOREVER_MS, HOUR_MS
from sfm_stream.windows.grid import CalendarGrid, FixedGrid, _borders_of, fixed_size_ms, grid_of, windows_between

ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia"]
YEARS = range(2010, 2012)


def midnight(day, zone):
    """The first instant that shows this date or a later one, found by search in steps of half an hour."""
    low = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) - 16 * 3600
    return 1000 * next(
        second for second in range(low, low + 32 * 3600, 1800) if datetime.fromtimestamp(second, zone).date() >= day
    )


def walk(unit, zone):
    """The borders from the year before YEARS to the year behind them."""
    info, day, borders = ZoneInfo(zone), date(YEARS[0] - 1, 1, 1), []
    while day.year <= YEARS[-1] + 1:
        if unit == "day" or (unit == "week" and day.isoweekday() == 1) or (unit == "month" and day.day == 1):
            borders.append(midnight(day, info))
        day += timedelta(days=1)
    return sorted(set(borders))


BORDERS = {("month", zone): walk("month", zone) for zone in ZONES}
BORDERS |= {(unit, zone): walk(unit, zone) for unit in ("day", "week") for zone in ZONES[-3:]}
TIMES = st.integers(
    int(datetime(YEARS[0], 1, 1, tzinfo=UTC).timestamp()) * 1000,
    int(datetime(YEARS[-1], 12, 31, tzinfo=UTC).timestamp()) * 1000,
)


@given(st.sampled_from(sorted(BORDERS)), TIMES, st.integers(-1, 1), st.booleans())
def test_calendar_borders_are_those_of_a_walk_over_dates(which, time, beside, near):
    borders, grid = BORDERS[which], CalendarGrid(*which)
    if near:  # a border, or the millisecond beside it
        time = borders[bisect_right(borders, time) - 1] + beside
    place = bisect_right(borders, time) - 1
    assert grid.floor(time) == borders[place]
    assert grid.end(borders[place]) == borders[place + 1]
    assert grid.ceil(time) == (time if borders[place] == time else borders[place + 1])
    assert borders[place + 1] - borders[place] <= grid.longest_ms


@given(
    st.sampled_from([*(CalendarGrid(*which) for which in BORDERS), FixedGrid(HOUR_MS), FixedGrid(7)]),
    st.lists(st.one_of(TIMES, st.integers(0, 3 * DAY_MS), st.just(-1)), max_size=20),
)
def test_columns_are_like_single_times(grid, times):
    column = np.array(times, np.int64)
    starts = grid.floors(column)
    known = column >= 0
    assert starts[known].tolist() == [grid.floor(time) for time in times if time >= 0]
    assert (starts[~known] < 0).all()
    assert grid.ends(starts)[known].tolist() == [grid.end(grid.floor(time)) for time in times if time >= 0]


def test_days_on_which_clocks_change_and_a_date_that_was_left_out():
    berlin, howe, apia = (
        CalendarGrid("day", zone) for zone in ("Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia")
    )

    def hours(grid, *day):
        noon = int(datetime(*day, 12, tzinfo=ZoneInfo(grid.zone)).timestamp()) * 1000
        return (grid.end(grid.floor(noon)) - grid.floor(noon)) / HOUR_MS

    assert [hours(berlin, 2026, *day) for day in ((3, 28), (3, 29), (10, 25))] == [24, 23, 25]
    assert [hours(howe, 2026, *day) for day in ((4, 5), (10, 4))] == [24.5, 23.5]
    assert hours(apia, 2011, 12, 29) == 24
    behind = apia.end(apia.floor(int(datetime(2011, 12, 29, 12, tzinfo=ZoneInfo("Pacific/Apia")).timestamp()) * 1000))
    assert datetime.fromtimestamp(behind / 1000, ZoneInfo("Pacific/Apia")).date() == date(2011, 12, 31)


@pytest.mark.parametrize("unit", ["day", "week", "month"])
def test_windows_follow_each_other_and_are_counted(unit):
    grid = CalendarGrid(unit, "Europe/Berlin")
    low, high = grid.floor(1_600_000_000_000), grid.floor(1_700_000_000_000)
    windows = list(windows_between(grid, low, high))
    assert (windows[0].start_ms, windows[-1].end_ms) == (low, high)
    assert all(before.end_ms == after.start_ms for before, after in pairwise(windows))
    assert grid.count(low, high) == len(windows)
    assert grid.count(low, low) == 0 == len(list(windows_between(grid, low, low)))


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"])
def test_windows_of_far_years_are_counted_without_a_look_at_each(unit, zone):
    grid = CalendarGrid(unit, zone)
    near, far, last = (grid.floor(int(datetime(y, 7, 9, tzinfo=UTC).timestamp()) * 1000) for y in (2190, 2207, 9998))
    inner = grid.floor(int(datetime(2203, 1, 1, tzinfo=UTC).timestamp()) * 1000)
    for low, high in ((near, far), (inner, far), (near, inner), (inner, inner), (near, far + 1), (inner, far - 1)):
        assert grid.count(low, high) == sum(1 for start in starts_from(grid, low, high))
    before = _borders_of.cache_info().misses
    assert grid.count(near, last) + grid.count(last, FOREVER_MS) == grid.count(near, FOREVER_MS)
    assert grid.count(far, last) > 12 * 7000 * {"month": 1, "week": 4, "day": 30}[unit]
    assert _borders_of.cache_info().misses - before <= 8


def starts_from(grid, low, high):
    while low < high:
        yield low
        low = grid.end(low)


def test_the_last_time_of_all_has_a_window():
    last = 253_402_300_799_999
    for unit in ("day", "week", "month"):
        grid = CalendarGrid(unit, "America/New_York")
        assert grid.floor(last) <= last < grid.end(grid.floor(last)) <= FOREVER_MS
        assert grid.floors(np.array([last])).tolist() == [grid.floor(last)]


def test_a_few_wrong_times_cost_no_walk_through_the_ages():
    """Between 1970 and the year 9999 are three million days: none of them is looked up for a record that is dropped."""
    low, high = (int(datetime(2026, 1, day, tzinfo=ZoneInfo("Asia/Kolkata")).timestamp()) * 1000 for day in (1, 20))
    grid = CalendarGrid("day", "Asia/Kolkata")
    times = np.array([low, high, -1, 0, low - 1, 253_402_300_799_999, low + DAY_MS], np.int64)
    before = _borders_of.cache_info().misses
    starts = grid.floors(times, low, high)
    assert _borders_of.cache_info().misses - before <= 4
    assert starts[[0, 1, 6]].tolist() == [low, high, low + DAY_MS]
    assert (starts[2:5] < low).all()
    assert starts[5] in {low + day * DAY_MS for day in range(20)}


def test_spans_by_name():
    assert [fixed_size_ms(name) for name in ("5m", "hour", "day")] == [300_000, HOUR_MS, None]
    assert grid_of("hour", "Asia/Kolkata") == FixedGrid(HOUR_MS)
    assert grid_of("week", "Asia/Kolkata") == CalendarGrid("week", "Asia/Kolkata")
