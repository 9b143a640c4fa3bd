"""Batches in Kafka's message format 2, put together byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch


def varint(number: int) -> bytes:
    """Zigzag, of 64 bits."""
    number = (number << 1) ^ (number >> 63)
    spelled = bytearray()
    while number > 127:
        spelled.append(number & 127 | 128)
        number >>= 7
    return bytes([*spelled, number])


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta: int, time_delta: int, value: bytes | None, key: bytes | None = None, headers: bytes = b"\0") -> bytes:
    inner = b"\0" + varint(time_delta) + varint(delta) + nullable(key) + nullable(value) + headers
    return varint(len(inner)) + inner


def batch_of(records: Sequence[bytes], first: int = 0, attributes: int = 0, most_ms: int = 0) -> bytes:
    """The stored bytes of encoded records; base time stamp 0, check sum 0."""
    return stored(b"".join(records), len(records), first, attributes, most_ms)


def stored(data: bytes, count: int, first: int = 0, attributes: int = 0, most_ms: int = 0) -> bytes:
    behind = struct.pack(">bIhiqqqhii", 2, 0, attributes, count - 1, 0, most_ms, -1, -1, -1, count) + data
    return struct.pack(">qii", first, len(behind) + 4, 0) + behind


def apart(stretches: Sequence[bytes]) -> list[bytes]:
    """The batches that lie one behind the other in these, each by itself."""
    found = []
    for stretch in stretches:
        while stretch:
            end = 12 + int.from_bytes(stretch[8:12], "big")
            found.append(stretch[:end])
            stretch = stretch[end:]
    return found


def handed_on(*raws: bytes, partition: int = 0, first: int = 0, next_offset: int = 1 << 40) -> KafkaBatch:
    """Batches that follow each other, as the client would hand them on."""
    return KafkaBatch(partition, first, next_offset, list(raws), batches=len(raws))
