"""Decompression of batches: what was put in comes out, and no more than is allowed."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard
from kafka.codec import snappy_encode

from sfm_stream.transport.kafka.kafka_python.codecs import decompressed, unpacked_bytes

ENCODE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, snappy.compress),
    "snappy of xerial": (2, snappy_encode),
    "lz4": (3, lz4.frame.compress),
    "zstd": (4, zstandard.compress),
}
SIZES = [1, 17, (1 << 16) - 1, 1 << 16, 200_000]


@pytest.mark.parametrize("name", ENCODE)
@pytest.mark.parametrize("size", SIZES)
def test_up_to_the_bound_everything_comes_out(name, size):
    codec, encode = ENCODE[name]
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert decompressed(codec, encode(data), size) == data
    with pytest.raises(ValueError, match=f"more than {size - 1} bytes"):
        decompressed(codec, encode(data), size - 1)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_the_bound_is_that_of_all_parts_together(name):
    """Both formats allow several parts one behind the other, and gzip zeros behind each."""
    codec, encode = ENCODE[name]
    parts = [b"first" * 40, b"second" * 50, b"third" * 60]
    padding = bytes(3) if name == "gzip" else b""
    data, whole = b"".join(encode(part) + padding for part in parts), b"".join(parts)
    assert decompressed(codec, data, len(whole)) == whole
    with pytest.raises(ValueError, match=f"more than {len(whole) - 1} bytes"):
        decompressed(codec, data, len(whole) - 1)


@pytest.mark.parametrize("name", ENCODE)
def test_a_bomb_takes_no_more_memory_than_is_allowed(name):
    codec, encode = ENCODE[name]
    bomb = encode(bytes(1 << 26))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            decompressed(codec, bomb, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ENCODE)
def test_a_part_is_no_whole(name):
    codec, encode = ENCODE[name]
    whole = encode(b"a text that is long enough to be cut" * 9)
    if name == "zstd":
        return  # the library gives what it has; the number of records in the batch tells
    with pytest.raises(Exception):  # noqa: B017, PT011 -- each library has errors of its own
        decompressed(codec, whole[:-9], 1 << 20)


@pytest.mark.parametrize("name", ENCODE)
@pytest.mark.parametrize("size", [*SIZES, 5_000_000])
@pytest.mark.parametrize("of", ["zeros", "noise"])
def test_the_size_is_bounded_without_decompressing(name, size, of):
    codec, encode = ENCODE[name]
    data = bytes(size) if of == "zeros" else random.Random(size).randbytes(size)
    bound = unpacked_bytes(codec, encode(data))
    assert size <= bound <= size + (1 << 17), "no more than a block above"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_small_part_hides_no_large_one(name):
    codec, encode = ENCODE[name]
    assert unpacked_bytes(codec, encode(bytes(1 << 23)) + encode(b"small")) >= 1 << 23


@pytest.mark.parametrize(("name", "options"), [("sizes", {}), ("none", {"write_content_size": False})])
def test_frames_of_zstd_of_every_head(name, options):
    for check in (False, True):
        pack = zstandard.ZstdCompressor(write_checksum=check, **options)
        for size in (0, 200, 300, 70_000, 1 << 20):
            assert size <= unpacked_bytes(4, pack.compress(bytes(size)) * 2) <= 2 * size + (1 << 18)


@pytest.mark.parametrize("options", [{"block_size": size} for size in range(4, 8)] + [{"block_checksum": True}])
def test_frames_of_lz4_of_every_head(options):
    for stored in (False, True):
        frame = lz4.frame.compress(random.Random(1).randbytes(900_000), store_size=stored, **options)
        assert 900_000 <= unpacked_bytes(3, frame) <= 900_000 + (4 << 20)


@pytest.mark.parametrize("codec", range(8))
def test_of_what_is_no_such_format_the_most_is_taken(codec):
    data = b"\xff" * 40 if codec == 2 else b"not what it should be, at least"
    assert unpacked_bytes(codec, data) >= (1 << 20) or codec == 1


def test_an_empty_block_of_lz4_hides_none_behind_it():
    frame = lz4.frame.compress(bytes(1 << 20), content_checksum=False, store_size=False)
    hidden = frame[:7] + b"\0\0\0\x80" + frame[7:]
    assert decompressed(3, hidden, 1 << 20) == bytes(1 << 20)
    assert unpacked_bytes(3, hidden) >= 1 << 20
