"""How `sfm-stream export` refuses, fails and is stopped: no file that is not whole has the name that was asked for."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest
from support.embedded_runs import (
    command,
    here,
)
from support.exported_tables import export, left, read
from support.patience import PATIENCE_S

from sfm_stream.transport.files.sqlite_log import SqliteLog


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
