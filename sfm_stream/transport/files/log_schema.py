"""The tables of the output file: what a file holds, how tables and indexes are made, and the checksum of each row.

A row carries a checksum, so that a changed byte never passes for what was written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import Enum
from zlib import crc32

from sfm_stream.errors import StateError

APPLICATION_ID = 0x53464D53
"""The letters SFMS in the header of the file (`PRAGMA application_id`)."""
SCHEMA_VERSION = 2
_ENDS = """
CREATE TABLE ends (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""
_INDEXES = {
    "records_by_time": "records (topic, timestamp_ms, key)",
    "close_markers": "records (topic, value) WHERE key = x''",
}
"""What questions are looked up by. An index is no part of the version: earlier releases keep it as it must be.

Up to the times in it all markers of one pipeline, epoch, partition and released span have the same bytes, and the times
behind them are big-endian. So in the order of their bytes they stand together, in order of time.
"""
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE records (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (topic, partition, offset)
) WITHOUT ROWID;
CREATE TABLE positions (
    worker TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL, metadata BLOB NOT NULL,
    checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (worker, partition)
) WITHOUT ROWID;
{_ENDS}
PRAGMA application_id = {{application}};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_ADD_CHECKSUMS = f"""
BEGIN IMMEDIATE;
ALTER TABLE records ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE positions ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE records SET checksum = sfm_checksum(topic, partition, offset, timestamp_ms, key, value);
UPDATE positions SET checksum = sfm_checksum(worker, partition, offset, 0, x'', metadata);
{_ENDS}
INSERT INTO ends SELECT topic, partition, next, sfm_checksum(topic, partition, next, 0, x'', x'')
    FROM (SELECT topic, partition, max(offset) + 1 AS next FROM records GROUP BY topic, partition);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class Content(Enum):
    """What a SQLite file holds when it is opened. A writer turns each of them into CURRENT."""

    EMPTY = 0
    """No table at all: just created, or its writer was killed before it made them."""
    WITHOUT_CHECKSUMS = 1
    """The version before: its rows are read as they are, and given checksums when the file is next written."""
    CURRENT = SCHEMA_VERSION


def content_of(db: sqlite3.Connection, path: str, application_id: int = APPLICATION_ID) -> Content:
    """What the file holds. application_id: that in its header, if it is one of ours.

    Raises StateError for a file of another program or of an unknown version.
    """
    application, version, tables = db.execute(
        "SELECT (SELECT * FROM pragma_application_id), (SELECT * FROM pragma_user_version), "
        "(SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if application == 0 and version == 0 and tables == 0:
        return Content.EMPTY
    if application != application_id:
        raise StateError(f"{path}: this SQLite file belongs to another program; it was left as it is")
    if version not in (Content.WITHOUT_CHECKSUMS.value, Content.CURRENT.value):
        raise StateError(
            f"{path}: the file has schema version {version}, this release reads {SCHEMA_VERSION}; use the "
            "release that wrote it, or a newer one"
        )
    return Content(version)


def make_current(db: sqlite3.Connection, content: Content, application_id: int = APPLICATION_ID) -> None:
    """Make the tables where there are none, add checksums and indexes where they are missing.

    Each of the three is one transaction or nothing.
    """
    if content is Content.EMPTY:
        db.executescript(_SCHEMA.format(application=application_id))
    elif content is Content.WITHOUT_CHECKSUMS:
        db.create_function("sfm_checksum", 6, checksum, deterministic=True)
        db.executescript(_ADD_CHECKSUMS)
    if not has_indexes(db):
        made = "".join(f"DROP INDEX IF EXISTS {name}; {_made(name)};" for name in _INDEXES)
        db.executescript(f"BEGIN IMMEDIATE; {made} COMMIT;")


def has_indexes(db: sqlite3.Connection) -> bool:
    """Whether records can be looked up. Not in a file that no writer of this release has opened, nor where an index of
    another program has one of the names.
    """
    found = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'"))
    return all(found.get(name) == _made(name) for name in _INDEXES)


def _made(name: str) -> str:
    """The statement that makes an index, as SQLite keeps it."""
    return f"CREATE INDEX {name} ON {_INDEXES[name]}"


def checksum(name: str, partition: int, offset: int, timestamp_ms: int, key: bytes, value: bytes) -> int:
    """CRC-32 over a row, its topic, partition and offset included; -1 where its types are not those of a row."""
    if type(key) is not bytes or type(value) is not bytes:
        return -1
    head = f"{name}\n{partition} {offset} {timestamp_ms} {len(key)} {len(value)}\n".encode("utf-8", "surrogatepass")
    return crc32(value, crc32(key, crc32(head)))


def position_checksum(worker: str, partition: int, offset: int, metadata: bytes = b"") -> int:
    """As checksum: of the position of a worker, or, without metadata, of the end of a topic."""
    return checksum(worker, partition, offset, 0, b"", metadata)


def first_damage(db: sqlite3.Connection) -> str:
    """Where the table of ends and the records do not fit together, "" where they do.

    Offsets have no gaps. So a partition is whole if its first record has offset 0, its last record stands right before
    the stored end, and reading it meets no gap. Gaps are found by reading; the rest is found here.
    """
    db.execute("BEGIN")
    try:
        ends = db.execute("SELECT topic, partition, next_offset, checksum FROM ends").fetchall()
        for topic, partition, end, stored in ends:
            if stored != position_checksum(topic, partition, end):
                return f"the end of topic {topic!r}, partition {partition}"
        for topic, partition in {(row[0], row[1]) for row in ends} ^ set(_stored_partitions(db)):
            return f"topic {topic!r}, partition {partition}"
        for topic, partition, end, _ in ends:
            # One each: of both at once SQLite reads the whole partition.
            low, high = (
                db.execute(f"SELECT {which}(offset) FROM records WHERE topic = ? AND partition = ?", (topic, partition))
                for which in ("min", "max")
            )
            if (low.fetchone()[0], high.fetchone()[0]) != (0, end - 1):
                return f"topic {topic!r}, partition {partition}, before offset {end}"
        return ""
    finally:
        db.execute("COMMIT")


def _stored_partitions(db: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Topics and partitions that hold a record. Each step is a seek in the primary key."""
    topic = ""
    while True:
        (topic,) = db.execute("SELECT min(topic) FROM records WHERE topic > ?", (topic,)).fetchone()
        if topic is None:
            return
        partition = -(1 << 63)
        while True:
            query = "SELECT min(partition) FROM records WHERE topic = ? AND partition > ?"
            (partition,) = db.execute(query, (topic, partition)).fetchone()
            if partition is None:
                break
            yield topic, partition
