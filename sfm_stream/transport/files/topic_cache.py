"""A copy of public topics in a SQLite file, from which questions are looked up as in an output file.

It holds committed records of the sketch and roll-up topics at the offsets that they have there, and nothing else: no
draw that was not published. It may be deleted at any time, and is copied again. What was read of a topic commits with
the records, so that a killed process goes on where it stopped. A power loss may take the last records back, together
with the position.

Its application id is another one than that of an output file: nothing is ever released into a copy.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from sfm_stream.errors import StateError
from sfm_stream.transport.files.lockfile import WriterLock
from sfm_stream.transport.files.log_reader import LogReader
from sfm_stream.transport.files.log_schema import Content, checksum, make_current, position_checksum
from sfm_stream.transport.files.storage_faults import opening
from sfm_stream.types import StoredRecord
from sfm_stream.wire.keys import MARKER_KEY

_SETTING = "serve.cache"
_ONE_SERVER = "One server keeps a copy of its topics; give this one a folder of its own in serve.cache"
_KEYS = (
    "CREATE TABLE IF NOT EXISTS keys (topic TEXT NOT NULL, key BLOB NOT NULL, PRIMARY KEY (topic, key)) WITHOUT ROWID"
)


class DamagedCopy(StateError):
    """A copy of topics is damaged. It is to be deleted: it is copied again."""


class CacheReader(LogReader):
    """Records of a copy. Raises DamagedCopy."""

    _application = 0x53464D43
    """The letters SFMC in the header of the file."""
    _has_gaps = True

    def __init__(self, path: str) -> None:
        super().__init__(path, _SETTING)

    def keys(self, topic: str) -> Iterator[bytes]:
        """As in the protocol: from a table of them, however many records there are."""
        for (key,) in self._rows("SELECT key FROM keys WHERE topic = ? ORDER BY key", (topic,)):
            yield key

    def _damaged(self, place: str) -> DamagedCopy:
        return DamagedCopy(f"{self.path}: {place}: this copy of the topics is damaged. Delete it: it is copied again")

    @contextlib.contextmanager
    def _faults_of(self, action: str) -> Iterator[None]:
        try:
            with super()._faults_of(action):
                yield
        except StateError as error:
            is_of_sqlite = error.__cause__ is not None
            if is_of_sqlite and not any(name in str(error) for name in ("SQLITE_CANTOPEN", "SQLITE_READONLY")):
                raise self._damaged(f"cannot {action}") from error
            raise


class TopicCache(CacheReader):
    """The copy open for writing, by this process alone: made with mode 0600, and its folder, where it is not there.

    A source is a topic in one life: its name and its id on the cluster. Raises ConfigError where the file cannot be
    made, StateError where another process writes it or it is no copy of topics, DamagedCopy, StorageError.
    """

    _mode = "rw"

    def __init__(self, path: str) -> None:
        real = os.path.realpath(path)
        with opening(path, _SETTING):
            os.makedirs(os.path.dirname(real), 0o700, exist_ok=True)
            self._writer_lock = WriterLock(real, _ONE_SERVER)
        try:
            with opening(path, _SETTING):
                _create(real)
                self._file = _identity(real)
            super().__init__(real)
        except BaseException:
            self._writer_lock.close()
            raise

    @property
    def is_there(self) -> bool:
        """Whether the file is still where it was opened. Somebody may have deleted it."""
        return _identity(self.path) == self._file

    def copied(self) -> dict[str, dict[int, int]]:
        """Source -> partition -> the offset up to which it is copied."""
        return {
            source: {each.partition: each.offset for each in self.positions(source).values()}
            for source in self.workers()
        }

    def add(self, source: str, topic: str, partition: int, records: Sequence[StoredRecord], next_offset: int) -> None:
        """Records of one partition, ascending, and up to where it is copied now: all or nothing.

        Records that are there already, by their offsets, are left as they are.
        """
        rows = [(topic, partition, each.offset, each.timestamp_ms, each.key, each.value) for each in records]
        keys = {each.key for each in records} - {MARKER_KEY}
        position = source, partition, next_offset, b""
        with self._writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", [(*row, checksum(*row)) for row in rows]
            )
            self._db.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", [(topic, key) for key in keys])
            self._db.execute(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?)",
                (*position, position_checksum(*position)),
            )

    def forget(self, topic: str, firsts: Mapping[int, int]) -> None:
        """Drop what lies before the first offset that a topic still has. firsts: partition -> that offset."""
        query = "SELECT min(offset) FROM records WHERE topic = ? AND partition = ?"
        gone = {number: first for number, first in firsts.items() if 0 <= self._number(query, topic, number) < first}
        if not gone:
            return
        with self._writing():
            for number, first in gone.items():
                self._db.execute(
                    "DELETE FROM records WHERE topic = ? AND partition = ? AND offset < ?", (topic, number, first)
                )
            self._db.execute("DELETE FROM keys WHERE topic = ?", (topic,))
            self._db.execute(
                "INSERT INTO keys SELECT DISTINCT topic, key FROM records WHERE topic = ? AND key <> ?",
                (topic, MARKER_KEY),
            )

    def clear(self) -> None:
        """Drop everything: the topics are others."""
        with self._writing():
            for statement in ("DELETE FROM records", "DELETE FROM keys", "DELETE FROM positions"):
                self._db.execute(statement)

    def close(self) -> None:
        """Close the file and give up the lock."""
        with contextlib.suppress(StateError):
            super().close()
        self._writer_lock.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction. After an error in it nothing of it is stored."""
        with self._thread_lock, self._faults_of("write"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _prepare(self) -> None:
        for setting in ("journal_mode = WAL", "synchronous = NORMAL"):
            self._db.execute(f"PRAGMA {setting}").fetchall()
        make_current(self._db, self._content, self._application)
        self._content = Content.CURRENT
        self._db.execute(_KEYS)


def remove_cache(path: str) -> None:
    """Delete a copy, with what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm"):
        with opening(path, _SETTING), contextlib.suppress(FileNotFoundError):
            os.remove(os.path.realpath(path) + end)


def _create(path: str) -> None:
    """An empty file of mode 0600 where there is none. What an earlier one has left beside it is no part of it."""
    if not os.path.exists(path):
        remove_cache(path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
