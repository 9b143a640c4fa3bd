"""Published topics in memory: a TopicReader without a broker or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from sfm_stream.types import StoredRecord
from sfm_stream.units import FOREVER_MS, ROLLUPS, SKETCHES
from sfm_stream.wire.codec import CloseMarker, decode


def stored(payloads: Iterable[bytes]) -> list[StoredRecord]:
    """Records with the keys and stamps that workers give them, numbered over all partitions."""
    records = []
    for number, payload in enumerate(payloads):
        record = decode(payload)
        if isinstance(record, CloseMarker):
            key, stamp_ms = b"", record.through_ms
        else:
            key, stamp_ms = record.key, record.window.end_ms
        records.append(StoredRecord(number, record.partition, key, payload, stamp_ms))
    return records


class Topics:
    """Published records in memory."""

    def __init__(self, sketches: Iterable[bytes] = (), rollups: Iterable[bytes] = ()) -> None:
        self._records = {SKETCHES: stored(sketches), ROLLUPS: stored(rollups)}

    def read(
        self,
        topic: str,
        partition: int | None = None,
        offset: int = 0,
        since_ms: int = 0,
        patience_s: float = 0,
    ) -> Iterator[StoredRecord]:
        for each in self._records[topic]:
            if each.offset >= offset and partition in (None, each.partition) and each.timestamp_ms >= since_ms:
                yield each

    def look_up(
        self,
        topic: str,
        since_ms: int = 0,
        until_ms: int = FOREVER_MS,
        keys: Set[bytes] | None = None,
        stamped: Callable[[int], bool] | None = None,
    ) -> Iterator[StoredRecord]:
        for each in self.read(topic):
            if since_ms <= each.timestamp_ms <= until_ms and (keys is None or each.key in keys):
                yield each

    def keys(self, topic: str) -> Iterator[bytes]:
        yield from sorted({each.key for each in self.read(topic)} - {b""})

    def at(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[StoredRecord]:
        found = {each.offset: each for each in self.read(topic, partition)}
        return (found[offset] for offset in offsets if offset in found)

    def markers(self, topic: str, since_ms: int = 0, until_ms: int = FOREVER_MS) -> Iterator[StoredRecord]:
        return self.look_up(topic, keys={b""})
