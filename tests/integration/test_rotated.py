"""Another file under the name of the input: refused before anything of it is counted, whatever became of the first.

Lines have equal lengths, so that every committed offset is the start of a line in the other file too.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.embedded_runs import HOUR_MS, IN_TIME, START_MS, NoFlips, command, releases, run_here, write_config
from support.patience import PATIENCE_S

from sfm_stream.errors import StateError

LINES = 900
"""Of each file, about 75 kB: several times what a mark looks at."""


def lines_of(number: int, count: int = LINES, first: int = 0) -> bytes:
    """The events of one hour, each of a user of their own; file `number` has hour `number`."""
    return b"".join(
        b'{"page": "p", "user": "u%d-%06d", "at": %d}\n'
        % (number, n, START_MS + number * HOUR_MS + n * HOUR_MS // LINES)
        for n in range(first, count)
    )


def configured(folder: Path, **settings: object) -> Path:
    return write_config(folder, **{"complete": "false", "size": "5m", "grace": "0s", "levels": 24, **settings})


def committed(output: Path) -> list[str]:
    """Everything in the output: records and positions."""
    with contextlib.closing(sqlite3.connect(output)) as database:
        return list(database.iterdump())


def users(output: Path) -> int:
    """Lit cells over all releases; no two users of these files share one that counts for much."""
    return sum(bin(int.from_bytes(release.sketch.bits, "big")).count("1") for release in releases(output))


def test_three_files_rotated_under_one_name_are_not_mixed_up(tmp_path):
    config, path = configured(tmp_path, buckets=4096), tmp_path / "in.jsonl"
    for number in range(3):
        assert len(lines_of(number)) == len(lines_of(0)), "the lines of all files are equally long"
    path.write_bytes(lines_of(0))
    assert run_here(config, NoFlips()).ingest.counted == LINES
    before = committed(tmp_path / "out.sqlite")
    for number in (1, 2):
        os.replace(path, tmp_path / f"in.jsonl.{number}")
        path.write_bytes(lines_of(number))
        done = command("run", config)
        assert done.returncode == 4
        assert f"{path}: this is not the input that was read before" in done.stderr
        assert "rotated name" in done.stderr
        assert "pipeline.epoch" in done.stderr
    assert committed(tmp_path / "out.sqlite") == before, "nothing was committed"

    # What was begun is finished under its rotated name, and compressed at that.
    rotated = tmp_path / "in.jsonl.1.gz"
    rotated.write_bytes(gzip.compress((tmp_path / "in.jsonl.1").read_bytes() + lines_of(1, 2)))
    report = run_here(configured(tmp_path, buckets=4096, input=rotated.name), NoFlips())
    assert report.ingest.dropped.total() == 0
    assert abs(users(tmp_path / "out.sqlite") - LINES) < 40, "each user in one window, but for cells that collide"
    # The state goes by that name from now on, and the old one is still another file.
    with pytest.raises(StateError, match="not the input that was read before"):
        run_here(configured(tmp_path, buckets=4096), NoFlips())


def test_a_rotated_log_is_finished_and_the_next_one_begun(tmp_path):
    """As docs/operating.md says: the old file to its end, then the new one in an epoch behind it."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines_of(0, 800))
    run_here(configured(tmp_path, buckets=4096), NoFlips())
    with path.open("ab") as file:
        file.write(lines_of(0, LINES, 800))
    os.replace(path, tmp_path / "in.jsonl.1")
    path.write_bytes(lines_of(1))
    run_here(configured(tmp_path, buckets=4096, input="in.jsonl.1", complete="true", **IN_TIME), NoFlips())
    again = configured(tmp_path, buckets=4096, epoch=2, start="2026-01-01T01:00:00Z")
    assert run_here(again, NoFlips()).ingest.counted == LINES
    assert abs(users(tmp_path / "out.sqlite") - LINES * 23 // 12) < 60, "all but the last window, which is open still"


def other_after(change: str, path: Path, packed: bool) -> None:
    """What becomes of a file of which lines_of(0) was read."""
    first, second = lines_of(0), lines_of(1)
    data = {
        "replaced by one as long": second,
        "replaced by a longer one": second + lines_of(2),
        "replaced by a shorter one": second[: len(second) // 2],
        "truncated": first[: len(first) // 2],
        "truncated and written again": first[: len(first) // 2] + second,
        "emptied": b"",
        "first line changed": first.replace(b"u0-000000", b"u0-x00000"),
        "last line changed": first.replace(b"u0-%06d" % (LINES - 1), b"u0-x00899"),
        "no line starts there": b" " + first,
    }[change]
    with path.open("wb") as same_inode:  # as copytruncate does
        same_inode.write(gzip.compress(data) if packed else data)


CHANGES = [
    "replaced by one as long",
    "replaced by a longer one",
    "replaced by a shorter one",
    "truncated",
    "truncated and written again",
    "emptied",
    "first line changed",
    "last line changed",
    "no line starts there",
]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("window", ["5m", "1h"], ids=["goes on in the middle", "goes on at the first byte"])
def test_every_change_of_what_was_read_is_refused(tmp_path, change, packed, window):
    """With windows of an hour none is closed: reading would go on at byte 0, and lose what the first file held."""
    config, path = configured(tmp_path, size=window, limits="max_gap_windows = 2"), tmp_path / "in.jsonl"
    path.write_bytes(gzip.compress(lines_of(0)) if packed else lines_of(0))
    assert run_here(configured(tmp_path, buckets=4096)).ingest.counted == LINES
    before = committed(tmp_path / "out.sqlite")
    other_after(change, path, packed)
    with pytest.raises(StateError, match="not the input that was read before"):
        run_here(config)
    assert committed(tmp_path / "out.sqlite") == before


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_file_that_only_grew_goes_on(tmp_path, packed):
    """By lines, by half a line, by a member of its own; and moved, linked or copied meanwhile."""
    config, path = configured(tmp_path, buckets=4096), tmp_path / "in.jsonl"
    pieces, read = [lines_of(0, 450), lines_of(0, 451, 450), lines_of(0, LINES, 451), lines_of(1)], 0
    for piece in pieces:
        with path.open("ab") as file:
            file.write(gzip.compress(piece) if packed else piece)
        report = run_here(config, NoFlips())
        assert report.ingest.dropped.total() == 0
        read += piece.count(b"\n")
        os.replace(path, tmp_path / "elsewhere")
        shutil.copy(tmp_path / "elsewhere", path)
    assert abs(users(tmp_path / "out.sqlite") - LINES * 23 // 12) < 60
    assert read == 2 * LINES


def through_stdin(config: Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """One run that is fed by a pipe."""
    call = [sys.executable, "-m", "sfm_stream.cli", "run", str(config)]
    return subprocess.run(call, input=data, capture_output=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("window", ["5m", "1h"], ids=["goes on in the middle", "goes on at the first byte"])
def test_standard_input_must_be_fed_what_it_was_fed_before(tmp_path, window):
    """A pipe cannot go back, so it is known only once it has come as far; until then nothing is released."""
    config = configured(tmp_path, input="-", size=window)
    assert through_stdin(config, lines_of(0)).returncode == 0
    before = committed(tmp_path / "out.sqlite")
    # One line of the others comes late enough to make windows due before the input is known to be another.
    later = lines_of(9, 1) + lines_of(1)[len(lines_of(9, 1)) :]
    for other in (lines_of(1), later, lines_of(0, LINES // 2), lines_of(1) + lines_of(2)):
        done = through_stdin(config, other)
        assert done.returncode == 4, done.stdout
        assert b"standard input: this is not the input that was read before" in done.stderr
        assert committed(tmp_path / "out.sqlite") == before
    done = through_stdin(config, lines_of(0) + lines_of(1))
    assert done.returncode == 0, done.stderr
    assert b"dropped 0" in done.stdout


def test_a_file_may_follow_standard_input_that_held_the_same(tmp_path):
    assert through_stdin(configured(tmp_path, input="-"), lines_of(0)).returncode == 0
    (tmp_path / "in.jsonl").write_bytes(lines_of(0) + lines_of(1))
    assert run_here(configured(tmp_path)).ingest.dropped.total() == 0


def test_another_file_under_another_name_is_refused_too(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines_of(0))
    (tmp_path / "other.jsonl").write_bytes(lines_of(1))
    run_here(configured(tmp_path))
    with pytest.raises(StateError, match=r"other\.jsonl: this is not the input that was read before"):
        run_here(configured(tmp_path, input="other.jsonl"))
