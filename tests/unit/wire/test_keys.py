"""Canonical key bytes: one byte string for a key, and nothing else is read."""

from __future__ import annotations

import msgpack
import pytest

from sfm_stream.errors import FormatError, UsageError
from sfm_stream.wire.keys import MAX_KEY_BYTES, MAX_KEY_PARTS, decode_key, encode_key


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ((), b"\x90"),
        ("a", b"\x91\xa1a"),
        (b"a", b"\x91\xc4\x01a"),
        (-1, b"\x91\xff"),
        (128, b"\x91\xcc\x80"),
        (("a", 1), b"\x92\xa1a\x01"),
        (-(1 << 63), b"\x91\xd3\x80" + bytes(7)),
    ],
)
def test_the_bytes_of_a_key(key: object, encoded: bytes) -> None:
    assert encode_key(key) == encoded  # type: ignore[arg-type]
    assert decode_key(encoded) == (key if isinstance(key, tuple) else (key,))


@pytest.mark.parametrize("key", [1 << 64, -(1 << 63) - 1, "\ud800", object()])
def test_what_msgpack_cannot_hold(key: object) -> None:
    with pytest.raises(UsageError) as caught:
        encode_key(key)  # type: ignore[arg-type]
    assert caught.value.__context__ is None


REFUSED = {
    "not bytes": "a",
    "empty": b"",
    "a bare value": b"\xa1a",
    "a map": b"\x80",
    "a bool": b"\x91\xc3",
    "a float": b"\x91\xcb" + bytes(8),
    "nil": b"\x91\xc0",
    "nested": b"\x91\x91\xa1a",
    "an extension": b"\x91\xd4\x01\x00",
    "beyond int64": b"\x91\xcf\x80" + bytes(7),
    "a long integer": b"\x91\xcc\x01",
    "a long header": b"\xdc\x00\x01\xa1a",
    "long text": b"\x91\xd9\x01a",
    "not UTF-8": b"\x91\xa1\xff",
    "truncated": b"\x91\xa2a",
    "trailing": b"\x91\xa1a\x00",
    "4 billion fields": b"\xdd\xff\xff\xff\xff",
    "too many fields": msgpack.packb(["a"] * (MAX_KEY_PARTS + 1)),
    "too long": msgpack.packb(["a" * MAX_KEY_BYTES]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode_key(REFUSED[name])  # type: ignore[arg-type]
    assert caught.value.field == "key"
    assert caught.value.__context__ is None
