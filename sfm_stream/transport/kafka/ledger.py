"""The ledger: a compacted topic with the last committed position of each worker and partition. OPERATOR DOMAIN.

One transaction writes the records of a step, its position into the ledger, and the offset of the consumer group. The
group offset is there because Kafka refuses it, and with it the transaction, to a member of an old generation. The
position is read from the ledger: it holds state of any length, and is kept when group offsets are reset or expire.
docs/decisions/0009.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfm_stream.errors import BrokerAway
from sfm_stream.transport.kafka.ledger_entry import Entry, decode_entry
from sfm_stream.transport.kafka.topic_log import TopicLog


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

    def has(self, worker: str, partitions: Iterable[int], patience_s: float) -> bool:
        """Whether a worker has an entry in each of these partitions. Raises as entries()."""
        return all(worker in self.entries(partition, patience_s) for partition in partitions)

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
                worker, entry = decode_entry(self.topic, partition, key, value)
                known[worker] = entry
            self._next[partition] = batch.next_offset
        return known
