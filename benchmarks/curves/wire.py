"""Batches of Kafka's message format 2 in memory, as a fetch would give them: no broker is part of what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

from crc32c import crc32c
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

HEADER, BEHIND_CRC = Struct(">qiibI"), Struct(">hiqqqhii")
CODECS = {
    "none": (0, bytes),
    "gzip": (1, gzip_encode),
    "snappy": (2, snappy_encode),
    "lz4": (3, lz4_encode),
    "zstd": (4, zstd_encode),
}
BATCH_BYTES = 16_384
"""What the Java producer fills by default."""
EDGES = 61
"""Bytes of the header of a batch."""


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte, the lowest first."""
    number, out = number << 1 ^ number >> 63, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def batches(
    records: Sequence[tuple[bytes, bytes]], at_ms: int, a_batch: int | None, codec: str
) -> Iterator[tuple[int, int, bytes]]:
    """(first offset, next offset, bytes) of each batch of (key, value) records with one time stamp.

    a_batch: records in a batch; None: as many as 16 KiB take before they are compressed.
    """
    first, size = 0, 0
    bodies: list[bytes] = []
    for key, value in records:
        body = b"\0\0" + varint(len(bodies)) + varint(len(key)) + key + varint(len(value)) + value + b"\0"
        framed = varint(len(body)) + body
        full = len(bodies) == a_batch if a_batch else size + len(framed) + EDGES > BATCH_BYTES
        if bodies and full:
            yield first, first + len(bodies), batch(first, bodies, at_ms, codec)
            first, size, bodies = first + len(bodies), 0, []
            body = b"\0\0\0" + varint(len(key)) + key + varint(len(value)) + value + b"\0"
            framed = varint(len(body)) + body
        bodies.append(framed)
        size += len(framed)
    if bodies:
        yield first, first + len(bodies), batch(first, bodies, at_ms, codec)


def batch(first: int, bodies: Sequence[bytes], at_ms: int, codec: str) -> bytes:
    """One batch: attributes, last offset delta, both time stamps, no producer, the number of records, the records."""
    number, packed = CODECS[codec]
    count = len(bodies)
    checked = BEHIND_CRC.pack(number, count - 1, at_ms, at_ms, -1, -1, -1, count) + packed(b"".join(bodies))
    return HEADER.pack(first, len(checked) + HEADER.size - 12, 0, 2, crc32c(checked)) + checked
