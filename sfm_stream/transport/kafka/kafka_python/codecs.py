"""Decompression of record batches, each with a bound on what comes out: a few bytes may stand for gigabytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from zlib import MAX_WBITS, decompressobj

from kafka.codec import snappy_decode
from lz4.frame import LZ4FrameDecompressor
from zstandard import ZstdDecompressor

CODECS: Final = (1, 2, 3, 4)
"""As the attributes of a batch name them: gzip, snappy, lz4, zstd."""
_CHUNK_BYTES = 1 << 16
_GZIP = MAX_WBITS + 16
"""With the header and trailer of gzip, not of zlib."""
_XERIAL, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\0", 16


def decompressed(codec: int, data: bytes, most_bytes: int) -> bytes:
    """What the data holds. Raises ValueError where that is more than most_bytes, and errors of the libraries' own."""
    return _DECODERS[codec](data, most_bytes)


def _gzip(data: bytes, most_bytes: int) -> bytes:
    """Of one member or several."""
    parts, size = [], 0
    while data:
        decompressor = decompressobj(_GZIP)
        part = decompressor.decompress(data, most_bytes + 1 - size)
        size += len(part)
        parts.append(_bounded(part, size, most_bytes))
        if not decompressor.eof:
            raise ValueError("it ends within a member")
        data = decompressor.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _snappy(data: bytes, most_bytes: int) -> bytes:
    """The length of each block stands before it, so that nothing is decompressed to know it."""
    size = 0
    if len(data) > _XERIAL_HEADER_BYTES and data.startswith(_XERIAL):
        at = _XERIAL_HEADER_BYTES
        while at + 4 < len(data):
            size += _snappy_bytes(data, at + 4)
            at += 4 + max(0, int.from_bytes(data[at : at + 4], "big", signed=True))
    else:
        size = _snappy_bytes(data, 0)
    return bytes(snappy_decode(_bounded(data, size, most_bytes)))


def _snappy_bytes(data: bytes, at: int) -> int:
    """The length of a block when it is decompressed, which stands there as a varint; raises IndexError."""
    size = 0
    for shift in range(0, 35, 7):
        byte = data[at + shift // 7]
        size |= (byte & 127) << shift
        if byte < 128:
            break
    return size


def _lz4(data: bytes, most_bytes: int) -> bytes:
    decompressor = LZ4FrameDecompressor()
    found = decompressor.decompress(data, max_length=most_bytes + 1)
    if len(found) <= most_bytes and not decompressor.eof:
        raise ValueError("it ends within a frame")
    return bytes(_bounded(found, len(found), most_bytes))


def _zstd(data: bytes, most_bytes: int) -> bytes:
    parts, size = [], 0
    with ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        while part := stream.read(_CHUNK_BYTES):
            size += len(part)
            parts.append(_bounded(part, size, most_bytes))
    return b"".join(parts)


def _bounded(data: bytes, size: int, most_bytes: int) -> bytes:
    if size > most_bytes:
        raise ValueError(f"more than {most_bytes} bytes")
    return data


_DECODERS: dict[int, Callable[[bytes, int], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
