"""The log file: what it holds, what it refuses, and what a full disk does to it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from support.log_records import record_count

from sfm_stream.cli.main import cli
from sfm_stream.errors import ConfigError, StateError, StorageError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.log_schema import APPLICATION_ID, SCHEMA_VERSION
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step, StoredRecord
from sfm_stream.units import ROLLUPS, SKETCHES


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "published ?#%.sqlite")


def step(*values: bytes, topic: str = SKETCHES, partition: int = 0, offset: int = 0) -> Step:
    records = tuple(Record(topic, partition, b"k", value, 60_000) for value in values)
    return Step(records, (Commit(0, offset, b"m"),), (("", 60_000),) if topic == SKETCHES else ())


def raw_bytes(path: str) -> bytes:
    return b"".join(Path(path + end).read_bytes() for end in ("", "-wal", "-shm") if os.path.exists(path + end))


def test_offsets_count_up_in_each_topic_and_partition(path: str) -> None:
    log = SqliteLog(path)
    assert log.append("w", step(b"a", b"b"))
    log.append("w", step(b"c", partition=3))
    log.append("w", step(b"d", topic=ROLLUPS))
    log.append("w", step(b"e"))
    assert list(log.read(SKETCHES)) == [
        StoredRecord(0, 0, b"k", b"a", 60_000),
        StoredRecord(1, 0, b"k", b"b", 60_000),
        StoredRecord(2, 0, b"k", b"e", 60_000),
        StoredRecord(0, 3, b"k", b"c", 60_000),
    ]
    assert log.partitions(SKETCHES) == [0, 3]
    assert (record_count(log, SKETCHES), record_count(log, ROLLUPS), record_count(log, "none")) == (4, 1, 0)
    assert log.end_offset(SKETCHES, 0) == 3
    assert list(log.read(SKETCHES, 0, 2)) == [StoredRecord(2, 0, b"k", b"e", 60_000)]
    log.close()


def test_more_records_than_a_page_are_read_in_order_while_more_are_appended(path: str) -> None:
    log = SqliteLog(path)
    log.append("w", step(*(b"%d" % n for n in range(1_000))))
    found = []
    for record in log.read(SKETCHES):
        if record.offset == 500:
            log.append("w", step(b"late"))
        found.append(record.value)
    assert found == [b"%d" % n for n in range(1_000)] + [b"late"]
    log.close()


def test_positions_belong_to_their_worker(path: str) -> None:
    log = SqliteLog(path)
    log.append("one", Step(commit=(Commit(0, 5, b"a"), Commit(2, 6, b""))))
    log.append("two", Step(commit=(Commit(0, 7, b"c"),)))
    assert log.positions("one") == {0: Commit(0, 5, b"a"), 2: Commit(2, 6, b"")}
    assert log.positions("two") == {0: Commit(0, 7, b"c")}
    assert log.positions("three") == {}
    log.close()


def test_the_file_is_the_operators_alone(path: str) -> None:
    old = os.umask(0)
    try:
        log = SqliteLog(path)
        log.append("w", step(b"a"))
    finally:
        os.umask(old)
    for end in ("", "-wal", "-shm", ".lock", ".released"):
        assert stat.S_IMODE(os.stat(path + end).st_mode) == 0o600, end
    log.close()


def test_the_header_tells_what_the_file_is(path: str) -> None:
    SqliteLog(path).close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    db.close()


def test_commits_are_flushed_to_disk(path: str) -> None:
    log = SqliteLog(path)
    assert log._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert log._db.execute("PRAGMA synchronous").fetchone() == (2,)
    log.close()


def test_a_closed_log_is_one_plain_file_that_can_be_copied(path: str, tmp_path: Path) -> None:
    log = SqliteLog(path)
    log.append("w", step(b"a"))
    log.close()
    assert sorted(os.listdir(tmp_path)) == [os.path.basename(path) + end for end in ("", ".lock", ".released")]
    # The header's format versions: 1 is the rollback journal, 2 would need a -shm to be read.
    assert Path(path).read_bytes()[18:20] == b"\1\1"
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(Path(path).read_bytes())
    reader = LogReader(str(copy))
    assert record_count(reader, SKETCHES) == 1
    reader.close()


def test_a_closed_log_can_be_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = tmp_path / "read-only"
    folder.mkdir()
    path = str(folder / "log.sqlite")
    log = SqliteLog(path)
    log.append("w", step(b"a"))
    log.close()
    os.chmod(path, 0o400)
    os.chmod(folder, 0o500)
    try:
        reader = LogReader(path)
        assert record_count(reader, SKETCHES) == 1
        reader.close()
        with pytest.raises(ConfigError, match="for writing"):
            SqliteLog(str(folder / "other.sqlite"))
    finally:
        os.chmod(folder, 0o700)


@pytest.mark.parametrize("size", [1, 20, 511, 512, 5_000])
def test_a_file_that_is_not_sqlite_is_refused_and_left_alone(path: str, size: int) -> None:
    content = (b"not a database\n" * 400)[:size]
    Path(path).write_bytes(content)
    for opening in (SqliteLog, LogReader):
        with pytest.raises(StateError, match=r"not a (SQLite file|database).* left as it is"):
            opening(path)
    assert Path(path).read_bytes() == content


@pytest.mark.parametrize("mark", ["PRAGMA application_id = 7", "PRAGMA user_version = 1", "CREATE TABLE records (x)"])
def test_a_sqlite_file_of_another_program_is_refused_and_left_alone(path: str, mark: str) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.execute("DROP TABLE theirs")
    db.execute(mark)
    db.commit()
    db.close()
    before = Path(path).read_bytes()
    for opening in (SqliteLog, LogReader):
        with pytest.raises(StateError, match="belongs to another program"):
            opening(path)
    assert Path(path).read_bytes() == before


def test_another_schema_version_is_refused_by_number(path: str) -> None:
    SqliteLog(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 17")
    db.close()
    for opening in (SqliteLog, LogReader):
        with pytest.raises(StateError, match=f"schema version 17, this release reads {SCHEMA_VERSION}"):
            opening(path)


def test_an_empty_file_becomes_a_log_but_has_nothing_to_read(path: str) -> None:
    Path(path).touch()
    with pytest.raises(StateError, match="nothing has been published"):
        LogReader(path)
    SqliteLog(path).close()
    LogReader(path).close()


@pytest.mark.parametrize("case", ["missing", "directory", "no such directory"])
def test_a_path_that_cannot_be_opened_names_the_setting(tmp_path: Path, case: str) -> None:
    target = {"missing": tmp_path / "f", "directory": tmp_path, "no such directory": tmp_path / "x" / "y"}[case]
    with pytest.raises(ConfigError, match=r"^output\.path: "):
        LogReader(str(target))
    if case != "missing":
        with pytest.raises(ConfigError, match=r"^log\.path: "):
            SqliteLog(str(target), "log.path")


def test_a_full_disk_stops_undone_and_the_log_goes_on_once_there_is_room(path: str) -> None:
    log = SqliteLog(path)
    log.append("w", step(b"before", offset=1))
    pages = log._db.execute("PRAGMA page_count").fetchone()[0]
    log._db.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StorageError, match=r"SQLITE_FULL.*Make room on the disk"):
        log.append("w", step(*[b"x" * 5_000] * 10, offset=2))
    assert [record.value for record in log.read(SKETCHES)] == [b"before"]
    assert log.positions("w")[0].offset == 1
    log._db.execute("PRAGMA max_page_count = 1000000")
    log.append("w", step(b"after", offset=2))
    log.close()
    reader = LogReader(path)
    assert [record.value for record in reader.read(SKETCHES)] == [b"before", b"after"]
    reader.close()


def test_what_was_rolled_back_leaves_no_bytes_in_the_file(path: str) -> None:
    log = SqliteLog(path)
    log.append("w", step(b"before"))
    log._db.execute("PRAGMA max_page_count = 2000")
    with pytest.raises(StorageError):
        # More than SQLite's page cache holds: by default it would spill to the -wal before the commit.
        log.append("w", step(*[b"SECRET DRAW" * 1_000] * 1_000))
    assert b"SECRET DRAW" not in raw_bytes(path)
    log.close()


def test_an_outside_lock_is_a_commit_not_begun(path: str) -> None:
    log = SqliteLog(path)
    log._db.execute("PRAGMA busy_timeout = 50")
    shell = sqlite3.connect(path, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    assert log.append("w", step(b"a")) is False
    shell.execute("ROLLBACK")
    shell.close()
    assert log.append("w", step(b"a")) is True
    assert record_count(log, SKETCHES) == 1
    log.close()


def test_damage_is_reported_as_such(path: str) -> None:
    log = SqliteLog(path)
    log.append("w", step(*[b"x" * 3_000] * 50))
    log.close()
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_000)
    with pytest.raises(StateError, match=r"SQLITE_CORRUPT.*pipeline\.epoch.*window\.start.*second time"):
        list(LogReader(path).read(SKETCHES))


def test_a_second_writer_in_this_process_is_refused_until_the_first_closes(path: str) -> None:
    log = SqliteLog(path)
    with pytest.raises(StateError, match=rf"another process \({os.getpid()}\) is writing") as refused:
        SqliteLog(path)
    named = re.search(r"readers \((.*)\)", str(refused.value))
    assert named is not None
    assert set(named[1].split(", ")) <= set(cli.commands)
    log.append("w", step(b"a"))
    log.close()
    log.close()
    SqliteLog(path).close()


def test_a_link_to_the_file_is_the_same_file(path: str, tmp_path: Path) -> None:
    log = SqliteLog(path)
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    with pytest.raises(StateError, match="is writing"):
        SqliteLog(str(link))
    log.close()


def test_a_closed_reader_says_so(path: str) -> None:
    log = SqliteLog(path)
    log.append("w", step(b"a"))
    log.close()
    with pytest.raises(StateError, match="closed"):
        record_count(log, SKETCHES)
    with pytest.raises(StateError, match="closed"):
        log.append("w", step(b"a"))


def test_threads_share_one_log(path: str) -> None:
    log = SqliteLog(path)
    counts: list[int] = []

    def read() -> None:
        while record_count(log, SKETCHES) < 60:
            counts.append(len(list(log.read(SKETCHES))))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        log.append("w", step(b"a", b"b", b"c"))
    for thread in threads:
        thread.join()
    log.close()
    assert all(count % 3 == 0 for count in counts)
