"""Questions to a pipeline that released windows, hours and days from raw, against exact sets and naive covers."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from reference.naive_cover import naive_cover
from reference.naive_days import day_borders
from support.embedded_runs import asked, require_near, run_here, write_config, write_events

ZONE = "Asia/Kathmandu"
QUARTER_MS, HOUR_MS = 900_000, 3_600_000
SPANS = """
[[spans]]
size = "hour"
epsilon = 4
[[spans]]
size = "day"
epsilon = 8
"""


def at(text: str) -> int:
    """Milliseconds of a local time."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE)).timestamp() * 1000)


START, END = at("2026-03-08 06:00"), at("2026-03-17 03:00")
"""Counting begins inside a Sunday and ends inside a Tuesday, neither of which is released as a day."""


def visits():
    """(time, page, user): of /home new and returning users in each quarter, of /rare some at five o'clock."""
    for number, start in enumerate(range(START, END, QUARTER_MS)):
        for n in range(4):
            yield start + n * 200_000, "/home", f"new {number} {n}" if n % 2 else f"old {number % 60} {n}"
        if datetime.fromtimestamp(start / 1000, ZoneInfo(ZONE)).strftime("%H%M") == "0500":
            yield from ((start + n, "/rare", f"rare {n}") for n in range(30))


def distinct(page: str, low: int, high: int) -> int:
    return len({user for when, where, user in visits() if where == page and low <= when < high})


@pytest.fixture(scope="module")
def app(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("spans")
    write_events(folder / "in.jsonl", ({"page": page, "user": user, "at": when} for when, page, user in visits()))
    start, end = (datetime.fromtimestamp(time / 1000, UTC).isoformat() for time in (START, END))
    shape = {"buckets": 256, "levels": 14, "epsilon": 8}
    config = write_config(folder, zone=ZONE, start=start, end=f"end = {end}", **shape)
    config.write_text(config.read_text() + SPANS)
    run_here(config)
    return config


def naive_releases(low: int, high: int) -> dict[str, int]:
    """How many releases of which span cover [low, high), of all that the pipeline made."""
    days = day_borders(ZONE, at("2026-03-08 00:00"), END)
    windows = {(start, start + QUARTER_MS): "15m" for start in range(START, END, QUARTER_MS)}
    hours = range(-(-START // HOUR_MS) * HOUR_MS, END - HOUR_MS + 1, HOUR_MS)
    windows |= {(start, start + HOUR_MS): "hour" for start in hours}
    windows |= {day: "day" for day in pairwise(days[1:])}
    in_quarters = {(low // QUARTER_MS, high // QUARTER_MS): name for (low, high), name in windows.items()}
    found = [in_quarters[each] for each in naive_cover(in_quarters, low // QUARTER_MS, high // QUARTER_MS)]
    return {name: found.count(name) for name in ("day", "hour", "15m") if name in found}


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("2026-03-09 00:00", "2026-03-12 00:00"),
        ("2026-03-09 18:00", "2026-03-12 12:00"),
        ("2026-03-08 06:00", "2026-03-10 00:15"),
        ("2026-03-09 05:45", "2026-03-09 07:45"),
        ("2026-03-09 05:30", "2026-03-09 07:30"),
        ("2026-03-15 23:45", "2026-03-17 03:00"),
    ],
)
def test_any_span_is_covered_by_days_hours_and_windows(app, low, high):
    """Hours are those of UTC, which begin at :45 here."""
    (row,) = asked(app, "--from", low, "--to", high, "--key", "/home")
    assert row["releases"] == naive_releases(at(low), at(high))
    assert list(row["releases"]) == [name for name in ("day", "hour", "15m") if name in row["releases"]]
    assert (row["windows"], row["missing"], row["complete"]) == (row["released"], [], True)
    exact = distinct("/home", at(low), at(high))
    assert row["low"] <= 1.2 * exact
    assert row["high"] is None or row["high"] >= 0.8 * exact


def test_days_weeks_and_the_last_days(app):
    days = asked(app, "--by", "day", "--key", "/home")
    assert [(row["origin"], row["releases"], row["windows"]) for row in days] == [("raw", {"day": 1}, 1)] * len(days)
    assert len(days) == 8, "of the first and the last day there is no release"
    first, second, third = asked(app, "--by", "week", "--key", "/home")
    assert (second["origin"], second["releases"], second["missing"]) == ("merged", {"day": 7}, [])
    require_near(second, distinct("/home", at("2026-03-09"), at("2026-03-16")))
    assert first["releases"] == naive_releases(START, at("2026-03-09"))
    assert (first["missing"], first["missing_ms"]) == (
        [{"from": "2026-03-01T18:15:00Z", "to": "2026-03-08T00:15:00Z"}],
        at("2026-03-08 06:00") - at("2026-03-02 00:00"),
    )
    assert third["complete"] is False
    (week,) = asked(app, "--last", "7d", "--key", "/home")
    assert (week["from"], week["to"]) == ("2026-03-09T18:15:00Z", "2026-03-16T18:15:00Z"), "up to the end of Monday"
    assert week["releases"] == {"day": 7}
    (one,) = asked(app, "--last", "1d", "--key", "/home")
    assert (one["origin"], one["releases"]) == ("raw", {"day": 1})
    same = ("from", "to", "status", "epsilon")
    assert [one[name] for name in same] == [days[-1][name] for name in same]
    assert one["estimate"] == pytest.approx(days[-1]["estimate"], rel=1e-5)
    require_near(one, distinct("/home", at("2026-03-16"), at("2026-03-17")))
    (hours,) = asked(app, "--last", "5h", "--key", "/home")
    assert (hours["releases"], hours["to"]) == ({"hour": 5}, "2026-03-16T21:00:00Z")


def test_windows_hours_and_days_stand_under_names_of_their_own(app):
    for grain, name, count in (("window", "15m", 8), ("hour", "hour", 2)):
        rows = asked(app, "--by", grain, "--last", "2h", "--key", "/home")
        assert [(row["origin"], row["releases"]) for row in rows] == [("raw", {name: 1})] * count
    for start, end in (("2026-03-09", "2026-03-16"), ("2026-03-09", "2026-03-10")):
        (row,) = asked(app, "--from", start, "--to", end, "--key", "/home")
        assert row["origin"] == ("raw" if row["releases"] == {"day": 1} else "merged")


def test_a_key_of_one_quarter_a_day(app):
    """Its days are known, and what no release of it covers is empty."""
    (row,) = asked(app, "--from", "2026-03-09 00:00", "--to", "2026-03-12 12:00", "--key", "/rare")
    assert row["releases"] == {"day": 3, "hour": 1}
    assert (row["missing"], row["status"]) == ([], "ok")
    before, after = 4 + 3, 6 + 1  # 00:00 to 04:45 and 05:45 to 12:00, where hours begin at :45
    assert row["windows"] == row["released"] + before + after
