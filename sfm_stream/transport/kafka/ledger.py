"""Positions of all workers of a pipeline, in a compacted topic: what a successor goes on from. OPERATOR DOMAIN.

A commit writes its position here in the same transaction as its records and as the offset of its consumer group. The
group's generation fences the transaction; the record holds what a group offset cannot, state of any length, and stays
when group offsets are lost, reset or expired. docs/decisions/0009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfm_stream.errors import BrokerAway, StateError
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.types import Commit
from sfm_stream.wire.stored_state import StateCodec, StoredFields


class _Stored(StoredFields, frozen=True):
    offset: int
    metadata: bytes
    transaction: str


_CODEC = StateCodec(_Stored, version=1, name="an entry")


@dataclass(frozen=True, slots=True)
class Entry:
    """A committed position, and the name of the transaction that committed it."""

    commit: Commit
    transaction: str


def entry_key(worker: str, partition: int) -> bytes:
    return f"{worker}/{partition}".encode()


def entry_value(commit: Commit, transaction: str) -> bytes:
    return _CODEC.encode(commit.offset, commit.metadata, transaction)


class Ledger:
    """The entries of one ledger topic, which has as many partitions as the input."""

    def __init__(self, log: TopicLog, topic: str) -> None:
        self._log, self.topic = log, topic
        self._entries: dict[int, dict[str, Entry]] = {}
        self._next: dict[int, int] = {}

    def known(self, partition: int) -> dict[str, Entry]:
        """What the last look at a partition showed."""
        return self._entries.get(partition, {})

    def ends(self, partitions: Iterable[int], patience_s: float = 0) -> dict[int, int]:
        """Partition to the end behind everything acknowledged before this call, for entries(); some may be missing."""
        return self._log.log_ends(self.topic, partitions, patience_s)

    def entries(self, partition: int, patience_s: float, end: int | None = None) -> dict[str, Entry]:
        """Worker to its last committed position in a partition, everything decided that was written before this call.

        end: what ends() gave; then everything that was written before that. Raises BrokerAway where it cannot be found
        out, or a transaction is still open after patience_s.
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
    where = f"ledger topic {topic}, partition {partition}"
    try:
        worker, _, number = (key or b"").decode().rpartition("/")
    except UnicodeDecodeError as error:
        raise StateError(f"{where}: an entry cannot be read: {error}") from error
    stored = _CODEC.decode(value or b"", where)
    if number != str(partition):
        raise StateError(f"{where}: an entry for partition {number!r}; this release keeps partitions apart")
    return worker, Entry(Commit(partition, stored.offset, stored.metadata), stored.transaction)
