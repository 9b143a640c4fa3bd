"""One changed byte of the output file: what is read is what was written, or an error."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from sfm_stream.errors import SfmStreamError, StateError
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.log_schema import SCHEMA_VERSION, checksum
from sfm_stream.transport.files.sqlite_log import SqliteLog
from sfm_stream.types import Commit, Record, Step
from sfm_stream.units import DEAD_LETTERS, ROLLUPS, SKETCHES

TOPICS = (DEAD_LETTERS, ROLLUPS, SKETCHES)
WORKERS = ("ingest/views/1", "rollup/views")
EVERY = 7
"""Bytes from one that is changed to the next; no power of two divides it, so it meets every column of the pages."""


def written(path: Path) -> Path:
    with_log = SqliteLog(str(path))
    for number in range(6):
        records = tuple(
            Record(topic, partition, b"key %d" % number, bytes([number]) * 150, 60_000 * (number + 1))
            for topic in TOPICS
            for partition in (0, 2)
        )
        for worker in WORKERS:
            with_log.append(worker, Step(records, (Commit(0, 1000 + number, b"state %d" % number),)))
    with_log.close()
    return path


def content(path: Path) -> list[object]:
    reader = LogReader(str(path))
    try:
        found: list[object] = [list(reader.read(topic)) for topic in TOPICS]
        return [*found, *(reader.positions(worker) for worker in WORKERS)]
    finally:
        reader.close()


def test_no_changed_byte_passes_for_what_was_written(tmp_path):
    original = written(tmp_path / "log.sqlite").read_bytes()
    right, rng = content(tmp_path / "log.sqlite"), np.random.default_rng(1)
    noticed, changed = 0, tmp_path / "changed.sqlite"
    for at in range(0, len(original), EVERY):
        data = bytearray(original)
        data[at] ^= int(rng.integers(1, 256))
        changed.write_bytes(data)
        try:
            found = content(changed)
        except (SfmStreamError, UnicodeDecodeError):
            noticed += 1
            continue
        for was, now in zip(right, found, strict=True):
            # A worker whose name was changed has no position: its next run begins anew, and is refused by what was
            # noted beside the file (test_lost_output.py).
            assert now == was or now == {}, f"byte {at} changed what is read"
    assert noticed > 1000, "most bytes of the rows were looked at"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET value = x'00' WHERE topic = 'sketches' AND partition = 0 AND offset = 3",
        "UPDATE records SET key = x'00' WHERE topic = 'sketches' AND partition = 0 AND offset = 3",
        "UPDATE records SET timestamp_ms = 1 WHERE topic = 'sketches' AND partition = 0 AND offset = 3",
        "UPDATE records SET offset = 99 WHERE topic = 'sketches' AND partition = 0 AND offset = 11",
        "UPDATE records SET partition = 1 WHERE topic = 'sketches' AND partition = 0 AND offset = 11",
        "UPDATE records SET topic = 'skftches' WHERE topic = 'sketches' AND partition = 0 AND offset = 11",
        "DELETE FROM records WHERE topic = 'sketches' AND partition = 0 AND offset = 3",
        "UPDATE positions SET metadata = x'00' WHERE worker = 'rollup/views'",
        "UPDATE positions SET offset = 7 WHERE worker = 'rollup/views'",
    ],
)
def test_a_changed_row_is_named_with_a_remedy_that_draws_nothing_twice(tmp_path, change):
    path = written(tmp_path / "log.sqlite")
    db = sqlite3.connect(path)
    db.execute(change)
    db.commit()
    db.close()
    with pytest.raises(StateError, match=r"damaged or gone.*raise pipeline.epoch"):
        content(path)


def test_a_file_without_checksums_is_read_and_given_them_when_it_is_written(tmp_path):
    path = written(tmp_path / "log.sqlite")
    right = content(path)
    db = sqlite3.connect(path)
    db.execute("DROP TABLE ends")
    for table in ("records", "positions"):
        db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    db.execute("PRAGMA user_version = 1")
    db.close()
    assert content(path) == right
    SqliteLog(str(path)).close()
    assert content(path) == right
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    rows = db.execute("SELECT topic, partition, offset, timestamp_ms, key, value, checksum FROM records").fetchall()
    assert len(rows) == 72
    assert all(row[-1] == checksum(*row[:-1]) for row in rows)
    db.close()
    log = SqliteLog(str(path))
    log.append(WORKERS[0], Step((Record(SKETCHES, 0, b"k", b"v", 1),), (Commit(0, 2000, b"s"),)))
    log.close()
    assert content(path)[2] != right[2]
