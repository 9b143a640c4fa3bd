"""Published topics and committed positions in one SQLite file: what a topic of Kafka is on a cluster.

Who may see what. The committed rows of `records` are PUBLIC: whoever may see what is published may have all of them.
The rest of the file is the OPERATOR'S: the table `positions`, and the raw bytes of the file and of its -wal, where an
aborted transaction (draws that were never released) may leave remnants. So the file has mode 0600, and others are given
its rows through a reader or an export, never the file. To keep remnants few, no page is written before its transaction
commits (cache_spill off), deleted content is overwritten (secure_delete), and the -wal is emptied on open and close.

Durability. synchronous = FULL in WAL mode: what `append` returned from survives power loss. After an error the
transaction is rolled back; should the process die right then, the next one finds it done or not done, but whole.

While a writer is at work the file is in WAL mode, so that readers never wait. When the last connection is the
writer's, closing turns it back into a plain file that a read-only directory or medium can hold too.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from sfm_stream.errors import StateError
from sfm_stream.transport.files.lockfile import WriterLock
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.log_schema import Content, checksum, make_current, position_checksum
from sfm_stream.transport.files.released_borders import ReleasedBorders, records_of, released_by, sync_directory
from sfm_stream.transport.files.storage_faults import opening, require_one_name, require_readable
from sfm_stream.types import Record, Step
from sfm_stream.units import SKETCHES


class SqliteLog(LogReader):
    """The log open for writing, by this process alone: made with mode 0600 where it is not there yet.

    `released` keeps beside the file how far each worker ever released each span. Raises ConfigError naming `setting`
    where it cannot be created, StateError where another process writes it or it has several names, StorageError.
    """

    _mode = "rw"

    def __init__(self, path: str, setting: str = "output.path") -> None:
        real = os.path.realpath(path)
        if os.path.exists(real):
            require_readable(real, setting)
            require_one_name(real)
        with opening(path, setting):
            self._writer_lock = WriterLock(real)
        try:
            with opening(path, setting):
                self.released = ReleasedBorders(real)
                _create(real)
            super().__init__(real, setting)
        except BaseException:
            self._writer_lock.close()
            raise

    def append(self, worker: str, step: Step) -> bool:
        """Records and positions of a step, all or nothing, durable on return.

        Each record gets the next offset of its topic and partition, in the order of the step. True: committed. False:
        nothing was begun, because a program outside (a shell, a backup) kept the file locked for 5 s; the same step
        can be sent again. Raises StorageError (disk full, I/O error) or StateError (damage) where it failed and was
        rolled back; StorageError too where it is committed, and `released` could not be written.
        """
        with self._thread_lock, self._faults_of("write"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    return False
                raise
            try:
                ends = self._insert(worker, step)
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            noted = {released_by(worker, span): end_ms for span, end_ms in step.drawn}
            if (SKETCHES, 0) in ends:
                noted[records_of(worker)] = ends[SKETCHES, 0]
            self.released.note_all(noted)
        return True

    def close(self) -> None:
        """Empty the -wal, make a plain file of it where no reader is connected, give up the lock."""
        with self._thread_lock:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._db.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._db.close()
            self._writer_lock.close()

    def _prepare(self) -> None:
        """Settings, then the tables of this version, then an empty -wal: what a killed writer left in it goes."""
        if self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StateError(f"{self.path}: this file system cannot hold a write-ahead log; use a local disk")
        for setting in ("synchronous = FULL", "cache_spill = OFF", "secure_delete = ON", "temp_store = MEMORY"):
            self._db.execute(f"PRAGMA {setting}")
        make_current(self._db, self._content)
        self._content = Content.CURRENT
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _insert(self, worker: str, step: Step) -> dict[tuple[str, int], int]:
        """The rows of a step, inside its transaction. Returns (topic, partition) to its end, where it has grown."""
        rows = [(*row, checksum(*row)) for row in self._numbered(step.publish)]
        self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        ends = {(topic, partition): offset + 1 for topic, partition, offset, *_ in rows}
        self._db.executemany(
            "INSERT OR REPLACE INTO ends VALUES (?, ?, ?, ?)",
            [(*partition, end, position_checksum(*partition, end)) for partition, end in ends.items()],
        )
        positions = [(worker, commit.partition, commit.offset, commit.metadata) for commit in step.commit]
        self._db.executemany(
            "INSERT INTO positions VALUES (?, ?, ?, ?, ?) ON CONFLICT (worker, partition) DO UPDATE "
            "SET offset = excluded.offset, metadata = excluded.metadata, checksum = excluded.checksum",
            [(*position, position_checksum(*position)) for position in positions],
        )
        return ends

    def _numbered(self, records: tuple[Record, ...]) -> list[tuple[str, int, int, int, bytes, bytes]]:
        """Rows with the offsets they get, looked up inside the transaction."""
        ends: dict[tuple[str, int], int] = {}
        rows = []
        for record in records:
            partition = (record.topic, record.partition)
            if partition not in ends:
                query = "SELECT max(offset) FROM records WHERE topic = ? AND partition = ?"
                (last,) = self._db.execute(query, partition).fetchone()
                ends[partition] = 0 if last is None else last + 1
            rows.append((*partition, ends[partition], record.timestamp_ms, record.key, record.value))
            ends[partition] += 1
        return rows


def _create(path: str) -> None:
    """An empty file of mode 0600 where there is none, its directory entry on disk."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    sync_directory(path)
