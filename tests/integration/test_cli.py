"""The commands as a user calls them: what they print for people and for programs, and how they end."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from support.embedded_runs import (
    HOUR_MS,
    IN_TIME,
    MINUTE_MS,
    START_MS,
    command,
    markers,
    releases,
    write_config,
    write_events,
)
from support.patience import PATIENCE_S, until


@pytest.fixture
def app(tmp_path):
    write_events(
        tmp_path / "in.jsonl",
        ({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(120)),
    )
    return write_config(tmp_path)


def documents(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_run_says_what_it_did_and_shows_no_bar_in_a_pipe(app):
    done = command("run", app)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "read 120 records, counted 120, dropped 0" in done.stdout
    assert "published 24 releases and 33 roll-ups" in done.stdout


def test_run_shows_a_progress_bar_on_a_terminal(app):
    write_events(app.parent / "in.jsonl", ({"page": "p", "user": n, "at": START_MS + n * 20} for n in range(200_000)))
    master, slave = os.openpty()
    call = [sys.executable, "-m", "sfm_stream.cli", "run", str(app)]
    with subprocess.Popen(call, stderr=slave, stdout=subprocess.PIPE, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass  # the other end was closed
        assert process.wait(PATIENCE_S) == 0
    os.close(master)
    assert b"counting" in shown


def test_estimate_by_every_grain_and_for_one_key(app):
    command("run", app)
    for grain, count in (("window", 24), ("hour", 6), ("day", 3)):
        rows = documents(command("estimate", app, "--by", grain, "--json"))
        assert len(rows) == count
        assert {row["grain"] for row in rows} == {grain}
        assert all(row["low"] <= row["estimate"] and row["confidence"] == 0.95 for row in rows)
    rows = documents(command("estimate", app, "--by", "hour", "--key", "p1", "--json"))
    assert [row["key"] for row in rows] == [["p1"], ["p1"]]
    rows = documents(command("estimate", app, "--from", "2026-01-01", "--to", "2026-01-01T01:00", "--json"))
    assert [(row["grain"], row["released"], row["windows"], row["complete"]) for row in rows] == [
        ("range", 4, 4, True)
    ] * 3
    table = command("estimate", app)
    assert table.returncode == 0
    assert "95 % interval" in table.stdout
    assert "p2" in table.stdout


def test_estimate_of_nothing_says_so(app):
    command("run", app)
    done = command("estimate", app, "--key", "nobody")
    assert done.returncode == 9
    assert "nothing is published" in done.stderr


def test_inspect_decodes_releases_markers_and_rollups(app, tmp_path):
    command("run", app)
    output = app.parent / "out.sqlite"
    rows = documents(command("inspect", output, "--json"))
    assert {row["kind"] for row in rows} == {"release", "marker"}
    assert len(rows) == len(releases(output)) + len(markers(output))
    assert all(
        (abs(row["epsilon_bits"] - 3.6) < 1e-9, row["epsilon_count"], type(row["count"]), row["span"])
        == (True, 0.4, int, "15m")
        for row in rows
        if row["kind"] == "release"
    )
    rows = documents(command("inspect", output, "--topic", "rollups", "--json", "--limit", "4"))
    assert len(rows) == 4
    assert not any("epsilon_bits" in row for row in rows)
    assert {(row["span"], row["origin"], row["epsilon_count"]) for row in rows} == {("15m", "raw", 0.4)}
    assert re.search(r"; noisy\s+count -?\d+ at epsilon\s+0\.4", command("inspect", output, "--limit", "1").stdout)


def test_check_shows_the_sample_without_ids_and_publishes_nothing(app):
    done = command("check", app)
    assert done.returncode == 0
    assert "120 records looked at: ok 120" in done.stdout
    assert "u17" not in done.stdout
    assert not (app.parent / "out.sqlite").exists()
    first, again = (documents(command("check", app, "--json"))[0]["sample"]["records"] for _ in range(2))
    assert first[0]["key"] == first[3]["key"] != first[1]["key"]
    assert first[0]["key"] != again[0]["key"], "digests must not be comparable between calls"


def test_check_of_a_wrong_field_fails(app):
    app.write_text(app.read_text().replace('item = "user"', 'item = "usr"'))
    done = command("check", app)
    assert done.returncode == 4
    assert "item_missing 120" in done.stdout


def test_config_show(app):
    done = command("config", "show", app)
    assert done.returncode == 0
    assert "[window]" in done.stdout
    assert "4-differentially private" in done.stdout
    statement = command("config", "show", app, "--statement").stdout
    assert statement.startswith("Pipeline views.")
    assert "96 windows" in statement
    assert "384" in statement
    shown = documents(command("config", "show", app, "--json"))[0]
    assert shown["settings"]["window"]["size"] == "15m"


def test_config_show_of_a_cluster_shows_where_the_password_is_and_not_what_it_is(app, monkeypatch):
    monkeypatch.setenv("BROKER_SECRET", "do-not-show-it")
    (app.parent / "secret").write_text("do-not-show-it\n")
    cluster = """[kafka]
bootstrap = ["nowhere.invalid:9092"]
topic = "views"
timestamps = "log_append_time"
security = "sasl_tls"
sasl_mechanism = "SCRAM-SHA-512"
username = "counter"
"""
    text = re.sub(r"\[output\]\n.*\n", "", re.sub(r"\[input\]\n.*\n.*\n", "{}", app.read_text()))
    for where in ('password_env = "BROKER_SECRET"', 'password_file = "secret"'):
        app.write_text(text.replace("{}", f"{cluster}{where}\n"))
        shown = documents(command("config", "show", app, "--json"))[0]["settings"]
        assert shown["kafka"]["username"] == "counter"
        assert not {"input", "output"} & shown.keys()
        plain = command("config", "show", app)
        assert plain.returncode == 0
        assert "[kafka]" in plain.stdout
        assert where in plain.stdout
        statement = command("config", "show", app, "--statement").stdout
        assert "all records of one item under one key in one window are removed" in statement
        assert "do-not-show-it" not in json.dumps(shown) + plain.stdout + plain.stderr + statement
    monkeypatch.delenv("BROKER_SECRET")
    app.write_text(text.replace("{}", f'{cluster}password_env = "BROKER_SECRET"\n'))
    done = command("config", "show", app)
    assert done.returncode == 3
    assert "environment variable BROKER_SECRET is not set" in done.stderr


def test_generate_is_seeded_and_runs_from_a_pipe(tmp_path):
    first, second = (command("generate", "--events", "3000", "--seed", "5").stdout for _ in range(2))
    assert first == second
    assert len(first.splitlines()) == 3000
    assert command("generate", "--events", "3000", "--seed", "6").stdout != first
    command("generate", "--events", "3000", "--seed", "5", "--output", tmp_path / "in.jsonl.gz")
    assert gzip.decompress((tmp_path / "in.jsonl.gz").read_bytes()).decode() == first
    config = write_config(tmp_path, input="-", start="1990-01-01T00:00:00Z", limits="max_gap_windows = 100000000")
    config.write_text(config.read_text().replace("start = 1990-01-01T00:00:00Z\n", ""))
    done = command("run", config, "--json", input=first)
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["counted"] > 2500
    assert report["dropped"]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (("epsilon = 4", "epsilon = 40"), 3, "privacy.epsilon: 40 is outside"),
        (("epsilon = 4", "epsilon = nan"), 3, "privacy.epsilon"),
        (("epsilon = 4", 'epsilon = "4"'), 3, "privacy.epsilon"),
        (("epsilon = 4", "epsilon = true"), 3, "privacy.epsilon"),
        (("epsilon = 4", "epsilom = 4"), 3, 'privacy.epsilom: unknown setting; did you mean "epsilon"'),
        (('size = "15m"', 'size = "7m"'), 3, "window.size: 7m does not divide one hour"),
        (('size = "15m"', "size = 15"), 3, "window.size: expected a duration"),
        (("start = 2026-01-01T00:00:00Z", "start = 2026-01-01T00:07:00Z"), 3, "window.start: not a border"),
        (("buckets = 64", "buckets = 65"), 3, "sketch.buckets: 65 is not a power of two"),
        (('zone = "UTC"', 'zone = "Mars/Base"'), 3, "rollup.zone"),
        (('"presence_is_public"', '"selected"'), 3, "privacy.epsilon_selection"),
        (('"presence_is_public"', '"declared"'), 3, "privacy.declared"),
        (
            ("= 10000\n[rollup]", "= 383\n[rollup]"),
            3,
            "383, but an item in all 96 windows",
        ),
        (('path = "in.jsonl"', 'path = "none.jsonl"'), 3, "input.path"),
        (('time_unit = "ms"', 'time_unit = "weeks"'), 3, "event"),
        (("epoch = 1", "epoch = 0"), 3, "pipeline.epoch"),
    ],
)
def test_a_bad_configuration_is_one_clear_line_and_code_3(app, change, code, says):
    assert change[0] in app.read_text()
    app.write_text(app.read_text().replace(*change))
    done = command("run", app)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_every_problem_is_listed(app):
    text = app.read_text().replace("epsilon = 4", "epsilon = 40").replace('size = "15m"', 'size = "7m"')
    app.write_text(text)
    done = command("check", app)
    assert "privacy.epsilon" in done.stderr
    assert "window.size" in done.stderr


def test_a_changed_configuration_is_refused_with_the_remedy_and_a_new_epoch_works(app):
    """In order of time: an input that is counted whole must not have grown."""
    app.write_text(app.read_text().replace("complete = true", 'complete = true\norder = "time"'))
    command("run", app)
    original = app.read_text()
    app.write_text(original.replace("epsilon = 4", "epsilon = 2"))
    done = command("run", app)
    assert done.returncode == 4
    assert "raise pipeline.epoch and set window.start" in done.stderr
    app.write_text(original.replace("epsilon = 4", "epsilon = 2").replace("epoch = 1", "epoch = 2"))
    done = command("run", app)
    assert done.returncode == 4
    assert "not before" in done.stderr
    border = "2026-01-01T02:00:00Z"
    app.write_text(app.read_text().replace("start = 2026-01-01T00:00:00Z", f"start = {border}"))
    with (app.parent / "in.jsonl").open("a") as more:
        for n in range(60):
            more.write(json.dumps({"page": "p0", "user": f"v{n}", "at": START_MS + 2 * HOUR_MS + n * MINUTE_MS}) + "\n")
    done = command("run", app, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dropped"] == {"before_start": 120}
    app.write_text(original)
    done = command("run", app, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["dropped"] == {"after_epoch": 60}
    windows = [(r.window, r.key, r.epoch) for r in releases(app.parent / "out.sqlite")]
    assert len(windows) == len(set(windows))
    assert not {w for w, _, e in windows if e == 1} & {w for w, _, e in windows if e == 2}


def test_an_input_that_grows(app):
    """Not declared complete: windows close as the clock passes them, and an open hour is provisional."""
    app.write_text(app.read_text().replace("complete = true", "complete = false"))
    lines = (app.parent / "in.jsonl").read_text().splitlines(keepends=True)
    (app.parent / "in.jsonl").write_text("".join(lines[:70]))
    report = documents(command("run", app, "--json"))[0]
    assert report["open_windows"] == 1
    assert report["closed_through"] == "2026-01-01T01:00:00Z"
    assert not documents(command("estimate", app, "--by", "day", "--json"))[0]["complete"]
    (app.parent / "in.jsonl").write_text("".join(lines))
    report = documents(command("run", app, "--json"))[0]
    assert report["closed_through"] == "2026-01-01T01:45:00Z"
    assert documents(command("run", app, "--json"))[0]["releases"] == 0
    found = releases(app.parent / "out.sqlite")
    assert len({r.release_id for r in found}) == len(found) == 21


def test_a_limit_stops_the_run_with_its_numbers(app):
    app.write_text(app.read_text() + "max_consecutive_invalid = 10\n")
    with (app.parent / "in.jsonl").open("a") as more:
        more.write("{broken\n" * 11)
    done = command("run", app)
    assert done.returncode == 4
    assert "limits.max_consecutive_invalid = 10" in done.stderr


def test_a_signal_stops_between_two_transactions_and_loses_nothing(tmp_path):
    write_events(
        tmp_path / "in.jsonl",
        ({"page": f"p{n % 50}", "user": f"u{n}", "at": START_MS + n * 100} for n in range(300_000)),
    )
    config = write_config(tmp_path, buckets=4096, levels=24, max_transaction_bytes=1 << 16)
    call = [sys.executable, "-m", "sfm_stream.cli", "run", str(config), "--json"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        until((tmp_path / "out.sqlite").exists, every_s=0.0)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (143, -signal.SIGTERM, 0)
    if out:
        assert json.loads(out)["stopped_by_signal"] in (signal.SIGTERM, None)
    assert command("run", config).returncode == 0
    found = releases(tmp_path / "out.sqlite")
    assert len({r.release_id for r in found}) == len(found) == 50 * 34


def test_usage_errors_have_code_2(app):
    assert command("run").returncode == 2
    assert command("estimate", app, "--by", "range").returncode == 2
    assert command("estimate", app, "--from", "yesterday").returncode == 2


def test_commands_without_a_cluster_do_not_load_its_client(app):
    """The client takes longer to load than most commands run."""
    loaded = "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('kafka', 'pyarrow')))"
    run = f"cli(['check', {str(app)!r}], standalone_mode=False)"
    call = f"import sys; from sfm_stream.cli.main import cli; {run}; {loaded}"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_epsilon_of_selected_keys_is_that_of_the_bits_and_of_the_selection(app, tmp_path):
    """Everywhere that a row is asked for with its configuration; a bare record knows its bits alone, and says so."""
    text = app.read_text().replace(
        'keys = "presence_is_public"', 'keys = "selected"\nepsilon_selection = 0.5\ndelta_selection = 0.5'
    )
    app.write_text(text.replace("max_epsilon_per_item_day = 10000", "max_epsilon_per_item_day = 432"))
    events = ({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * 10_000} for n in range(720))
    write_events(app.parent / "in.jsonl", events)
    assert command("run", app).returncode == 0
    asked = [["--by", grain] for grain in ("window", "hour", "day")] + [["--from", "2026-01-01", "--to", "2026-01-02"]]
    for question in asked:
        rows = documents(command("estimate", app, *question, "--json"))
        assert rows
        assert all(abs(row["epsilon"] - 4.5 * row["released"]) < 1e-9 for row in rows)
    assert "4.5" in command("estimate", app, "--by", "window").stdout
    for topic in ("sketches", "rollups"):
        out = tmp_path / f"{topic}.csv"
        assert command("export", app, "--topic", topic, "--out", out).returncode == 0
        with out.open(newline="") as table:
            rows = list(csv.DictReader(table))
        assert rows
        assert all(abs(float(row["epsilon"]) - 4.5 * int(row["released"])) < 1e-9 for row in rows)
    for source in (app, app.parent / "out.sqlite"):
        found = [row for row in documents(command("inspect", source, "--json")) if row["kind"] == "release"]
        assert found
        assert all(abs(row["epsilon_bits"] - 3.6) < 1e-9 and "epsilon" not in row for row in found)
    assert "epsilon of the bits 3.6," in command("inspect", app.parent / "out.sqlite").stdout
    # The worst day in the statement is made of the same sum: 96 windows.
    assert "432" in command("config", "show", app, "--statement").stdout


def test_check_says_what_several_spans_cost(tmp_path):
    """In memory, and in what a restart reads again; the statement has the price of each."""
    config = write_config(tmp_path, **IN_TIME)
    (tmp_path / "in.jsonl").write_text("")
    config.write_text(config.read_text() + '\n[[spans]]\nsize = "day"\nepsilon = 1\n')
    done = command("check", config)
    assert done.returncode == 0, done.stderr
    assert "an open key of 10 items takes" in done.stdout
    assert "up to a day before" in done.stdout
    assert "1 for each day of the zone" in done.stdout
