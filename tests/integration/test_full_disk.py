"""Disks without room and standard streams that cannot be written: a file system of a few kilobytes, and /dev/full.

A command that fails for want of room ends with 7, and does its work once there is room. What is only said on standard
error never changes how it ends.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.embedded_runs import MINUTE_MS, START_MS, command, releases, write_config, write_events

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Makes a file system with these options, or gives the one that is there others."""
    place = tmp_path / "small"
    place.mkdir()
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        kind = ["-o", f"remount,{options}"] if mounted else ["-t", "tmpfs", "-o", options, "tmpfs"]
        done = subprocess.run(["mount", *kind, str(place)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def write_input(folder: Path) -> None:
    events = ({"page": f"p{n % 3}", "user": f"u{n}", "at": START_MS + n * MINUTE_MS} for n in range(240))
    write_events(folder / "in.jsonl", events)


def fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    stuffing = folder / "stuffing"
    with stuffing.open("wb", buffering=0) as sink:
        for size in (4096, 64, 1):
            with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):  # noqa: PT012 -- some write fails, not the first
                while True:
                    sink.write(b"x" * size)
    return stuffing


def check_all_released_once(output: Path) -> None:
    found = releases(output)
    assert len(found) == len({(r.window, r.key) for r in found}) == 3 * 16


def test_a_run_that_finds_no_room_goes_on_once_there_is_some(tmp_path, small):
    write_input(tmp_path)
    config = write_config(tmp_path, output="small/out.sqlite", buckets=1024, levels=24, max_transaction_bytes=1 << 16)
    place = small("size=100k")
    stuffing = fill(place)
    for _ in range(2):
        done = command("run", config)
        assert (done.returncode, done.stdout) == (7, "")
        assert "start again" in done.stderr
        assert "Traceback" not in done.stderr
    stuffing.unlink()
    counts: list[int] = []
    for size in range(100, 8000, 150):
        small(f"size={size}k")
        done = command("run", config)
        if done.returncode == 0:
            break
        assert done.returncode == 7, done.stderr
        assert "start again" in done.stderr
        counts.append(len(releases(place / "out.sqlite")) if (place / "out.sqlite").stat().st_size else 0)
    assert done.returncode == 0
    assert counts == sorted(counts)
    assert any(0 < count < 48 for count in counts), "no run stopped half-way"
    check_all_released_once(place / "out.sqlite")


def test_a_run_without_room_for_one_more_file(tmp_path, small):
    """SQLite says only that it cannot open one."""
    write_input(tmp_path)
    config = write_config(tmp_path, output="small/out.sqlite")
    place = small("nr_inodes=20")
    files = 0
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):  # noqa: PT012 -- some file finds no room, not the first
        while True:
            (place / f"{files}").touch()
            files += 1
    # One file after the other finds room: the lock, the output, its -wal, its -shm, what is noted beside it.
    for room in range(1, files):
        done = command("run", config)
        if done.returncode == 0:
            break
        assert done.returncode == 7, done.stderr
        assert "start again" in done.stderr
        (place / f"{room}").unlink()
    assert room >= 4
    assert done.returncode == 0
    check_all_released_once(place / "out.sqlite")


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "in.jsonl", "in.jsonl.gz"])
def test_a_table_or_a_sample_that_finds_no_room(tmp_path, small, name):
    place = small("size=32k")
    if name.startswith("in."):
        call = ["generate", "--events", "20000", "--output", place / name]
    else:
        write_input(tmp_path)
        config = write_config(tmp_path, buckets=4096, levels=24)
        assert command("run", config).returncode == 0
        call = ["export", config, "--out", place / name]
    done = command(*call)
    assert (done.returncode, done.stderr) == (7, f"error: {place / name}: No space left on device\n")
    small("size=8m")
    assert command(*call).returncode == 0
    assert (place / name).stat().st_size > 32 << 10
    if name == "in.jsonl.gz":
        assert len(gzip.decompress((place / name).read_bytes()).splitlines()) == 20_000


# Standard streams


@pytest.fixture
def app(tmp_path: Path) -> Path:
    write_input(tmp_path)
    return write_config(tmp_path)


def to_full() -> None:
    os.dup2(os.open(FULL, os.O_WRONLY), 2)


def to_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 2)


def to_nowhere() -> None:
    os.close(2)


def all_closed() -> None:
    os.closerange(0, 3)


def sfm(*arguments: object, before: Callable[[], None], **options: object) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "sfm_stream.cli", *map(str, arguments)]
    return subprocess.run(  # type: ignore[call-overload]
        call, stdout=subprocess.PIPE, text=True, timeout=300, preexec_fn=before, **options
    )


LOST = [pytest.param(to_full, marks=needs_full), to_nobody, to_nowhere, all_closed]


@pytest.mark.parametrize("lost", LOST)
def test_how_a_run_ends_does_not_hang_on_standard_error(app, lost):
    assert sfm("run", app, before=lost).returncode == 0
    check_all_released_once(app.parent / "out.sqlite")
    text = app.read_text()
    for change, code in ((("epsilon = 4", "epsilon = 40"), 3), (("epsilon = 4", "epsilon = 2"), 4)):
        app.write_text(text.replace(*change))
        assert sfm("run", app, before=lost).returncode == code
    assert sfm("run", before=lost).returncode == 2
    # Nothing that was said went into a file that happened to have the number of a closed stream.
    app.write_text(text)
    assert sfm("run", app, before=lost).returncode == 0
    assert "error" not in (app.parent / "out.sqlite.lock").read_text()
    assert (app.parent / "in.jsonl").read_bytes().count(b"error") == 0


@pytest.mark.parametrize("lost", LOST)
def test_nor_does_that_of_a_worker(app, lost):
    """Its log is there from the start, and the cluster is not."""
    cluster = '[kafka]\nbootstrap = ["127.0.0.1:1"]\ntopic = "views"\ntimestamps = "log_append_time"\n'
    before, rest = app.read_text().split("[input]")
    text = before + cluster + "[event]" + rest.split("[event]")[1].replace('[output]\npath = "out.sqlite"\n', "")
    app.write_text(text)
    assert sfm("ingest", app, "--operator", "127.0.0.1:0", before=lost).returncode == 7


def test_a_terminal_that_goes_away_under_the_bar_changes_nothing(app):
    events = ({"page": f"p{n % 3}", "user": f"u{n % 240}", "at": START_MS + n * 72} for n in range(200_000))
    write_events(app.parent / "in.jsonl", events)
    master, slave = os.openpty()
    call = [sys.executable, "-m", "sfm_stream.cli", "run", str(app)]
    with subprocess.Popen(call, stderr=slave, stdout=subprocess.PIPE, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(slave)
        os.read(master, 1)
        os.close(master)
        process.communicate(timeout=300)
    assert process.returncode == 0
    check_all_released_once(app.parent / "out.sqlite")


@needs_full
@pytest.mark.parametrize("call", ["run", "estimate", "export", "generate", "inspect", "check", "config show"])
def test_standard_output_without_room_is_one_clear_line(app, call):
    if call != "run":
        assert command("run", app).returncode == 0
    options = {"export": ["--out", "-"], "generate": []}.get(call, [])
    arguments = [*call.split(), *([] if call == "generate" else [app]), *options]
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sfm_stream.cli", *map(str, arguments)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (7, "error: standard output: No space left on device\n")
    if call == "run":
        check_all_released_once(app.parent / "out.sqlite")


def test_a_reader_of_the_output_that_has_gone_is_nothing_to_complain_of(app):
    for arguments in (["generate", "--events", "200000"], ["config", "show", app]):
        reading, writing = os.pipe()
        os.close(reading)
        call = [sys.executable, "-m", "sfm_stream.cli", *map(str, arguments)]
        done = subprocess.run(call, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300)
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")


def test_a_closed_standard_input_is_not_the_end_of_an_input(tmp_path):
    config = write_config(tmp_path, input="-")
    done = subprocess.run(
        [sys.executable, "-m", "sfm_stream.cli", "run", str(config), "--json"],
        preexec_fn=lambda: os.close(0),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 4
    assert "cannot read" in done.stderr
    piped = command("run", config, "--json", input=json.dumps({"page": "p", "user": "u", "at": START_MS}) + "\n")
    assert json.loads(piped.stdout)["releases"] == 1
