"""The ledger: a compacted topic with the last committed position of each worker and partition. OPERATOR DOMAIN.

One transaction writes the records of a step, its position into the ledger, and the offset of the consumer group. The
group offset is there because Kafka refuses it, and with it the transaction, to a member of an old generation. The
position is read from the ledger: it holds state of any length, and is kept when group offsets are reset or expire.
docs/decisions/0009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfm_stream.errors import BrokerAway, StateError
from sfm_stream.transport.kafka.topic_log import TopicLog
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
    """The record key of an entry: compaction keeps the last record of each."""
    return f"{worker}/{partition}".encode()


def entry_value(commit: Commit, transaction: str) -> bytes:
    """The record value of an entry."""
    return _CODEC.encode(commit.offset, commit.metadata, transaction)


class Ledger:
    """Reads one ledger topic. It has as many partitions as the input, and an entry is in the partition it is about."""

    def __init__(self, log: TopicLog, topic: str) -> None:
        self._log, self.topic = log, topic
        self._entries: dict[int, dict[str, Entry]] = {}
        self._next: dict[int, int] = {}

    def known(self, partition: int) -> dict[str, Entry]:
        """The entries of a partition as the last call of entries() found them."""
        return self._entries.get(partition, {})

    def ends(self, partitions: Iterable[int], patience_s: float = 0) -> dict[int, int]:
        """Partition to its log end, for entries(). Partitions whose end is not known within patience_s are left out."""
        return self._log.log_ends(self.topic, partitions, patience_s)

    def entries(self, partition: int, patience_s: float, end: int | None = None) -> dict[str, Entry]:
        """Worker to its last committed entry in a partition, up to the log end of now, or up to `end` (from ends()).

        No transaction that wrote before there is still open when this returns. Raises BrokerAway if the log end cannot
        be found out, or if a transaction is still open after patience_s.
        """
        if end is None and (end := self.ends([partition], patience_s).get(partition)) is None:
            raise BrokerAway(f"topic {self.topic}, partition {partition}: where it ends cannot be found out now")
        known = self._entries.setdefault(partition, {})
        start = max(self._next.get(partition, 0), self._log.starts(self.topic, [partition])[partition])
        for batch in self._log.batches(self.topic, partition, start, end, patience_s):
            for key, value in zip(batch.keys(), batch.values(), strict=True):
                worker, entry = _decoded(self.topic, partition, key, value)
                known[worker] = entry
            self._next[partition] = batch.next_offset
        return known


def _decoded(topic: str, partition: int, key: bytes | None, value: bytes | None) -> tuple[str, Entry]:
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
