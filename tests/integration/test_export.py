"""`sfm-stream export` as a user calls it: every row against the record it was made of, each blob read by the oracle."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from reference import presto_reader as oracle
from support.embedded_runs import (
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    command,
    here,
    releases,
    rollups,
    run_here,
    write_config,
    write_events,
)
from support.patience import PATIENCE_S
from support.rollup_runs import release

from sfm_stream.answers.asked import LeftOut, newest_rollups
from sfm_stream.cli.question import asked_keys
from sfm_stream.config.config import load_config
from sfm_stream.estimation.estimate import estimate
from sfm_stream.sketch.sfm import GRID
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Record, Step, StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES
from sfm_stream.wire.codec import encode
from sfm_stream.wire.keys import encode_key

NUMBERS = dict.fromkeys(
    [
        "epoch",
        "source_partition",
        "source_partitions",
        "released",
        "decided",
        "windows",
        "revision",
        "buckets",
        "levels",
    ],
    int,
) | dict.fromkeys(["epsilon", "flip_probability", "estimate", "low", "high"], float)
GRAINS = {"window": 15 * MINUTE_MS, "hour": HOUR_MS, "day": 24 * HOUR_MS}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A configuration that has run: 24 releases of three keys in eight windows, six hours, three days."""
    folder = tmp_path_factory.mktemp("made")
    write_events(
        folder / "in.jsonl",
        ({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(120)),
    )
    run_here(write_config(folder))
    return folder


@pytest.fixture
def app(made, tmp_path):
    """The same in a folder of this test's own."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "app.toml"


def publish(app, topic, *payloads):
    """Put records behind those that are there."""
    log = SqliteLog(str(app.parent / "out.sqlite"))
    log.append("test", Step(tuple(Record(topic, 0, b"", payload, 0) for payload in payloads), ()))
    log.close()


def export(app, *options, out="out.parquet", code=0):
    """Run the command into a file; its rows, read back, and what it said."""
    done = here("export", app, "--format", "presto", "--out", app.parent / out, *options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    return read(app.parent / out), done


def read(path: Path) -> list[dict[str, object]]:
    """Rows of either kind of file in one form: times in ms, sketches as bytes, None for no value."""
    if path.suffix == ".parquet":
        rows = parquet.read_table(path).to_pylist()
        for row in rows:
            row |= {name: round(row[name].timestamp() * 1000) for name in ("window_start", "window_end")}
        return rows
    return csv_rows(path.read_bytes())


def csv_rows(content: bytes) -> list[dict[str, object]]:
    rows = []
    for text in csv.DictReader(io.StringIO(content.decode(), newline="")):
        row: dict[str, object] = {name: value if value != "" else None for name, value in text.items()}
        for name, value in text.items():
            if value and name in NUMBERS:
                row[name] = NUMBERS[name](value)
            elif name in ("window_start", "window_end"):
                assert value.endswith("Z")
                row[name] = round(datetime.fromisoformat(value).timestamp() * 1000)
        row["complete"] = {"true": True, "false": False}[text["complete"]]
        row["sketch"] = base64.b64decode(text["sketch"], validate=True) if text["sketch"] else None
        rows.append(row)
    return rows


def figures(record):
    """Of a release its estimate; of a roll-up what is published, a lower bound where windows were not decided."""
    if not hasattr(record, "merged"):
        found = estimate(record.sketch)
        return {"estimate": found.value, "low": found.low, "high": found.high, "status": str(found.status)}
    whole = record.decided == record.windows
    return {
        "estimate": record.value,
        "low": record.low,
        "high": record.high if whole and np.isfinite(record.high) else None,
        "status": record.status if whole or np.isinf(record.high) else "lower_bound",
    }


def check_row(row, record):
    """One row says what its record says, and its blob holds the same cells under the same noise."""
    is_release = not hasattr(record, "merged")
    sketch = record.sketch if is_release else record.merged
    epsilon = np.log((GRID - (k := (record.sketch if is_release else record.tally).flip_threshold)) / k)
    expected = {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "grain": "window" if is_release else record.grain,
        "window_start": record.window.start_ms,
        "window_end": record.window.end_ms,
        "zone": None if is_release else record.zone,
        "source_partition": record.partition,
        "source_partitions": record.partitions,
        "released": 1 if is_release else record.released,
        "decided": 1 if is_release else record.decided,
        "windows": 1 if is_release else record.windows,
        "complete": True if is_release else record.complete,
        "revision": None if is_release else record.revision,
        "unit": record.unit,
        "hash": sketch.hash,
        "buckets": sketch.shape.buckets,
        "levels": sketch.shape.levels,
        **figures(record),
        "release_id": record.release_id.hex() if is_release else None,
    }
    assert {name: row[name] for name in expected} == expected
    assert row.keys() == expected.keys() | {"key", "epsilon", "flip_probability", "sketch"}
    assert encode_key(tuple(json.loads(row["key"]))) == record.key
    assert row["epsilon"] == pytest.approx(expected["released"] * epsilon, rel=1e-12)
    assert (
        0
        <= Fraction(sketch.flip_threshold, GRID) - Fraction(row["flip_probability"])
        < Fraction(sketch.flip_threshold, GRID) / 2**52
    )
    if sketch.flip_threshold == GRID // 2:
        assert row["sketch"] is None
        return
    blob = oracle.read(row["sketch"])
    assert blob.p == row["flip_probability"] > 0, "a raw sketch is secret"
    assert (2**blob.index_bits, blob.levels) == (sketch.shape.buckets, sketch.shape.levels)
    assert blob.bits == {i for i in range(8 * len(sketch.bits)) if sketch.bits[i // 8] >> i % 8 & 1}


def check_rows(rows, records):
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        check_row(row, record)


# Every record, in both kinds of file


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_the_installed_command(app, out):
    done = command("export", app, "--format", "presto", "--out", app.parent / out)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wrote 24 rows into {app.parent / out}\n", "")
    check_rows(read(app.parent / out), releases(app.parent / "out.sqlite"))


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_every_release_is_a_row(app, out):
    rows, done = export(app, out=out)
    assert (done.stdout, done.stderr) == (f"wrote 24 rows into {app.parent / out}\n", "")
    check_rows(rows, releases(app.parent / "out.sqlite"))


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_every_rollup_is_a_row_with_its_merged_sketch(app, out):
    rows, done = export(app, "--topic", "rollups", "--json", out=out)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "out": str(app.parent / out),
        "topic": "rollups",
        "rows": 9,
        "duplicates": 0,
        "replaced": 0,
        "without_sketch": 0,
        "lower_bounds": 3,
        "hashes": ["xxh64"],
        "conflicts": 0,
    }
    check_rows(rows, rollups(app.parent / "out.sqlite"))
    assert [row["grain"] for row in rows].count("hour") == 6
    assert all(row["window_end"] - row["window_start"] == GRAINS[row["grain"]] for row in rows)


def test_csv_on_standard_output_is_the_same_table(app):
    export(app, out="out.csv")
    done = here("export", app, "--out", "-")
    assert (done.returncode, done.stderr) == (0, "wrote 24 rows\n")
    assert done.stdout == (app.parent / "out.csv").read_text()
    done = here("export", app, "--out", "-", "--json")
    assert json.loads(done.stderr)["rows"] == 24
    assert len(csv_rows(done.stdout.encode())) == 24


def test_a_reader_that_goes_away_ends_it_without_a_word(app):
    call = [sys.executable, "-m", "sfm_stream.cli", "export", str(app), "--out", "-"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(call, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    os.close(write_end)
    assert done.returncode > 0
    assert done.stderr == ""


def test_a_spinner_shows_on_a_terminal(app):
    master, slave = os.openpty()
    call = [sys.executable, "-m", "sfm_stream.cli", "export", str(app), "--out", str(app.parent / "out.csv")]
    with subprocess.Popen(call, stderr=slave, stdout=subprocess.PIPE, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(slave)
        shown = b""
        with suppress(OSError):  # the other end was closed
            while chunk := os.read(master, 4096):
                shown += chunk
        assert process.wait(PATIENCE_S) == 0
    os.close(master)
    assert b"exporting" in shown


def test_keys_of_every_kind_are_as_estimate_prints_them(app):
    keys = [("café", -7, b"\x00\xff"), ('a,"b"\\\n', 0, b""), (7,), ("7",), ()]
    publish(app, SKETCHES, *(release(START_MS, key) for key in keys))
    shown = [row["key"] for row in documents(here("estimate", app, "--by", "window", "--json"))]
    for out in ("out.parquet", "out.csv"):
        rows, _ = export(app, out=out)
        assert [json.loads(row["key"]) for row in rows[24:]] == [
            ["café", -7, "0x00ff"],
            ['a,"b"\\\n', 0, "0x"],
            [7],
            ["7"],
            [],
        ]
        assert sorted(row["key"] for row in rows) == sorted(json.dumps(key, ensure_ascii=False) for key in shown)


def documents(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# The question


@pytest.mark.parametrize(
    ("question", "count"),
    [
        (["--key", "p1"], 8),
        (["--key", "p1", "--key", "p2"], 16),
        (["--from", "2026-01-01T01:00"], 12),
        (["--to", "2026-01-01T02:00:00+01:00"], 12),
        (["--from", "2026-01-01T00:15", "--to", "2026-01-01 01:00", "--key", "p0"], 3),
        (["--key", '"p1"'], 8),
        (["--key", '["p1"]'], 8),
        ([], 24),
    ],
)
def test_the_question_means_what_it_means_to_estimate(app, question, count):
    def places(rows, start):
        return sorted((json.dumps(row["key"]), row[start]) for row in rows)

    asked = documents(here("estimate", app, "--by", "window", "--json", *question))
    for row in asked:
        row["from"] = round(datetime.fromisoformat(row["from"]).timestamp() * 1000)
    rows, done = export(app, *question)
    assert len(rows) == count
    assert places([row | {"key": json.loads(row["key"])} for row in rows], "window_start") == places(asked, "from")
    assert done.stderr == ""


@pytest.mark.parametrize("topic", ["sketches", "rollups"])
def test_of_a_question_without_an_answer_no_table_is_made(app, topic):
    done = here("export", app, "--topic", topic, "--key", "nobody", "--out", app.parent / "out.csv")
    assert (done.returncode, done.stdout) == (9, "")
    assert done.stderr == (
        "error: --key nobody: nothing is published for this key; there are 3 others, such as p0, p1, p2\n"
    )
    assert not (app.parent / "out.csv").exists()
    assert not list(app.parent.glob(".*"))
    rows, done = export(app, "--topic", topic, "--key", "p1", "--key", "nobody")
    assert rows
    assert done.stderr.startswith("--key nobody: nothing is published for this key")


@pytest.mark.parametrize("topic", ["sketches", "rollups"])
def test_a_span_that_cuts_what_it_asks_for_is_refused(app, topic):
    question = ("--from", "2026-01-01 00:31", "--to", "2026-01-01 01:29")
    done = here("export", app, "--topic", topic, *question, "--out", app.parent / "out.csv")
    nearest = {
        "sketches": '--from "2026-01-01 00:30" --to "2026-01-01 01:30", or --from "2026-01-01 00:45"'
        ' --to "2026-01-01 01:15"',
        "rollups": '--from "2026-01-01 00:00" --to "2026-01-01 02:00"',
    }
    assert done.returncode == 2
    assert f"Ask for {nearest[topic]}\n" in done.stderr
    assert not (app.parent / "out.csv").exists()


def test_the_question_applies_to_rollups_too(app):
    rows, _ = export(app, "--topic", "rollups", "--key", "p2", "--from", "2026-01-01", "--to", "2026-01-01T01:00")
    assert [(row["key"], row["grain"], row["window_start"]) for row in rows] == [('["p2"]', "hour", START_MS)]
    check_rows(rows, [r for r in rollups(app.parent / "out.sqlite") if r.key == encode_key("p2")][:1])


def test_a_number_is_looked_for_as_text_and_where_it_fits_as_an_integer(app):
    config = load_config(app)
    for text, meant in {
        "7": [7, "7"],
        "-7": [-7, "-7"],
        "0": [0, "0"],
        "-0": ["-0"],
        "07": ["07"],
        "--7": ["--7"],
        "٣": ["٣"],
        str(2**63 - 1): [2**63 - 1, str(2**63 - 1)],
        str(2**63): [str(2**63)],
        "9" * 30: ["9" * 30],
    }.items():
        assert asked_keys(config, [text]) == {encode_key(key) for key in meant}, text
    assert asked_keys(config, []) is None


def test_only_this_pipeline_is_written(app):
    publish(app, SKETCHES, release(START_MS, "foreign", pipeline="other"))
    assert len(export(app)[0]) == 24


# What is left out


def test_identical_copies_are_written_once(app):
    output = app.parent / "out.sqlite"
    publish(app, SKETCHES, *(encode(record) for record in releases(output)[:3]), encode(releases(output)[0]))
    rows, done = export(app)
    check_rows(rows, releases(output)[:24])
    assert "4 identical copies left out" in done.stdout
    assert done.stderr == ""
    assert json.loads(export(app, "--json", "--force")[1].stdout)["duplicates"] == 4


def test_of_two_payloads_the_first_is_written_and_the_incident_is_code_6(app):
    output = app.parent / "out.sqlite"
    first = releases(output)[:2]
    forged = [replace(r, sketch=replace(r.sketch, bits=bytes(len(r.sketch.bits)))) for r in first]
    publish(app, SKETCHES, *map(encode, forged), encode(forged[0]), encode(first[1]))
    rows, done = export(app, code=6)
    check_rows(rows, releases(output)[:24])
    assert "2 releases have a second, different payload" in done.stderr
    assert "privacy incident" in done.stderr
    assert all(record.release_id.hex() in done.stderr for record in first)
    assert "1 identical copies" in done.stdout
    done = here("export", app, "--out", app.parent / "other.csv", "--json")
    assert done.returncode == 6
    assert json.loads(done.stdout)["conflicts"] == 2
    rows, _ = export(app, "--key", "p2", "--force")
    assert len(rows) == 8, "no incident among the records asked for"


def test_the_newest_revision_of_a_rollup_is_written_wherever_it_stands(tmp_path):
    events = [{"page": "p", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(120)]
    app = write_config(tmp_path, complete="false")
    for part in (70, 120):
        write_events(tmp_path / "in.jsonl", events[:part])
        run_here(app)
    everything = rollups(tmp_path / "out.sqlite")
    newest = {}
    for record in everything:
        newest[record.window] = max(newest.get(record.window, record), record, key=lambda r: r.revision)
    assert len(newest) < len(everything), "a day was published twice"
    publish(app, ROLLUPS, encode(everything[0]), *(encode(r) for r in everything if r not in newest.values()))
    rows, done = export(app, "--topic", "rollups")
    check_rows(sorted(rows, key=place), sorted(newest.values(), key=lambda r: (r.window.end_ms, r.window.start_ms)))
    old = 2 * (len(everything) - len(newest))
    assert f"{old} older revisions left out" in done.stdout
    assert "1 identical copies left out" in done.stdout
    shown = documents(here("estimate", app, "--by", "day", "--json"))
    assert [row["estimate"] for row in rows if row["grain"] == "day"] == [row["estimate"] for row in shown]


def place(row):
    return row["window_end"], row["window_start"]


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_a_merge_that_is_pure_noise_has_a_row_and_no_sketch(app, out):
    record = rollups(app.parent / "out.sqlite")[0]
    noise = replace(
        record, merged=replace(record.merged, flip_threshold=GRID // 2), revision=record.revision + 1, high=float("inf")
    )
    publish(app, ROLLUPS, encode(noise))
    rows, done = export(app, "--topic", "rollups", out=out)
    check_rows(rows, [*rollups(app.parent / "out.sqlite")[1:9], noise])
    assert rows[-1]["sketch"] is None
    assert rows[-1]["flip_probability"] == 0.5
    assert rows[-1]["high"] is None
    assert "1 rows without a sketch: they are pure noise" in done.stdout
    assert json.loads(export(app, "--topic", "rollups", "--force", "--json")[1].stdout)["without_sketch"] == 1


def test_a_hash_that_presto_does_not_have_is_warned_of(app):
    publish(app, SKETCHES, release(START_MS + HOUR_MS, "keyed", hash="blake2b:0123456789abcdef"))
    for options in ([], ["--json", "--force"]):
        rows, done = export(app, *options)
        assert rows[-1]["hash"] == "blake2b:0123456789abcdef"
        assert done.stderr.startswith("warning: ")
        assert "blake2b:0123456789abcdef" in done.stderr
        assert "wrong count" in done.stderr
    assert json.loads(done.stdout)["hashes"] == ["blake2b:0123456789abcdef", "xxh64"]
    assert export(app, "--key", "p1", "--force")[1].stderr == ""


# Refusals, and ends half-way


def left(app):
    return sorted(
        path.name
        for path in app.parent.iterdir()
        if path.suffix not in (".sqlite", ".lock", ".released", ".jsonl", ".toml")
    )


@pytest.mark.parametrize("name", ["out.txt", "out", "out.csv.gz", "out.CSV", ".csv"])
def test_an_ending_that_says_nothing_is_refused(app, name):
    done = here("export", app, "--out", app.parent / name)
    assert done.returncode == 2
    assert "neither in .parquet nor in .csv" in done.stderr
    assert left(app) == []


def test_other_formats_topics_and_spans_are_refused(app):
    for options in (["--format", "hll"], ["--topic", "outbox"], ["--from", "2026-01-02", "--to", "2026-01-01"]):
        assert here("export", app, "--out", app.parent / "out.csv", *options).returncode == 2
    assert here("export", app).returncode == 2
    assert left(app) == []


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_a_file_that_is_there_is_kept_unless_it_is_forced(app, out):
    (app.parent / out).write_text("mine")
    done = here("export", app, "--out", app.parent / out)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "--force" in done.stderr
    assert (app.parent / out).read_text() == "mine"
    assert left(app) == [out]
    assert len(export(app, "--force", out=out)[0]) == 24
    assert left(app) == [out]


def test_without_pyarrow_csv_works_and_parquet_is_one_clear_line(app):
    code = "import sys; sys.modules['pyarrow'] = None; from sfm_stream.cli.main import main; main()"
    call = [sys.executable, "-c", code, "export", str(app), "--out"]
    done = subprocess.run([*call, str(app.parent / "out.parquet")], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert "pip install 'sfm-stream[parquet]'" in done.stderr
    assert left(app) == []
    done = subprocess.run([*call, str(app.parent / "out.csv")], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0
    assert len(read(app.parent / "out.csv")) == 24


def test_a_folder_that_is_not_there_and_an_output_that_is_not_there(app):
    done = here("export", app, "--out", app.parent / "none" / "out.csv")
    assert done.returncode == 1
    assert "No such file" in done.stderr
    assert "Traceback" not in done.stderr
    (app.parent / "out.sqlite").unlink()
    done = here("export", app, "--out", app.parent / "out.csv")
    assert done.returncode == 3
    assert "output.path" in done.stderr
    assert left(app) == []


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_a_full_disk_is_one_clear_line_and_leaves_nothing(app, out):
    done = command(
        "export",
        app,
        "--out",
        app.parent / out,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert left(app) == []


HELD = """
import os, select, signal, sys
from sfm_stream.transport.files.log_reader import LogReader
read = LogReader.read
signalled, woken = os.pipe()
os.set_blocking(woken, False)
signal.set_wakeup_fd(woken)
def held(self, *a, **k):
    for number, record in enumerate(read(self, *a, **k)):
        if number == 10:
            print("half-way", flush=True)
            select.select([sys.stdin, signalled], [], [])
        yield record
LogReader.read = held
from sfm_stream.cli.main import main
main()
"""
"""The command, which stops after ten records until a signal comes or its standard input ends."""


@pytest.mark.parametrize(
    ("number", "out", "there"),
    [
        (signal.SIGTERM, "out.parquet", True),
        (signal.SIGTERM, "out.csv", False),
        (signal.SIGINT, "out.parquet", False),
        (signal.SIGKILL, "out.parquet", False),
        (signal.SIGKILL, "out.csv", True),
    ],
)
def test_an_export_that_is_stopped_half_way_leaves_no_half_file(app, out, number, there):
    if there:
        (app.parent / out).write_text("before")
    call = [sys.executable, "-c", HELD, "export", str(app), "--force", "--out", str(app.parent / out)]
    pipe = subprocess.PIPE
    with subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "half-way\n"
        assert f".{out}.part" in left(app), "it was not at work"
        process.send_signal(number)
        said, complained = process.communicate(timeout=PATIENCE_S)
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 128 + number), complained
    assert said == ""
    assert complained == ("" if killed else "stopped by a signal; run it again to export\n")
    assert left(app) == sorted(([f".{out}.part"] if killed else []) + ([out] if there else []))
    assert not there or (app.parent / out).read_text() == "before"
    assert len(export(app, "--force", out=out)[0]) == 24
    assert left(app) == [out]


def test_two_exports_into_one_file_do_not_mix(app):
    call = [sys.executable, "-c", HELD, "export", str(app), "--out", str(app.parent / "out.csv")]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half-way\n"
        done = here("export", app, "--out", app.parent / "out.csv")
        assert done.returncode == 2
        assert "another export is writing it" in done.stderr
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    assert len(read(app.parent / "out.csv")) == 24
    assert left(app) == ["out.csv"]


def test_a_writer_at_work_is_no_obstacle(app):
    log = SqliteLog(str(app.parent / "out.sqlite"))
    try:
        assert len(export(app)[0]) == 24
    finally:
        log.close()


def test_what_is_published_while_rollups_are_read_is_not_in_the_table(app):
    """The topic is read twice; what comes in between neither replaces a row nor adds one."""
    known = rollups(app.parent / "out.sqlite")

    class Growing:
        reads = 0

        def read(self, topic):
            self.reads += 1
            records = [encode(record) for record in known]
            if self.reads == 2:
                records += [encode(replace(known[0], revision=99)), encode(replace(known[0], epoch=2))]
            return (StoredRecord(0, 0, b"", payload, 0) for payload in records)

    assert list(newest_rollups(Growing(), "views", None, None, LeftOut())) == known
