"""What commands say beside their answers: a configuration that reads back, progress, mistakes named once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedded_runs import MINUTE_MS, START_MS, here, rollups, run_here, write_config, write_events

from sfm_stream.cli import run
from sfm_stream.cli.toml import _quoted
from sfm_stream.config.config import load_config, parse_config
from sfm_stream.errors import ConfigError

CLUSTER = """[kafka]
bootstrap = ["nowhere.invalid:9092", "b:1"]
topic = "views"
timestamps = "log_append_time"
release_slot = "90s"
"""


@pytest.fixture
def app(tmp_path):
    write_events(tmp_path / "in.jsonl", ({"page": "p", "user": n, "at": START_MS + n * MINUTE_MS} for n in range(120)))
    return write_config(tmp_path)


def on_a_cluster(app: Path) -> Path:
    text = re.sub(r"\[output\]\n.*\n", "", re.sub(r"\[input\]\n.*\n.*\n", CLUSTER, app.read_text()))
    app.write_text(text)
    return app


# config show


CHANGES = [
    {},
    {"grace": "1500ms", "zone": "Europe/Berlin", "epsilon": "2.50"},
    {"keys": "selected", "privacy": "epsilon_selection = 1e-1\ndelta_selection = 1e-9"},
    {"keys": "declared", "privacy": 'declared = ["a\\u007f\\"b\\\\", "\\U0001F600", 7, "7"]'},
    {
        "keys": "declared",
        "key": '["page", "site"]',
        "privacy": 'declared = [["a", 1]]\ndeclared_from = [{since = 2026-03-01T00:00:00Z, keys = [["b", 2]]}]',
    },
    {"input": 'odd\\" \\\\ \\t\\u001b name.jsonl', "output": "größe.sqlite"},
]


@pytest.mark.parametrize("change", CHANGES)
def test_config_show_prints_a_configuration_that_reads_back(app, change):
    write_config(app.parent, **change)
    done = here("config", "show", app)
    assert (done.returncode, done.stderr) == (0, "")
    assert parse_config(done.stdout, app.parent).settings == load_config(app).settings
    shown = tomllib.loads(done.stdout)
    assert shown["window"]["size"] == "15m"
    assert "latest" in shown["event"]
    assert "# Pipeline views." in done.stdout


def test_config_show_of_a_cluster_reads_back(app):
    done = here("config", "show", on_a_cluster(app))
    assert (done.returncode, done.stderr) == (0, "")
    assert parse_config(done.stdout, app.parent).settings == load_config(app).settings
    assert tomllib.loads(done.stdout)["kafka"]["release_slot"] == "90s"


@given(st.text())
def test_any_text_of_a_setting_reads_back(text):
    assert tomllib.loads(f"x = {_quoted(text)}") == {"x": text}


def test_a_cluster_shows_no_fingerprint_of_one_partition(app):
    import json

    assert json.loads(here("config", "show", app, "--json").stdout)["fingerprint"] == load_config(app).fingerprint(1)
    on_a_cluster(app)
    assert json.loads(here("config", "show", app, "--json").stdout)["fingerprint"] is None


# Mistakes in a configuration


@pytest.mark.parametrize("size", ["7m", "0m", "25m", "2h"])
def test_a_wrong_window_size_is_said_once(app, size):
    write_config(app.parent, size=size, zone="Asia/Kolkata")
    with pytest.raises(ConfigError) as caught:
        load_config(app)
    (problem,) = caught.value.problems
    assert problem.startswith("window.size: ")


def test_a_wrong_earliest_time_is_named_as_it_is_written(app):
    app.write_text(app.read_text().replace("latest = ", "earliest = 2027-01-01T00:00:00Z\nlatest = "))
    done = here("config", "show", app)
    assert done.returncode == 3
    assert "event.earliest, latest: need 1970 <= earliest <= latest" in done.stderr
    assert "_ms" not in done.stderr


@pytest.mark.parametrize("listed", ["", "declared = []", "declared = [[]]"])
def test_one_count_for_all_needs_no_list_of_keys(app, listed):
    write_config(app.parent, key="[]", keys="declared", privacy=listed)
    run_here(app)
    assert {record.released for record in rollups(app.parent / "out.sqlite") if record.grain == "hour"} == {4}


def test_several_keys_need_their_list(app):
    write_config(app.parent, keys="declared")
    with pytest.raises(ConfigError, match=r"privacy\.declared: the list of keys is needed"):
        load_config(app)


@pytest.mark.parametrize("topic", ["my_views_outbox", "my.views_sketches", "my_views.dead-letters"])
def test_an_input_whose_name_is_in_the_way_of_a_topic_is_refused(app, topic):
    on_a_cluster(app)
    text = app.read_text().replace('id = "views"', 'id = "my.views"').replace('topic = "views"', f'topic = "{topic}"')
    app.write_text(text)
    done = here("config", "show", app)
    assert done.returncode == 3
    assert "Kafka takes '.' and '_' for the same there. Choose another" in done.stderr
    app.write_text(text.replace(topic, "my_views"))
    assert here("config", "show", app).returncode == 0


# Progress


def test_a_long_run_says_how_far_it_is_where_there_is_no_terminal(app, monkeypatch):
    monkeypatch.setattr(run, "SAY_EVERY_S", 0.0)
    done = here("run", app)
    size = (app.parent / "in.jsonl").stat().st_size
    assert done.returncode == 0
    assert "read 120 records" in done.stdout
    lines = done.stderr.splitlines()
    assert lines
    assert lines[-1] == f"counting: {size:,} of {size:,} bytes (100%)"
    assert all(re.fullmatch(r"counting: [\d,]+ of [\d,]+ bytes \(\d+%\)", line) for line in lines)


def test_a_short_run_says_nothing_of_it(app):
    assert here("run", app).stderr == ""
