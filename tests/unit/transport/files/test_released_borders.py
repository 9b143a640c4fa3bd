"""What is noted beside an output: it only rises, it is whole or as it was before, and damage is never a border."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from support.log_records import record_count

from sfm_stream.errors import StateError, StorageError
from sfm_stream.transport.files.released_borders import ReleasedBorders
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import ROLLUPS, SKETCHES


@pytest.fixture
def output(tmp_path: Path) -> str:
    return str(tmp_path / "out.sqlite")


def test_the_highest_border_of_each_worker_is_kept(output: str) -> None:
    borders = ReleasedBorders(output)
    assert borders.borders == {}
    assert not os.path.exists(borders.path)
    for worker, end_ms in (("ingest/a/1", 60_000), ("ingest/b/1", 5), ("ingest/a/1", 59_999), ("ingest/a/2", -1)):
        borders.note(worker, end_ms)
    expected = {"ingest/a/1": 60_000, "ingest/b/1": 5, "ingest/a/2": -1}
    assert borders.borders == ReleasedBorders(output).borders == expected
    assert stat.S_IMODE(os.stat(borders.path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(output)) == ["out.sqlite.released"]


def test_what_is_known_already_is_not_written_again(output: str) -> None:
    borders = ReleasedBorders(output)
    borders.note("w", 7)
    before = os.stat(borders.path).st_ino
    borders.note("w", 7)
    borders.note("w", 6)
    assert os.stat(borders.path).st_ino == before


def test_a_file_that_is_torn_anywhere_is_refused(output: str) -> None:
    borders = ReleasedBorders(output)
    borders.note("ingest/a/1", 1_767_225_600_000)
    whole = Path(borders.path).read_bytes()
    for size in range(len(whole)):
        Path(borders.path).write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"cannot be read.*released twice.*raise pipeline\.epoch"):
            ReleasedBorders(output)
        Path(borders.path).write_bytes(whole[:size] + bytes(len(whole) - size))
        with pytest.raises(StateError, match="cannot be read"):
            ReleasedBorders(output)


def test_a_byte_that_changed_anywhere_is_refused(output: str) -> None:
    borders = ReleasedBorders(output)
    borders.note("ingest/a/1", 1_767_225_600_000)
    whole = Path(borders.path).read_bytes()
    for place in range(len(whole)):
        for change in (1, 0x80):
            damaged = bytearray(whole)
            damaged[place] ^= change
            Path(borders.path).write_bytes(damaged)
            with pytest.raises(StateError, match="cannot be read"):
                ReleasedBorders(output)


def test_another_version_is_refused_by_number(output: str) -> None:
    Path(output + ".released").write_text('{"version":2,"borders":{},"digest":""}')
    with pytest.raises(StateError, match="version 2, this release reads 1"):
        ReleasedBorders(output)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_border_before_it(output: str, monkeypatch, failing: str) -> None:
    borders = ReleasedBorders(output)
    borders.note("w", 1)
    with monkeypatch.context() as patch:

        def fail(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, failing, fail)
        with pytest.raises(StorageError, match=r"No space left.*start again"):
            borders.note("w", 2)
    assert borders.borders == ReleasedBorders(output).borders == {"w": 1}
    assert os.listdir(os.path.dirname(output)) == ["out.sqlite.released"]
    borders.note("w", 2)
    assert ReleasedBorders(output).borders == {"w": 2}


def test_what_a_killed_process_left_half_written_is_written_over(output: str) -> None:
    ReleasedBorders(output).note("w", 1)
    Path(output + ".released.part").write_bytes(b"x" * 1_000)
    borders = ReleasedBorders(output)
    borders.note("w", 2)
    assert ReleasedBorders(output).borders == {"w": 2}
    assert os.listdir(os.path.dirname(output)) == ["out.sqlite.released"]


def test_the_log_notes_what_is_drawn_and_nothing_else(output: str) -> None:
    log = SqliteLog(output)
    log.append("rollup/a", Step((Record(ROLLUPS, 0, b"k", b"v", 90),), (Commit(0, 0, b""),)))
    log.append("ingest/a/1", Step(commit=(Commit(0, 4, b"m"),)))
    assert log.released.borders == {}
    log.append("ingest/a/1", Step((Record(SKETCHES, 0, b"k", b"v", 60),), drawn=(("", 60),)))
    log.append("ingest/a/2", Step((Record(SKETCHES, 0, b"k", b"v", 60),), drawn=(("5m", 60),)))
    log.append("ingest/a/2", Step((Record(SKETCHES, 0, b"k", b"v", 60),), drawn=(("day", 60),)))
    log.append("ingest/a/2", Step((), (Commit(0, 5, b"all withheld"),), drawn=(("5m", 70),)))
    log.close()
    records = {"ingest/a/1/sketches": 1, "ingest/a/2/sketches": 3}
    drawn = {"ingest/a/1": 60, "ingest/a/2/5m": 70, "ingest/a/2/day": 60}
    assert ReleasedBorders(output).borders == drawn | records


def test_a_step_that_is_committed_and_not_noted_is_there(output: str, monkeypatch) -> None:
    log = SqliteLog(output)
    with monkeypatch.context() as patch:
        patch.setattr(log.released, "_write", lambda content: (_ for _ in ()).throw(OSError(errno.EDQUOT, "quota")))
        with pytest.raises(StorageError, match="is noted then"):
            log.append("w", Step((Record(SKETCHES, 0, b"k", b"v", 60),), (Commit(0, 9, b"m"),), (("", 60),)))
    assert record_count(log, SKETCHES) == 1
    assert log.positions("w")[0].offset == 9
    log.close()


def test_a_file_that_may_not_be_read_is_no_file_without_borders(output: str) -> None:
    os.mkdir(output + ".released")
    with pytest.raises(Exception, match="Is a directory"):
        SqliteLog(output)
