"""Decompression of batches: what was put in comes out, and no more than is allowed."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard
from kafka.codec import snappy_encode

from sfm_stream.transport.kafka.kafka_python.codecs import decompressed

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
