"""The records of one batch in Kafka's format 2, as bytes behind room for the header of the batch.

    record   length of the rest | 0 | time after the first's | place | key length | key | value length | value | 0

Every number is a zigzag varint. The client writes the same bytes, record by record, at ten times the cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sfm_stream.types import Record

HEADER_BYTES = 61
"""Of a batch, before the records."""
_MOST_HEAD_BYTES = 35
"""An upper bound of what a record has beside key and value: two bytes, and varints of at most 10 and 4 times 5."""


@lru_cache(maxsize=1 << 12)  # places, and lengths, which are few: all records of a configuration have the same
def varint(number: int) -> bytes:
    """A signed 64-bit integer as Kafka writes it: zigzag, seven bits a byte, the low ones first."""
    left, written = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def body(records: Sequence[Record]) -> bytearray:
    """Room for the header, then these records, which lie in one partition, at least one. Times are relative to the
    first.
    """
    first_ms = records[0].timestamp_ms
    pieces = [bytes(HEADER_BYTES)]
    for place, record in enumerate(records):
        key, value = record.key, record.value
        head = b"".join((b"\0", varint(record.timestamp_ms - first_ms), varint(place), varint(len(key))))
        value_head = varint(len(value))
        rest = len(head) + len(key) + len(value_head) + len(value) + 1
        pieces += (varint(rest), head, key, value_head, value, b"\0")
    return bytearray().join(pieces)


def batches_of(records: Sequence[Record], most_bytes: int) -> Iterator[Sequence[Record]]:
    """The records cut into batches, in their order: each of one topic and partition, and of at most most_bytes.

    A record that is larger by itself is a batch by itself. Records of two partitions may lie between each other: what
    belongs to a partition keeps its order.
    """
    by_partition: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        by_partition.setdefault((record.topic, record.partition), []).append(record)
    for together in by_partition.values():
        begin, room = 0, most_bytes - HEADER_BYTES
        for end, record in enumerate(together):
            size = len(record.key) + len(record.value) + _MOST_HEAD_BYTES
            if room < size and end > begin:
                yield together[begin:end]
                begin, room = end, most_bytes - HEADER_BYTES
            room -= size
        yield together[begin:]
