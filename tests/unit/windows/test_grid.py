"""Borders of windows, against a calendar that asks every quarter of an hour for its date."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.naive_days import day_borders, month_borders, week_borders
from support.rollup_runs import HOUR_MS, MINUTE_MS, QUARTER_MS, at

from sfm_stream.types import Window
from sfm_stream.windows.grid import CalendarGrid, FixedGrid, fixed_size_ms, grid_of, windows_between

NAIVE = {"day": day_borders, "week": week_borders, "month": month_borders}
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo", "Atlantic/Azores"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", NAIVE)
def test_borders_of_a_zone_over_a_year(zone, unit):
    """2018: clocks change in Brazil over midnight too."""
    grid = grid_of(unit, zone)
    first = grid.floor(at("2018-01-20"))
    borders = NAIVE[unit](zone, first, at("2019-02-10"))
    assert [grid.floor(each) for each in borders] == borders
    assert [grid.end(start) for start in borders[:-1]] == borders[1:]
    inside = [time for start, end in pairwise(borders) for time in (start, start + 1, (start + end) // 2, end - 1)]
    floors = [start for start in borders[:-1] for _ in range(4)]
    assert [grid.floor(time) for time in inside] == floors
    assert grid.floors(np.array(inside)).tolist() == floors
    assert [grid.ceil(time) for time in inside] == [
        each for start, end in pairwise(borders) for each in (start, end, end, end)
    ]
    assert grid.ends(np.array(borders[:-1])).tolist() == borders[1:]
    assert grid.count(borders[0], borders[-1]) == len(borders) - 1
    assert list(windows_between(grid, borders[0], borders[-1])) == [Window(*each) for each in pairwise(borders)]
    assert max(end - start for start, end in pairwise(borders)) <= grid.longest_ms


@given(st.integers(0, 1 << 45), st.sampled_from(["500ms", "90s", "5m", "15m", "1h", "hour"]))
def test_borders_of_one_length(time_ms, name):
    grid, size = grid_of(name, "Asia/Kathmandu"), fixed_size_ms(name)
    low = grid.floor(time_ms)
    assert low <= time_ms < low + size
    assert low % size == 0
    assert (grid.end(low), grid.ceil(time_ms)) == (low + size, low + size if low < time_ms else low)
    assert grid.floors(np.array([time_ms, low])).tolist() == [low, low]
    assert grid.ends(np.array([low])).tolist() == [low + size]
    assert (grid.count(low, low + 7 * size), grid.longest_ms) == (7, size)


def test_names_of_spans():
    assert grid_of("15m", "UTC") == FixedGrid(QUARTER_MS)
    assert grid_of("hour", "Asia/Kathmandu") == grid_of("1h", "UTC") == FixedGrid(HOUR_MS)
    assert grid_of("week", "Asia/Kathmandu") == CalendarGrid("week", "Asia/Kathmandu")
    assert [fixed_size_ms(name) for name in ("90s", "hour", "day", "month")] == [90_000, 60 * MINUTE_MS, None, None]


def test_columns_that_are_empty_or_begin_before_1970():
    grid = grid_of("day", "Europe/Berlin")
    nothing = np.array([], np.int64)
    assert (len(grid.floors(nothing)), len(grid.ends(nothing))) == (0, 0)
    floors = grid.floors(np.array([-1, at("2026-03-29T12:00")]))
    assert floors[1] == at("2026-03-28T23:00")
