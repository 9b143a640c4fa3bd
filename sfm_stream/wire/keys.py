"""Canonical bytes of counting keys: a msgpack array of text, int64 or bytes, each in its shortest form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgpack  # type: ignore[import-untyped]  # no stubs are published; every result is type-checked below

from sfm_stream.errors import FormatError, UsageError
from sfm_stream.types import KeyPart, KeyValue
from sfm_stream.units import INT64_MAX, INT64_MIN

MAX_KEY_BYTES = 65536
MAX_KEY_PARTS = 32
MARKER_KEY = b""
"""Record key of close markers: no counting key has these bytes."""
_KNOWN_BYTES = 128


def encode_key(key: KeyValue) -> bytes:
    """The canonical bytes of a counting key: a msgpack array of its fields. Keys are published in this order of bytes.

    Raises UsageError for what msgpack cannot hold: an integer beyond 64 bits, text with a lone surrogate.
    """
    (encoded,) = encode_keys((key,))
    return encoded


def encode_keys(keys: Iterable[KeyValue]) -> list[bytes]:
    """As `encode_key`, of each of these keys; several times faster than one by one."""
    pack = msgpack.Packer(use_bin_type=True).pack
    try:
        return [pack(key if isinstance(key, tuple) else (key,)) for key in keys]
    except (TypeError, ValueError, OverflowError) as error:
        problem = type(error).__name__
    # Raised after the handler: an error of msgpack may hold the key, and must not be the context of this one.
    raise UsageError(f"key: no canonical encoding ({problem})")


def decode_key(encoded: bytes) -> tuple[KeyPart, ...]:
    """The fields of a canonical key, always as a tuple.

    Raises FormatError("key", ...) unless these are exactly the bytes that encode_key writes for them: at most 64 KiB,
    at most 32 fields, each text, int64 or bytes. The message never carries the key.
    """
    if type(encoded) is not bytes:
        raise FormatError("key", f"expected bytes, got {type(encoded).__name__}")
    if len(encoded) > MAX_KEY_BYTES:
        raise FormatError("key", f"{len(encoded)} bytes, at most {MAX_KEY_BYTES}")
    return _known_parts(encoded) if len(encoded) <= _KNOWN_BYTES else _parts_of(encoded)


def _parts_of(encoded: bytes) -> tuple[KeyPart, ...]:
    try:
        # A key has no maps and no extensions. The limits stop a false length from allocating memory.
        parts = msgpack.unpackb(
            encoded, raw=False, use_list=False, max_array_len=MAX_KEY_PARTS, max_map_len=0, max_ext_len=0
        )
    except (ValueError, TypeError, msgpack.UnpackException):
        parts = None  # raised below: a decoding error holds the bytes
    if type(parts) is not tuple:
        raise FormatError("key", "not one msgpack array")
    checked = checked_parts(parts)
    if encode_key(checked) != encoded:
        raise FormatError("key", "not in canonical form")
    return checked


_known_parts = lru_cache(maxsize=2048)(_parts_of)
"""Of keys that are short, as most are: each record of a key has it."""


def checked_parts(parts: Sequence[object]) -> tuple[KeyPart, ...]:
    """The same parts, checked: each is text, an int64 or bytes (a bool is not an integer). Else FormatError("key")."""
    if len(parts) > MAX_KEY_PARTS:
        raise FormatError("key", f"{len(parts)} fields, at most {MAX_KEY_PARTS}")
    checked: list[KeyPart] = []
    for index, part in enumerate(parts):
        if not isinstance(part, str | bytes | int) or isinstance(part, bool):
            raise FormatError("key", f"field {index} is neither text, integer nor bytes: {type(part).__name__}")
        if isinstance(part, int) and not INT64_MIN <= part <= INT64_MAX:
            raise FormatError("key", f"the integer in field {index} is outside int64")
        checked.append(part)
    return tuple(checked)
