"""One entry of the ledger: the key and value of its record.

Compaction keeps the last record of each key, which names a worker and a partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfm_stream.errors import StateError
from sfm_stream.types import Commit
from sfm_stream.wire.stored_state import StateCodec, StoredFields


class _EntryFields(StoredFields, frozen=True):
    offset: int
    metadata: bytes
    transaction: str


_CODEC = StateCodec(_EntryFields, version=1, name="an entry")


@dataclass(frozen=True, slots=True)
class Entry:
    """A committed position, and the name of the transaction that committed it."""

    commit: Commit
    transaction: str


def entry_key(worker: str, partition: int) -> bytes:
    """The record key of an entry."""
    return f"{worker}/{partition}".encode()


def entry_value(commit: Commit, transaction: str) -> bytes:
    """The record value of an entry."""
    return _CODEC.encode(commit.offset, commit.metadata, transaction)


def decode_entry(topic: str, partition: int, key: bytes | None, value: bytes | None) -> tuple[str, Entry]:
    """(worker, entry) of one record. Raises StateError for a record that entry_key and entry_value do not write."""
    where = f"ledger topic {topic}, partition {partition}"
    try:
        worker, _, number = (key or b"").decode().rpartition("/")
    except UnicodeDecodeError as error:
        raise StateError(f"{where}: an entry cannot be read: {error}") from error
    stored = _CODEC.decode(value or b"", where)
    if number != str(partition):
        raise StateError(f"{where}: an entry for partition {number!r}; this release keeps partitions apart")
    return worker, Entry(Commit(partition, stored.offset, stored.metadata), stored.transaction)
