"""Complete inputs counted whole, as a user meets it: any order, ends for ever, and what is refused."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
from collections import defaultdict

import pytest
from support.embedded_runs import (
    HOUR_MS,
    IN_TIME,
    MINUTE_MS,
    START_MS,
    NoFlips,
    command,
    markers,
    payloads,
    releases,
    run_here,
    write_config,
    write_events,
)
from support.patience import PATIENCE_S

from sfm_stream.cli.run_report import say
from sfm_stream.composition.files import file_workers
from sfm_stream.composition.run_to_end import run_to_end
from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.errors import ConfigError, StateError
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Reason
from sfm_stream.wire.keys import decode_key

SHAPE = SketchShape(64, 16)
END = {"end": "end = 2026-01-01T06:00:00Z"}
DAY_MS = 24 * HOUR_MS


def history(count=3000, hours=6, seed=1):
    """Events of three pages in no order."""
    rng = random.Random(seed)
    events = [
        {"page": f"p{n % 3}", "user": f"u{rng.randrange(800)}", "at": START_MS + rng.randrange(hours * HOUR_MS)}
        for n in range(count)
    ]
    rng.shuffle(events)
    return events


def truth(events, size_ms=15 * MINUTE_MS):
    """(window start, key) -> the raw sketch of its users, with plain sets."""
    users = defaultdict(set)
    for event in events:
        users[event["at"] // size_ms * size_ms, (event["page"],)].add(event["user"])
    return {place: PcsaSketch(SHAPE).add(sorted(found)).bits.tobytes() for place, found in users.items()}


def published(output):
    found = releases(output)
    places = {(r.window.start_ms, decoded(r.key)): r.sketch.bits for r in found}
    assert len(places) == len(found), "released twice"
    return places


def decoded(key):
    value = decode_key(key)
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("borders", [{}, END], ids=["borders of the data", "configured borders"])
def test_a_history_in_no_order_is_counted_whole(tmp_path, borders):
    events = history()
    write_events(tmp_path / "in.jsonl", events)
    report = run_here(write_config(tmp_path, **borders), NoFlips()).ingest
    assert (report.counted, report.dropped.total(), report.open_windows) == (3000, 0, 0)
    assert published(tmp_path / "out.sqlite") == truth(events)
    assert len(markers(tmp_path / "out.sqlite")) == 24


def test_one_device_of_ten_a_day_ahead_costs_no_other_record(tmp_path):
    events = [
        {"page": "p", "user": f"u{n}", "at": START_MS + n * 1000 + (DAY_MS if n % 10 == 0 else 0)} for n in range(6000)
    ]
    write_events(tmp_path / "in.jsonl", events)
    report = run_here(write_config(tmp_path), NoFlips()).ingest
    assert (report.counted, report.dropped.total()) == (6000, 0)
    assert published(tmp_path / "out.sqlite") == truth(events)
    timed = tmp_path / "timed"
    timed.mkdir()
    write_events(timed / "in.jsonl", events)
    assert run_here(write_config(timed, **IN_TIME)).ingest.dropped[Reason.LATE] > 5000, "what order = time makes of it"


def test_records_outside_the_configured_borders_are_told_apart(tmp_path):
    events = history(600, hours=6)
    write_events(tmp_path / "in.jsonl", events)
    config = write_config(tmp_path, start="2026-01-01T01:00:00Z", end="end = 2026-01-01T05:00:00Z")
    done = command("run", config, "--json")
    assert done.returncode == 0, done.stderr
    before = sum(event["at"] < START_MS + HOUR_MS for event in events)
    after = sum(event["at"] >= START_MS + 5 * HOUR_MS for event in events)
    assert json.loads(done.stdout)["dropped"] == {"before_start": before, "after_end": after}
    assert {r.unit for r in releases(tmp_path / "out.sqlite")} == {"removed"}
    assert [m.start_ms for m in markers(tmp_path / "out.sqlite")] == [
        START_MS + HOUR_MS + n * 15 * MINUTE_MS for n in range(16)
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_a_second_run_does_nothing_and_says_so_and_any_change_is_refused(tmp_path, packed):
    config, path = write_config(tmp_path), tmp_path / "in.jsonl"

    def write(events):
        write_events(path, events)
        if packed:
            path.write_bytes(gzip.compress(path.read_bytes()))

    events = history(900)
    write(events)
    assert command("run", config).returncode == 0
    before = [payloads(tmp_path / "out.sqlite", topic) for topic in ("sketches", "rollups")]
    done = command("run", config)
    assert done.returncode == 0
    assert "counted whole before" in done.stdout
    assert "nothing left to do" in done.stdout
    assert json.loads(command("run", config, "--json").stdout)["finished_before"] is True
    changed = [dict(event) for event in events]
    changed[450]["at"] += 1
    for other in (changed, [*events, events[0]], events[:-1], [], events[::-1]):
        write(other)
        done = command("run", config)
        assert done.returncode == 4
        assert f"{path}: this is not the input that was counted before" in done.stderr
        assert "pipeline.id" in done.stderr
        assert "window.start behind all that was released" in done.stderr
    assert [payloads(tmp_path / "out.sqlite", topic) for topic in ("sketches", "rollups")] == before
    # The remedy: another epoch behind it.
    write(events + [event | {"at": event["at"] + DAY_MS} for event in events])
    again = write_config(tmp_path, epoch=2, start="2026-01-01T06:00:00Z")
    done = command("run", again, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dropped"] == {"before_start": 900}


def half_done(config, transactions, data=None):
    """Run a process that dies by SIGKILL behind so many transactions."""
    code = (
        "import os, signal, sys\n"
        "from sfm_stream.transport.files.sqlite_log import SqliteLog\n"
        "append, left = SqliteLog.append, [int(sys.argv[2])]\n"
        "def dying(self, worker, step):\n"
        "    done = append(self, worker, step)\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return done\n"
        "SqliteLog.append = dying\n"
        "from sfm_stream.cli.main import cli\n"
        "cli(['run', sys.argv[1]])\n"
    )
    call = [sys.executable, "-c", code, str(config), str(transactions)]
    done = subprocess.run(call, input=data, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_run_killed_between_releases_goes_on_and_says_what_it_passed_over(tmp_path):
    events = history(900)
    write_events(tmp_path / "in.jsonl", events)
    config = write_config(tmp_path, max_transaction_bytes=1 << 12)
    half_done(config, 5)
    first = releases(tmp_path / "out.sqlite")
    assert first
    done = command("run", config, "--json")
    report = json.loads(done.stdout)
    assert report["released_before"] > 0
    assert report["dropped"] == {}
    assert report["counted"] + report["released_before"] == report["read"] == 900
    found = releases(tmp_path / "out.sqlite")
    assert found[: len(first)] == first
    assert {(r.window.start_ms, decoded(r.key)) for r in found} == set(truth(events))
    assert len(found) == len(truth(events)), "each is there once"


def test_a_file_changed_between_two_releases_is_refused_before_the_next(tmp_path):
    events = history(900)
    write_events(tmp_path / "in.jsonl", events)
    config = write_config(tmp_path, max_transaction_bytes=1 << 12)
    half_done(config, 3)
    before = payloads(tmp_path / "out.sqlite", "sketches")
    events[450]["user"] = "somebody"
    for other in (events, events[:-1], [*events, events[0]]):
        write_events(tmp_path / "in.jsonl", other)
        with pytest.raises(StateError, match="not the input that was counted before"):
            run_here(config)
        assert payloads(tmp_path / "out.sqlite", "sketches") == before


def test_standard_input_is_counted_whole_too(tmp_path):
    events = history(900)
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    config = write_config(tmp_path, input="-", max_transaction_bytes=1 << 12)
    half_done(config, 4, data)

    def fed(content):
        call = [sys.executable, "-m", "sfm_stream.cli", "run", str(config)]
        return subprocess.run(call, input=content, capture_output=True, timeout=PATIENCE_S)

    for other in (data + data, data[: len(data) // 2], data.replace(b'"p1"', b'"p2"', 1)):
        done = fed(other)
        assert done.returncode == 4
        assert b"standard input: this is not the input that was counted before" in done.stderr
    assert fed(data).returncode == 0
    assert {(r.window.start_ms, decoded(r.key)) for r in releases(tmp_path / "out.sqlite")} == set(truth(events))
    assert b"nothing left to do" in fed(data).stdout
    assert fed(data + data).returncode == 4


def test_a_signal_while_reading_keeps_nothing_and_says_so(tmp_path, capsys):
    """It comes once the first batch is read."""
    events = history(6000)
    write_events(tmp_path / "in.jsonl", events)
    config = load_config(write_config(tmp_path))
    stopping = Stop()
    with file_workers(config, NoFlips()) as work:

        def progress():
            stopping.signal = signal.SIGTERM if work.ingest.report.read else 0

        report = run_to_end(work, 0, stopping, progress)
    assert 0 < report.ingest.read < 6000
    say(report, config)
    said = capsys.readouterr().out
    assert "24 windows are not released yet" in said
    assert "read from its beginning" in said
    assert releases(tmp_path / "out.sqlite") == []
    assert run_here(tmp_path / "app.toml", NoFlips()).ingest.read == 6000
    assert published(tmp_path / "out.sqlite") == truth(events)


def test_an_epoch_begun_in_order_of_time_goes_on_so(tmp_path):
    """As outputs did that are older than the setting."""
    write_events(tmp_path / "in.jsonl", ({"page": "p", "user": n, "at": START_MS + n * MINUTE_MS} for n in range(120)))
    run_here(write_config(tmp_path, **IN_TIME))
    done = command("run", write_config(tmp_path))
    assert done.returncode == 4
    assert 'set input.order = "time"' in done.stderr
    assert command("run", write_config(tmp_path, **IN_TIME)).returncode == 0
    done = command("run", write_config(tmp_path, complete="false"))
    assert done.returncode == 0, "and so it does where it is not complete any more"


@pytest.mark.parametrize("spans", ["", '[[spans]]\nsize = "hour"\nepsilon = 1\ncount_share = 0.2\n'])
@pytest.mark.parametrize(
    ("order", "remedy"), [(IN_TIME["order"], ", input.order ="), ("", " to go on with this epoch")]
)
def test_an_epoch_begun_without_counts_goes_on_so(tmp_path, spans, order, remedy):
    """As outputs did that are older than counts; beside a span that has a share of its own the remedy is right too."""
    write_events(tmp_path / "in.jsonl", ({"page": "p", "user": n, "at": START_MS + n * MINUTE_MS} for n in range(120)))

    def run(order, privacy):
        path = write_config(tmp_path, order=order, privacy=privacy)
        path.write_text(path.read_text().replace("[rollup]", f"{spans}[rollup]"))
        return run_here(path)

    run(order, "count_share = 0")
    with pytest.raises(StateError, match=r"begun .*without noisy counts.*: set privacy\.count_share = 0" + remedy):
        run("", "")
    assert run(order, "count_share = 0").ingest.releases == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"complete": "false", "order": 'order = "any"'}, r'input\.order: "any" needs input\.complete = true.*"time"'),
        ({"order": 'order = "none"'}, r"input\.order"),
        ({"end": "end = 2026-01-01T00:00:00Z"}, r"window\.end: not after window\.start"),
        ({"end": "end = 2026-01-01T01:01:00Z"}, r"window\.end: not a border"),
        ({"end": "end = 2026-01-01T01:00:00"}, r"window\.end: expected a date and time with an offset"),
        ({"complete": "false", **END}, r"window\.end: only for an input that is counted whole"),
        ({**IN_TIME, **END}, r"window\.end: only for an input that is counted whole"),
    ],
)
def test_settings_that_do_not_fit_together(tmp_path, settings, says):
    with pytest.raises(ConfigError, match=says):
        load_config(write_config(tmp_path, **settings))


@pytest.mark.parametrize("settings", [IN_TIME, {"complete": "false"}])
def test_a_grace_is_needed_in_order_of_time_only(tmp_path, settings):
    config = write_config(tmp_path, **settings)
    config.write_text(config.read_text().replace('grace = "5m"\n', ""))
    with pytest.raises(ConfigError, match=r"window\.grace: needed"):
        load_config(config)
    config = write_config(tmp_path)
    config.write_text(config.read_text().replace('grace = "5m"\n', ""))
    write_events(tmp_path / "in.jsonl", history(90))
    assert run_here(config).ingest.counted == 90


def test_check_and_the_statement_say_how_it_is_counted(tmp_path):
    write_events(tmp_path / "in.jsonl", history(90))
    done = command("check", write_config(tmp_path))
    assert "counted whole, in any order" in done.stdout
    assert "the first and the last of them decide" in done.stdout
    fixed = command("check", write_config(tmp_path, **END)).stdout
    assert "in one window are removed; which windows there are is configured" in fixed
    assert "clock_margin" not in fixed
    timed = command("check", write_config(tmp_path, **IN_TIME)).stdout
    assert "counted whole" not in timed
    assert "blanked" in timed


def test_one_absurd_time_stops_with_the_remedy(tmp_path):
    events = [{"page": "p", "user": n, "at": START_MS + n * MINUTE_MS} for n in range(60)]
    write_events(tmp_path / "in.jsonl", [*events, {"page": "p", "user": "x", "at": START_MS - 5000 * DAY_MS}])
    config = write_config(tmp_path)
    text = config.read_text().replace("start = 2026-01-01T00:00:00Z\n", "")
    config.write_text(text)
    done = command("run", config)
    assert done.returncode == 4
    assert "479999 windows without a record" in done.stderr
    assert "event.earliest" in done.stderr
    config.write_text(text.replace("latest = ", "earliest = 2020-01-01T00:00:00Z\nlatest = "))
    done = command("run", config, "--json")
    assert json.loads(done.stdout)["dropped"] == {"time_implausible": 1}
