"""Committed records and positions of an output file, for one process or many, while a writer works or not.

sqlite_log.py says who may see what of the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from urllib.parse import quote

from sfm_stream.errors import StateError
from sfm_stream.transport.files.log_schema import (
    APPLICATION_ID,
    Content,
    checksum,
    content_of,
    first_damage,
    has_indexes,
    position_checksum,
)
from sfm_stream.transport.files.lookup_queries import BY_TIME, OF_STAMP, STAMPS, is_full, under_keys
from sfm_stream.transport.files.marker_runs import run_of
from sfm_stream.transport.files.storage_faults import damage_text, database_fault, require_readable
from sfm_stream.types import Commit, StoredRecord
from sfm_stream.units import FOREVER_MS
from sfm_stream.wire.keys import MARKER_KEY

BUSY_TIMEOUT_MS = 5_000
PAGE_RECORDS, PAGE_BYTES = 256, 4 << 20
"""Fetched by one query: no read transaction stays open while a caller works, so none holds up a checkpoint."""
_FIRST_STAMPS, _MORE_STAMPS = 4, 4
"""Looked up at once, and how many times as many the next time: who needs the first record only reads few."""


def _nothing() -> None:
    """What happens before a query where nobody asked for more."""


class NothingWritten(StateError):
    """The file has no tables yet: its writer has just created it, or was killed before it made them."""


class LogReader:
    """Committed records of a log file. Safe to share by threads.

    Raises ConfigError naming `setting` where the file cannot be opened, StateError where it is not a log of this
    version, is empty or is damaged.
    """

    _mode = "ro"
    """Of SQLite's connection: "ro", or "rw" for the writer, who may open an empty file."""
    _application = APPLICATION_ID
    _has_gaps = False
    """Whether offsets may be missing, as in a copy of a topic, where control records have some."""

    def __init__(self, path: str, setting: str = "output.path") -> None:
        self.path = os.path.realpath(path)
        self._thread_lock = threading.Lock()
        self.before_query: Callable[[], None] = _nothing
        """Called before each query; an error that it raises ends what is being read."""
        require_readable(self.path, setting)
        with self._faults_of("open"):
            uri = f"file:{quote(self.path)}?mode={self._mode}"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            with self._faults_of("open"):
                self._db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
                self._content = content_of(self._db, self.path, self._application)
                if self._content is Content.EMPTY and self._mode == "ro":
                    raise NothingWritten(f"{self.path}: the file is empty: nothing has been published into it yet")
                if self._content is Content.CURRENT and not self._has_gaps and (damage := first_damage(self._db)):
                    raise self._damaged(damage)
                self._has_indexes = has_indexes(self._db)
            with self._faults_of("prepare"):
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """What a writer does to the file once it is open; nothing to do for a reader."""

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        """Records from `offset` on: of one partition ascending, or of all, one partition after the other.

        Records committed while the iterator is in use may be among them. since_ms and patience_s change nothing: no
        record is left out, and none is undecided.
        """
        for current in self.partitions(topic) if partition is None else (partition,):
            at, end = offset, self.end_offset(topic, current)
            while page := self.page(topic, current, at, PAGE_RECORDS):
                yield from page
                at = page[-1].offset + 1
            if at < end and not self._has_gaps:  # a damaged page of the file may hide records
                raise self._damaged(f"topic {topic!r}, partition {current}, offset {at}")

    def page(self, topic: str, partition: int, offset: int, limit: int) -> list[StoredRecord]:
        """Up to `limit` records of one partition from `offset` on, ascending, and not more than PAGE_BYTES after the
        first. Raises StateError for a damaged one.
        """
        where = "topic = ? AND partition = ? AND offset >= ? ORDER BY offset"
        records = self._records(where, (topic, partition, offset), topic, limit)
        for expected, record in enumerate(() if self._has_gaps else records, offset):
            if (record.partition, record.offset) != (partition, expected):
                raise self._damaged(f"topic {topic!r}, partition {partition}, offset {expected}")
        return records

    def look_up(
        self,
        topic: str,
        since_ms: int = 0,
        until_ms: int = FOREVER_MS,
        keys: Set[bytes] | None = None,
        stamped: Callable[[int], bool] | None = None,
    ) -> Iterator[StoredRecord]:
        """As in the protocol: these records and no others, in order of stamp and key, each found by a seek.

        Where all are asked for, or no writer of this release has opened the file, it is read from its beginning.
        """
        is_everything = keys is None and stamped is None and since_ms <= 0 and until_ms >= FOREVER_MS
        if is_everything or not self._has_indexes:
            for record in self.read(topic):
                is_asked = since_ms <= record.timestamp_ms <= until_ms and (keys is None or record.key in keys)
                if is_asked and (stamped is None or stamped(record.timestamp_ms)):
                    yield record
            return
        for stamps in self._stamps(topic, since_ms, until_ms):
            asked = stamps if stamped is None else list(filter(stamped, stamps))
            if keys is None:
                for stamp_ms in asked:
                    yield from self._of_stamp(topic, stamp_ms)
            elif keys:
                yield from self._of_keys(topic, asked, sorted(keys))

    def keys(self, topic: str) -> Iterator[bytes]:
        """As in the protocol: from the index where there is one, without a record read."""
        for (key,) in self._rows("SELECT DISTINCT key FROM records WHERE topic = ? ORDER BY key", (topic,)):
            if type(key) is not bytes:
                raise self._damaged(f"topic {topic!r}, a key in an index")
            if key != MARKER_KEY:
                yield key

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[StoredRecord]:
        """As in the protocol, a query for each. Nothing goes out of a file: raises StateError where one is gone."""
        for offset in offsets:
            found = self._records("topic = ? AND partition = ? AND offset = ?", (topic, partition, offset), topic, 1)
            if not found and not self._has_gaps:
                raise self._damaged(f"topic {topic!r}, partition {partition}, offset {offset}")
            yield from found

    def markers(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        """As in the protocol: of each run those that begin right before each of the two times, and right from it on.

        A few queries for each run, however long it is; in a file without indexes all markers.
        """
        if not self._has_indexes:
            yield from self.look_up(topic, keys={MARKER_KEY})
            return
        behind = b""
        while first := self._marker(topic, "value >= ? ORDER BY value", behind):
            run = run_of(first[0].value)
            behind = run.end
            found = {first[0].offset: first[0]}
            for border in map(run.before, (since_ms, until_ms)):
                found |= {each.offset: each for each in self._marker(topic, "value < ? ORDER BY value DESC", border)}
                found |= {each.offset: each for each in self._marker(topic, "value >= ? ORDER BY value", border)}
            yield from (each for each in found.values() if run.has(each.value))

    def _stamps(self, topic: str, since_ms: int, until_ms: int) -> Iterator[list[int]]:
        """The stamps of a topic between two times, ascending, each once."""
        stamp_ms, wanted = since_ms - 1, _FIRST_STAMPS
        while found := self._rows(STAMPS, (topic, stamp_ms, until_ms, wanted)):
            if any(type(at) is not int for (at,) in found):
                raise self._damaged(f"topic {topic!r}, a number in an index")
            yield [at for (at,) in found if at <= until_ms]
            stamp_ms = found[-1][0]
            if len(found) < wanted or stamp_ms > until_ms:
                return
            wanted = min(_MORE_STAMPS * wanted, PAGE_RECORDS)

    def _of_stamp(self, topic: str, stamp_ms: int) -> Iterator[StoredRecord]:
        """Every record of one stamp, in order of key, partition and offset."""
        after: tuple[int | bytes, ...] = (b"", -1, -1)
        while page := self._records(OF_STAMP, (topic, stamp_ms, *after), topic, PAGE_RECORDS, BY_TIME):
            yield from page
            if not is_full(page, PAGE_RECORDS, PAGE_BYTES):
                return
            after = page[-1].key, page[-1].partition, page[-1].offset

    def _of_keys(self, topic: str, stamps: Sequence[int], keys: Sequence[bytes]) -> Iterator[StoredRecord]:
        """Every record of these stamps and keys, both ascending, in order of stamp, key, partition and offset."""
        at_once = max(1, PAGE_RECORDS // len(keys))
        for first in range(0, len(stamps), at_once):
            for first_key in range(0, len(keys), PAGE_RECORDS):
                some = keys[first_key : first_key + PAGE_RECORDS]
                yield from self._at_once(topic, stamps[first : first + at_once], some)

    def _at_once(self, topic: str, stamps: Sequence[int], keys: Sequence[bytes]) -> Iterator[StoredRecord]:
        """As _of_keys, of so few that one query can name them all; pages of large records are several."""
        after: tuple[int | bytes, ...] = (-1, b"", -1, -1)
        where = under_keys(len(stamps), len(keys))
        while page := self._records(where, (topic, *stamps, *keys, *after), topic, PAGE_RECORDS, BY_TIME):
            yield from page
            if not is_full(page, PAGE_RECORDS, PAGE_BYTES):
                return
            after = page[-1].timestamp_ms, page[-1].key, page[-1].partition, page[-1].offset

    def _marker(self, topic: str, where: str, value: bytes) -> list[StoredRecord]:
        indexed = "records INDEXED BY close_markers"
        return self._records(f"topic = ? AND key = x'' AND {where}", (topic, value), topic, 1, indexed)

    def partitions(self, topic: str) -> list[int]:
        """Partitions of a topic with at least one record, sorted."""
        partitions: list[int] = []
        after = -1
        # Each step is a seek in the primary key; DISTINCT would walk over every record.
        query = "SELECT min(partition) FROM records WHERE topic = ? AND partition > ?"
        while (after := self._number(query, topic, after)) >= 0:
            partitions.append(after)
        return partitions

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record of the partition will get."""
        return self._number("SELECT max(offset) FROM records WHERE topic = ? AND partition = ?", topic, partition) + 1

    def positions(self, worker: str) -> dict[int, Commit]:
        """The last committed position of each partition. OPERATOR DOMAIN."""
        query = f"SELECT partition, offset, metadata, {self._checksum_column} FROM positions WHERE worker = ?"
        rows = self._rows(query, (worker,))
        for partition, offset, metadata, stored in rows:
            if stored is not None and stored != position_checksum(worker, partition, offset, metadata):
                raise self._damaged(f"the position of worker {worker!r} in partition {partition}")
        return {row[0]: Commit(*row[:3]) for row in rows}

    def workers(self) -> list[str]:
        """Names of all workers with a position, sorted. OPERATOR DOMAIN."""
        return [row[0] for row in self._rows("SELECT DISTINCT worker FROM positions ORDER BY worker", ())]

    def close(self) -> None:
        """Close the connection; iterators still in use then raise StateError."""
        with self._thread_lock:
            self._db.close()

    @property
    def _checksum_column(self) -> str:
        return "checksum" if self._content is Content.CURRENT else "NULL"

    def _records(
        self, where: str, values: tuple[str | int | bytes, ...], topic: str, limit: int, table: str = "records"
    ) -> list[StoredRecord]:
        """Up to `limit` records, not more than PAGE_BYTES after the first. Raises StateError for a damaged one."""
        columns = f"offset, partition, key, value, timestamp_ms, {self._checksum_column}"
        found, size = list[StoredRecord](), 0
        self.before_query()
        with self._thread_lock, self._faults_of("read"):
            cursor = self._db.execute(f"SELECT {columns} FROM {table} WHERE {where} LIMIT {limit}", values)
            for offset, partition, key, value, timestamp_ms, stored in cursor:
                right = stored is None or stored == checksum(topic, partition, offset, timestamp_ms, key, value)
                if not right:
                    raise self._damaged(f"topic {topic!r}, partition {partition}, offset {offset}")
                found.append(StoredRecord(offset, partition, key, value, timestamp_ms))
                size += len(value)
                if size > PAGE_BYTES:
                    break
            cursor.close()
        return found

    def _rows(self, query: str, values: tuple[str | int, ...]) -> list[tuple]:  # type: ignore[type-arg]
        self.before_query()
        with self._thread_lock, self._faults_of("read"):
            return self._db.execute(query, values).fetchall()

    def _number(self, query: str, topic: str, partition: int) -> int:
        value = self._rows(query, (topic, partition))[0][0]
        if value is not None and type(value) is not int:
            raise self._damaged(f"topic {topic!r}, a number in an index")
        return -1 if value is None else value

    def _damaged(self, place: str) -> StateError:
        return StateError(f"{self.path}: {damage_text(f'{place}: the record is damaged or gone')}")

    @contextlib.contextmanager
    def _faults_of(self, action: str) -> Iterator[None]:
        """Errors of SQLite in this block as errors of this package, which say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            raise database_fault(self.path, action, name, str(error)) from error
