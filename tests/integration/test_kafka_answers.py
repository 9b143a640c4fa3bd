"""On a real broker: answers of a pipeline that withholds small keys, keys as text, names that Kafka takes for one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.embedded_runs import here
from support.kafka_runs import MINUTE_MS, START_MS, Event, Run, Worker, wait_until, workers
from support.kafka_topics import make_topic

from sfm_stream.answers import Asked, open_answers
from sfm_stream.readable import instant

pytestmark = pytest.mark.kafka
SELECTED = 'epsilon = 4\nkeys = "selected"\nepsilon_selection = 1\ndelta_selection = 1e-9'
KEY = "/post/[id]\x1b"
SHOWN = '"/post/[id]\\u001b"'


def documents(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_union_with_withheld_windows_is_a_lower_bound(kafka: str, tmp_path: Path) -> None:
    """Two quarters of an hour have 60 users, two have three, which selection withholds (once in 5e7 times not)."""
    run = Run(kafka, tmp_path, partitions=1, settings={"size": "15m", "privacy": SELECTED})
    done = here("estimate", run.config(), "--by", "hour")
    assert done.returncode == 9
    assert f"pipeline {run.id} has published nothing yet" in done.stderr
    times = [(q, START_MS + q * 15 * MINUTE_MS + n * 1000) for q in range(4) for n in range(60 if q % 2 else 3)]
    run.produce(Event(KEY, f"{q} {at}", at, at) for q, at in times)
    with workers() as started:
        started.append(Worker(run.config(), first=True))
        wait_until(lambda: here("estimate", run.config(), "--by", "window").returncode == 0, 120, started)
        started.append(Worker(run.config(), "rollup"))
        wait_until(lambda: here("estimate", run.config(), "--by", "hour").returncode == 0, 120, started)
        for worker in started:
            assert worker.stop() == 0
    start = instant(START_MS)
    hour = ("--from", start, "--to", instant(START_MS + 60 * MINUTE_MS))
    for question in (("--by", "hour"), hour):
        (row,) = documents(here("estimate", run.config(), *question, "--key", SHOWN, "--json"))
        assert (row["key"], row["from"], row["status"], row["high"]) == ([KEY], start, "lower_bound", None)
        assert (row["released"], row["windows"]) == (2, 4)
        table = here("estimate", run.config(), *question).stdout
        assert SHOWN in table
        assert "lower_bound" in table
        assert "\x1b" not in table
    (week,) = documents(here("estimate", run.config(), "--by", "week", "--json"))
    assert (week["origin"], week["releases"], week["status"]) == ("merged", {"15m": 2}, "lower_bound")
    sets_of_a_topic(run.config())
    done = here("export", run.config(), "--out", tmp_path / "out.csv")
    assert done.returncode == 0
    assert (tmp_path / "out.csv").read_text().count(",ok,") == 2
    done = here("estimate", run.config(), "--from", instant(START_MS + MINUTE_MS), "--by", "window")
    assert done.returncode == 2
    assert "is inside a window of 15m" in done.stderr


def sets_of_a_topic(config: Path) -> None:
    """What the client asks of topics: two windows of 60 users each, none of them in both, and two withheld ones."""
    windows = [
        Asked(since=instant(START_MS + n * 15 * MINUTE_MS), until=instant(START_MS + (n + 1) * 15 * MINUTE_MS))
        for n in (1, 3)
    ]
    with open_answers(config) as views:
        assert list(views.keys()) == list(views.keys("ID")) == [SHOWN]
        (joined,) = views.estimates([SHOWN], since=windows[0].since, until=windows[1].until, joined=True)
        assert (joined["keys"], joined["status"], joined["windows"]) == ([[KEY]], "lower_bound", 3)
        assert joined["low"] <= 120
        (top,) = views.top(5, since=windows[0].since, until=windows[0].until)
        assert (top["key"], top["rank_high"], top["others_withheld"]) == ([KEY], 1, True)
        assert abs(top["estimate"] - 60) <= 6 * top["standard_error"]
        (change,) = views.compare(*windows)
        assert change["difference"]["sign"] is None or abs(change["difference"]["value"]) > 10
        of_key = (replace(window, keys=[SHOWN]) for window in windows)
        parts = {row["part"]: row for row in views.pair(*of_key)}
        assert parts["both"]["low"] <= 60
        assert abs(parts["either"]["estimate"] - 120) <= 6 * parts["either"]["standard_error"]
        assert views.completeness()["open"] == []
        assert views.estimates([SHOWN], by="window").to_arrow().num_rows == 2


def test_check_finds_names_that_kafka_takes_for_one(kafka: str, tmp_path: Path) -> None:
    run = Run(kafka, tmp_path)
    other = make_topic(kafka, f"{run.id}_outbox")
    done = here("check", run.config())
    assert done.returncode == 3
    assert f"pipeline.id: topic {run.id}.outbox cannot be made beside {other}" in done.stderr
    started = here("ingest", run.config(), "--first-start", "--operator", "")
    assert started.returncode == 3
    assert started.stderr.count("cannot be made beside") == 1
