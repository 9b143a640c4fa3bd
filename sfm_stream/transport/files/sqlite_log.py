"""Published topics and committed positions in one SQLite file: the embedded counterpart of Kafka's log.

Domains. The committed rows of `records` are PUBLIC: whoever may see what is published may have all of them. The rest
of the file is the OPERATOR'S: the table `positions`, and the raw bytes of the file and of its -wal, where an aborted
transaction (draws that were never released) may leave remnants. So the file has mode 0600, and others are given its
rows through a reader or an export, never the file. To keep remnants few, no page is written before its transaction
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
import threading
from collections.abc import Iterator
from urllib.parse import quote

from sfm_stream.errors import StateError
from sfm_stream.transport.files.lockfile import WriterLock
from sfm_stream.transport.files.log_schema import (
    APPLICATION_ID,
    SCHEMA,
    SCHEMA_VERSION,
    WITHOUT_CHECKSUMS,
    add_checksums,
    checksum,
    damaged_place,
    position_checksum,
)
from sfm_stream.transport.files.released import ReleasedBorders, sync_directory
from sfm_stream.transport.files.storage import damaged, database_fault, opening, require_one_name, require_readable
from sfm_stream.types import Commit, Record, Step, StoredRecord
from sfm_stream.units import SKETCHES

BUSY_TIMEOUT_MS = 5_000
PAGE_RECORDS = 256
"""Records fetched by one query: no read transaction stays open while a caller works, so none holds up a checkpoint."""


class LogReader:
    """Committed records of a log file, for one process or many, while a writer works or not. Safe to share by threads.

    Raises ConfigError where the file cannot be opened, StateError where it is not a log of this version or is damaged.
    """

    def __init__(self, path: str, mode: str = "ro", setting: str = "output.path") -> None:
        self.path = os.path.realpath(path)
        self._thread = threading.Lock()
        self._sum = "checksum"
        """The column of checksums, or NULL where the file has none."""
        require_readable(self.path, setting)
        with self._stops("open"):
            uri = f"file:{quote(self.path)}?mode={mode}"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            with self._stops("open"):
                self._db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
                known = self._identify(empty_allowed=mode != "ro")
                if known and self._sum != "NULL" and (place := damaged_place(self._db)):
                    raise self._damaged(place)
        except BaseException:
            self._db.close()
            raise

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        """Records from `offset` on: of one partition ascending, or of all, one partition after the other.

        Records committed while the iterator is in use may be among them. since_ms and patience_s are no help here:
        nothing is left out, and nothing is undecided.
        """
        for current in self.partitions(topic) if partition is None else (partition,):
            at = offset
            while page := self.page(topic, current, at, PAGE_RECORDS):
                yield from page
                at = page[-1].offset + 1

    def page(self, topic: str, partition: int, offset: int, limit: int) -> list[StoredRecord]:
        """Up to `limit` records of one partition from `offset` on, ascending. Raises StateError for a damaged one."""
        rows = self._rows(
            f"SELECT offset, partition, key, value, timestamp_ms, {self._sum} FROM records "
            "WHERE topic = ? AND partition = ? AND offset >= ? ORDER BY offset LIMIT ?",
            (topic, partition, offset, limit),
        )
        for expected, (at, where, key, value, timestamp_ms, found) in enumerate(rows, offset):
            right = found is None or found == checksum(topic, partition, at, timestamp_ms, key, value)
            if (where, at) != (partition, expected) or not right:
                raise self._damaged(f"topic {topic!r}, partition {partition}, offset {expected}")
        return [StoredRecord(*row[:5]) for row in rows]

    def partitions(self, topic: str) -> list[int]:
        """Partitions of a topic with at least one record, sorted."""
        found: list[int] = []
        after = -1
        # Each step is a seek in the primary key; DISTINCT would walk over every record.
        query = "SELECT min(partition) FROM records WHERE topic = ? AND partition > ?"
        while (after := self._number(query, topic, after)) >= 0:
            found.append(after)
        return found

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record of the partition will get."""
        return self._number("SELECT max(offset) FROM records WHERE topic = ? AND partition = ?", topic, partition) + 1

    def count(self, topic: str) -> int:
        """Records of a topic. Offsets have no gaps and nothing is ever deleted, so nothing is walked over."""
        return sum(self.end_offset(topic, partition) for partition in self.partitions(topic))

    def positions(self, worker: str) -> dict[int, Commit]:
        """The last committed position of each partition. OPERATOR DOMAIN."""
        query = f"SELECT partition, offset, metadata, {self._sum} FROM positions WHERE worker = ?"
        rows = self._rows(query, (worker,))
        for partition, offset, metadata, found in rows:
            if found is not None and found != position_checksum(worker, partition, offset, metadata):
                raise self._damaged(f"the position of worker {worker!r} in partition {partition}")
        return {row[0]: Commit(*row[:3]) for row in rows}

    def workers(self) -> list[str]:
        """Names of all workers with a position, sorted. OPERATOR DOMAIN."""
        return [row[0] for row in self._rows("SELECT DISTINCT worker FROM positions ORDER BY worker", ())]

    def close(self) -> None:
        """Close the connection; iterators still in use then raise StateError."""
        with self._thread:
            self._db.close()

    def _rows(self, query: str, values: tuple[str | int, ...]) -> list[tuple]:  # type: ignore[type-arg]
        with self._thread, self._stops("read"):
            return self._db.execute(query, values).fetchall()

    def _number(self, query: str, topic: str, partition: int) -> int:
        value = self._rows(query, (topic, partition))[0][0]
        return -1 if value is None else int(value)

    def _identify(self, empty_allowed: bool) -> bool:
        """True for a log of this version, False for a database without content. Raises StateError for all else."""
        application, version, tables = self._db.execute(
            "SELECT (SELECT * FROM pragma_application_id), (SELECT * FROM pragma_user_version), "
            "(SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if application == 0 and version == 0 and tables == 0:
            if empty_allowed:
                return False
            raise StateError(f"{self.path}: the file is empty: nothing has been published into it yet")
        if application != APPLICATION_ID:
            raise StateError(f"{self.path}: this SQLite file belongs to another program; it was left as it is")
        if version not in (WITHOUT_CHECKSUMS, SCHEMA_VERSION):
            raise StateError(
                f"{self.path}: the file has schema version {version}, this release reads {SCHEMA_VERSION}; use the "
                "release that wrote it, or a newer one"
            )
        self._sum = "checksum" if version == SCHEMA_VERSION else "NULL"
        return True

    def _damaged(self, place: str) -> StateError:
        return StateError(f"{self.path}: {damaged(f'{place}: the record is damaged or gone')}")

    @contextlib.contextmanager
    def _stops(self, action: str) -> Iterator[None]:
        """Errors of SQLite as ones of ours, which say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            raise database_fault(self.path, action, name, str(error)) from error


class SqliteLog(LogReader):
    """The log open for writing, by this process alone: made with mode 0600 where it is not there yet.

    `released` keeps beside the file how far each worker ever released. Raises ConfigError naming `setting` where it
    cannot be created, StateError where another process writes it or it has several names, StorageError.
    """

    def __init__(self, path: str, setting: str = "output.path") -> None:
        real = os.path.realpath(path)
        if os.path.exists(real):
            require_readable(real, setting)
            require_one_name(real)
        with opening(path, setting):
            self._lock = WriterLock(real)
        try:
            with opening(path, setting):
                self.released = ReleasedBorders(real)
                _create(real)
            super().__init__(real, "rw", setting)
            try:
                with self._stops("prepare"):
                    self._prepare()
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            self._lock.close()
            raise

    @staticmethod
    def open_reader(path: str, setting: str = "output.path") -> LogReader:
        """A read-only view of the log at `path`, in any process, whether a writer works or has closed."""
        return LogReader(path, "ro", setting)

    def append(self, worker: str, step: Step) -> bool:
        """Records and positions of a step, all or nothing, durable on return.

        Each record gets the next offset of its topic and partition, in the order of the step. True: committed. False:
        nothing was begun, because a program outside (a shell, a backup) kept the file locked for 5 s; the same step
        can be sent again. Raises StorageError (disk full, I/O error) or StateError (damage) where it failed and was
        rolled back; StorageError too where it is committed, and `released` could not be written.
        """
        with self._thread, self._stops("write"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    return False
                raise
            try:
                rows = [(*row, checksum(*row)) for row in self._numbered(step.publish)]
                self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                ends = {row[:2]: row[2] + 1 for row in rows}
                self._db.executemany(
                    "INSERT OR REPLACE INTO ends VALUES (?, ?, ?, ?)",
                    [(*place, end, position_checksum(*place, end)) for place, end in ends.items()],
                )
                places = [(worker, at.partition, at.offset, at.metadata) for at in step.commit]
                self._db.executemany(
                    "INSERT INTO positions VALUES (?, ?, ?, ?, ?) ON CONFLICT (worker, partition) DO UPDATE "
                    "SET offset = excluded.offset, metadata = excluded.metadata, checksum = excluded.checksum",
                    [(*place, position_checksum(*place)) for place in places],
                )
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            # Sketches alone are drawn, and their time stamps are ends of windows.
            if drawn := [record.timestamp_ms for record in step.publish if record.topic == SKETCHES]:
                self.released.note(worker, max(drawn))
        return True

    def close(self) -> None:
        """Empty the -wal, make a plain file of it where no reader is connected, give up the lock."""
        with self._thread:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._db.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._db.close()
            self._lock.close()

    def _numbered(self, records: tuple[Record, ...]) -> list[tuple[str, int, int, int, bytes, bytes]]:
        """Rows with the offsets they get, looked up inside the transaction."""
        ends: dict[tuple[str, int], int] = {}
        rows = []
        for record in records:
            place = (record.topic, record.partition)
            if place not in ends:
                found = self._db.execute("SELECT max(offset) FROM records WHERE topic = ? AND partition = ?", place)
                last = found.fetchone()[0]
                ends[place] = 0 if last is None else last + 1
            rows.append((*place, ends[place], record.timestamp_ms, record.key, record.value))
            ends[place] += 1
        return rows

    def _prepare(self) -> None:
        """Settings, then the tables where there are none, then an empty -wal: a killed writer's frames go."""
        if self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StateError(f"{self.path}: this file system cannot hold a write-ahead log; use a local disk")
        for setting in ("synchronous = FULL", "cache_spill = OFF", "secure_delete = ON", "temp_store = MEMORY"):
            self._db.execute(f"PRAGMA {setting}")
        if not self._identify(empty_allowed=True):
            # One transaction: killed in it, the file is an empty database still.
            self._db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        elif self._sum == "NULL":
            add_checksums(self._db)
        self._identify(empty_allowed=False)
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _create(path: str) -> None:
    """An empty file of mode 0600 where there is none, its directory entry on disk."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    sync_directory(path)
