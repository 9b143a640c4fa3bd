"""`sfm-stream export` as a user calls it: every row against the record it was made of, each blob read by the oracle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from support.embedded_runs import (
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    command,
    here,
    releases,
    rollups,
)
from support.exported_tables import check_rows, csv_rows, documents, export, publish, read
from support.patience import PATIENCE_S
from support.rollup_runs import release

from sfm_stream.units import SKETCHES

GRAINS = {"window": 15 * MINUTE_MS, "quarter": 15 * MINUTE_MS, "hour": HOUR_MS, "day": 24 * HOUR_MS}


@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_the_installed_command(app, out):
    """In its own folder, as a process that has loaded nothing yet."""
    done = command("export", app, "--format", "presto", "--out", app.parent / out, cwd=app.parent)
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
        "rows": 33,
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
