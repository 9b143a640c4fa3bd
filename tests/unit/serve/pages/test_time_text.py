"""Times on axes and in words, in a zone, held to a naive search of its clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sfm_stream.serve.pages.time_text import MONTHS, axis_times, span_words
from sfm_stream.types import Window
from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS
from sfm_stream.windows.grid import grid_of

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")


def ms(*parts: int, zone: str = "UTC") -> int:
    return round(datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def naive(start_ms: int, end_ms: int, zone: str, label: str) -> list[int]:
    """Every quarter of an hour whose clock or calendar reads as a label, by looking at each of them."""
    found, at = [], datetime.fromtimestamp(start_ms / 1000, UTC)
    while at.timestamp() * 1000 <= end_ms:
        shown = at.astimezone(ZoneInfo(zone))
        before = (at - timedelta(minutes=15)).astimezone(ZoneInfo(zone))
        if ":" in label:
            is_one = f"{shown:%H:%M}" == label
        else:
            is_one = f"{shown.day} {MONTHS[shown.month - 1][:3]}" == label and shown.date() != before.date()
        if is_one:
            found.append(round(at.timestamp() * 1000))
        at += timedelta(minutes=15)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("days", [1, 3, 9, 40])
def test_ticks_are_where_the_clock_of_the_zone_reads_their_label(zone, days):
    start_ms = ms(2026, 3, 27, zone=zone)
    end_ms = start_ms + days * DAY_MS
    ticks = axis_times(start_ms, end_ms, zone, 14)
    assert 2 <= len(ticks) <= 14
    for time_ms, label, _ in ticks:
        assert time_ms in naive(start_ms, end_ms, zone, label), label
    assert [each[0] for each in ticks] == sorted({each[0] for each in ticks})


def test_the_finest_unit_that_fits_is_named_and_none_below_the_least():
    start_ms = ms(2026, 1, 5)
    labels = {span: [label for _, label, _ in axis_times(start_ms, start_ms + span, "UTC", 8)] for span in (
        HOUR_MS, 6 * HOUR_MS, 2 * DAY_MS, 7 * DAY_MS, 40 * DAY_MS, 300 * DAY_MS, 5000 * DAY_MS
    )}  # fmt: skip
    assert labels[HOUR_MS] == ["5 Jan", "00:15", "00:30", "00:45", "01:00"]
    assert labels[6 * HOUR_MS][:2] == ["5 Jan", "01:00"]
    assert labels[2 * DAY_MS] == ["5 Jan", "12:00", "6 Jan", "12:00", "7 Jan"]
    assert labels[40 * DAY_MS] == ["5 Jan", "12 Jan", "19 Jan", "26 Jan", "2 Feb", "9 Feb"]
    assert labels[300 * DAY_MS] == ["Apr", "Jul", "Oct"]
    assert labels[5000 * DAY_MS] == ["2030", "2035"]
    of_days = axis_times(start_ms, start_ms + 2 * DAY_MS, "UTC", 14, round(0.9 * DAY_MS))
    assert [label for _, label, _ in of_days] == ["5 Jan", "6 Jan", "7 Jan"]


def test_day_borders_are_strong_among_hours():
    start_ms = ms(2026, 1, 5, 18)
    ticks = axis_times(start_ms, start_ms + DAY_MS, "UTC", 14)
    assert [label for _, label, strong in ticks if strong] == ["6 Jan"]


@pytest.mark.parametrize(
    ("start", "length_ms", "grain", "words"),
    [
        ((2026, 3, 28, 0), DAY_MS, "day", "Sat 28 Mar 2026"),
        ((2026, 3, 29, 0), 23 * HOUR_MS, "day", "Sun 29 Mar 2026 (23 hours)"),
        ((2026, 3, 28, 6), HOUR_MS, "hour", "Sat 28 Mar 2026 06:00 to 07:00"),
        ((2026, 3, 28, 23), HOUR_MS, "hour", "Sat 28 Mar 2026 23:00 to 00:00"),
        ((2026, 3, 28, 12), DAY_MS, "range", "Sat 28 Mar 2026 12:00 to Sun 29 Mar 2026 13:00"),
        ((2026, 3, 28, 0), 47 * HOUR_MS, "range", "Sat 28 Mar 2026 to Sun 29 Mar 2026"),
        ((2026, 3, 1, 0), 31 * DAY_MS - HOUR_MS, "range", "March 2026"),
        ((2026, 3, 23, 0), 7 * DAY_MS - HOUR_MS, "week", "Week from Mon 23 Mar 2026"),
    ],
)
def test_spans_in_words(start, length_ms, grain, words):
    start_ms = ms(*start, zone="Europe/Berlin")
    assert span_words(Window(start_ms, start_ms + length_ms), grain, "Europe/Berlin") == words


def test_the_hour_that_comes_twice_is_told_apart():
    first_ms = ms(2026, 10, 25, 2, zone="Europe/Berlin")
    words = [
        span_words(Window(at, at + 5 * MINUTE_MS), "window", "Europe/Berlin") for at in (first_ms, first_ms + HOUR_MS)
    ]
    assert words[0] != words[1]
    assert "+02:00" in words[0]
    assert "+01:00" in words[1]


def test_ticks_of_months_are_borders_of_months():
    start_ms, end_ms = ms(2025, 2, 1, zone="America/New_York"), ms(2026, 3, 1, zone="America/New_York")
    ticks = axis_times(start_ms, end_ms, "America/New_York", 14)
    grid = grid_of("month", "America/New_York")
    assert [label for _, label, _ in ticks][:3] == ["Feb", "Mar", "Apr"]
    assert all(grid.floor(time_ms) == time_ms for time_ms, _, _ in ticks)
    assert [label for _, label, strong in ticks if strong] == ["2026"]
