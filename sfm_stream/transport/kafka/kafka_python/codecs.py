"""Decompression of record batches, each with a bound on what comes out: a few bytes may stand for gigabytes."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import Final
from zlib import MAX_WBITS, decompressobj

from kafka.codec import snappy_decode
from lz4.frame import LZ4FrameDecompressor
from zstandard import ZstdDecompressor

from sfm_stream.units import MAX_BATCH_BYTES

CODECS: Final = (1, 2, 3, 4)
"""As the attributes of a batch name them: gzip, snappy, lz4, zstd."""
_CHUNK_BYTES = 1 << 16
_GZIP = MAX_WBITS + 16
"""With the header and trailer of gzip, not of zlib."""
_GZIP_MEMBER = b"\x1f\x8b\x08"
_LZ4_HEAD, _LZ4_MAGIC = Struct("<IBB"), 0x184D2204
_ZSTD_HEAD, _ZSTD_MAGIC = Struct("<IB"), 0xFD2FB528
_ZSTD_BLOCK_BYTES, _ZSTD_REPEATED = 1 << 17, 1
"""The most that a block holds; the kind of block that is one byte many times."""
_XERIAL, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\0", 16


def decompressed(codec: int, data: bytes, most_bytes: int) -> bytes:
    """What the data holds. Raises ValueError where that is more than most_bytes, and errors of the libraries' own."""
    return _DECODERS[codec](data, most_bytes)


def unpacked_bytes(codec: int, data: bytes) -> int:
    """At least as many bytes as `decompressed` gives, or the error that it raises; it is not decompressed for that.

    Told by what the format has: lengths that are checked when it is decompressed, or the number of its blocks and the
    most that a block can hold. Where that cannot be read, the most that a batch may have.
    """
    try:
        return _SIZES[codec](data)
    except (IndexError, KeyError, ValueError, struct_error):
        return MAX_BATCH_BYTES


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


def _gzip_size(data: bytes) -> int:
    """The last bytes are the size of the last member, which is the only one where nothing begins another."""
    return MAX_BATCH_BYTES if _GZIP_MEMBER in data[1:] else int.from_bytes(data[-4:], "little")


def _snappy(data: bytes, most_bytes: int) -> bytes:
    return bytes(snappy_decode(_bounded(data, _snappy_size(data), most_bytes)))


def _snappy_size(data: bytes) -> int:
    """The length of each block stands before it, so that nothing is decompressed to know it."""
    size = 0
    if len(data) > _XERIAL_HEADER_BYTES and data.startswith(_XERIAL):
        at = _XERIAL_HEADER_BYTES
        while at + 4 < len(data):
            size += _snappy_bytes(data, at + 4)
            at += 4 + max(0, int.from_bytes(data[at : at + 4], "big", signed=True))
    else:
        size = _snappy_bytes(data, 0)
    return size


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


def _lz4_size(data: bytes) -> int:
    """Of one frame: its blocks are of at most one size."""
    magic, flags, sizes = _LZ4_HEAD.unpack_from(data)
    at = 7 + 8 * bool(flags & 8) + 4 * (flags & 1)
    if magic != _LZ4_MAGIC:
        raise ValueError("no frame of lz4")
    blocks, behind = 0, 4 * bool(flags & 16)
    while head := int.from_bytes(data[at : at + 4], "little"):
        blocks, at = blocks + 1, at + 4 + (head & 0x7FFFFFFF) + behind  # the highest bit: it is stored as it is
    return blocks * (1 << 8 + 2 * int(sizes >> 4 & 7))


def _zstd(data: bytes, most_bytes: int) -> bytes:
    parts, size = [], 0
    with ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        while part := stream.read(_CHUNK_BYTES):
            size += len(part)
            parts.append(_bounded(part, size, most_bytes))
    return b"".join(parts)


def _zstd_size(data: bytes) -> int:
    """Of frames one behind the other, made of blocks."""
    blocks = at = 0
    while at < len(data):
        magic, flags = _ZSTD_HEAD.unpack_from(data, at)
        if magic != _ZSTD_MAGIC:
            raise ValueError("no frame of zstd")
        whole = flags >> 5 & 1  # then the size is there, and no window
        at += 6 - whole + (0, 1, 2, 4)[flags & 3] + (whole, 2, 4, 8)[flags >> 6]
        last = 0
        while not last:
            head = int.from_bytes(data[at : at + 3], "little")
            last, blocks = head & 1, blocks + 1
            at += 3 + (1 if head >> 1 & 3 == _ZSTD_REPEATED else head >> 3)
            if at > len(data):
                raise ValueError("a block reaches beyond the batch")
        at += 4 * (flags >> 2 & 1)
    return blocks * _ZSTD_BLOCK_BYTES


def _bounded(data: bytes, size: int, most_bytes: int) -> bytes:
    if size > most_bytes:
        raise ValueError(f"more than {most_bytes} bytes")
    return data


_DECODERS: dict[int, Callable[[bytes, int], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
_SIZES: dict[int, Callable[[bytes], int]] = {1: _gzip_size, 2: _snappy_size, 3: _lz4_size, 4: _zstd_size}
