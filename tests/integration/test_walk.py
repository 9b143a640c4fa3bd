"""One event's way through the whole of it: known input, true counts, estimates for every key, window, hour and day.

False alarms: 5 standard errors of a sub-Gaussian estimate, 5.7e-7 each two-sided; about 200 checks, so below 1.2e-4 a
run (and the coins are real, so no seed hides an unlucky one).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from reference.exact_counter import exact_counts
from support.embedded_runs import HOUR_MS, START_MS, command, write_config

PAGES = ("home", "search", "checkout")


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """Six hours of three pages in windows of 30 minutes: returning visitors, disorder within the grace."""
    folder = tmp_path_factory.mktemp("walk")
    rng = np.random.default_rng(20260101)
    events = []
    for page_number, page in enumerate(PAGES):
        for half_hour in range(12):
            visitors = rng.integers(0, 12_000, 4_000 + 1_000 * page_number)
            at = START_MS + half_hour * HOUR_MS // 2 + rng.integers(0, HOUR_MS // 2, len(visitors))
            events += [(int(t), page, f"u{v:07d}") for t, v in zip(at, visitors, strict=True)]
    events.sort(key=lambda event: event[0] + int(rng.integers(0, 200_000)))
    lines = [json.dumps({"page": p, "user": u, "at": t}).encode() for t, p, u in events]
    (folder / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    config = write_config(folder, size="30m", buckets=4096, levels=24, epsilon=4)
    done = command("run", config, "--json")
    assert done.returncode == 0, done.stderr
    return config, json.loads(done.stdout), exact_counts(lines, "page", "user", "at", timedelta(minutes=30))


def rows(config, grain):
    done = command("estimate", config, "--by", grain, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("grain", ["window", "hour", "day"])
def test_estimates_are_within_five_standard_errors_of_the_truth(walk, grain):
    config, _, truth = walk
    expected = {place[1:]: count for place, count in truth.items() if place[0] == grain}
    found = {
        (row["key"][0], datetime.fromisoformat(row["from"]), datetime.fromisoformat(row["to"])): row
        for row in rows(config, grain)
    }
    assert set(found) == set(expected)
    for place, count in expected.items():
        row = found[place]
        # The day is not over where the input ends: it is published as far as it goes, and says so.
        assert row["complete"] == (grain != "day")
        assert row["status"] == ("lower_bound" if grain == "day" else "ok")
        assert row["standard_error"] <= 0.10 * count, "otherwise this test would say nothing"
        assert abs(row["estimate"] - count) <= 5 * row["standard_error"], (place, count, row["estimate"])
        assert row["low"] <= row["estimate"]
        assert row["high"] is None if grain == "day" else row["estimate"] <= row["high"]


def test_nothing_is_dropped_and_every_window_is_released_once(walk):
    _, report, truth = walk
    assert report["read"] == report["counted"] == sum(12 * (4_000 + 1_000 * n) for n in range(3))
    assert report["dropped"] == {}
    assert report["open_windows"] == 0
    assert report["conflicts"] == 0
    assert report["releases"] == sum(1 for place in truth if place[0] == "window")
    assert report["rollups"] == sum(1 for place in truth if place[0] in ("hour", "day"))


def test_a_union_over_any_span_of_windows(walk):
    """Five windows that are neither an hour nor a day."""
    config, _, _ = walk
    since, until = START_MS + HOUR_MS // 2, START_MS + 3 * HOUR_MS
    span = [datetime.fromtimestamp(t / 1000, UTC).isoformat() for t in (since, until)]
    done = command("estimate", config, "--key", "home", "--from", span[0], "--to", span[1], "--json")
    row = json.loads(done.stdout)
    lines = (config.parent / "in.jsonl").read_bytes().splitlines()
    visitors = {e["user"] for e in map(json.loads, lines) if e["page"] == "home" and since <= e["at"] < until}
    assert row["released"] == row["windows"] == 5
    assert row["complete"]
    assert row["standard_error"] <= 0.10 * len(visitors)
    assert abs(row["estimate"] - len(visitors)) <= 5 * row["standard_error"]
