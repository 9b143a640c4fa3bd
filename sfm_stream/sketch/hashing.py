"""Hashes of items. No other module names a hash function.

Canonical encoding of an item, the same as Presto's: integers as 8-byte little-endian int64, floats as 8-byte
little-endian IEEE 754 (one NaN, 0x7ff8000000000000; -0.0 and 0.0 differ), text as UTF-8, bytes unchanged. A bool, None
or an integer outside int64 is an error; it is never converted to another type.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from sfm_stream.errors import ItemError
from sfm_stream.units import INT64_MAX, INT64_MIN

_INT64 = struct.Struct("<q")
_FLOAT64 = struct.Struct("<d")
_NAN = struct.pack("<Q", 0x7FF8000000000000)


def encode_item(item: object) -> bytes:
    """The canonical bytes of one item. Raises ItemError, without the item, where it has no canonical encoding."""
    kind = type(item)
    if kind is str:
        with suppress(UnicodeEncodeError):
            return item.encode()  # type: ignore[attr-defined, no-any-return]
        # Raised out here: the codec's error holds the item and must not become the context of this one.
        raise ItemError("text item with a lone surrogate has no UTF-8 encoding")
    if kind is bytes:
        return item  # type: ignore[return-value]
    if isinstance(item, bool | np.bool_):
        raise ItemError("a bool is not an item; map it to text or to an integer first")
    if isinstance(item, int | np.integer) and not isinstance(item, np.timedelta64):
        if not INT64_MIN <= item <= INT64_MAX:
            raise ItemError("integer item outside int64; pass it as text")
        return _INT64.pack(item)
    if isinstance(item, float | np.float32 | np.float16):
        return _NAN if math.isnan(item) else _FLOAT64.pack(item)
    if isinstance(item, str):
        # The characters, whatever a subclass (an enum, say) prints itself as.
        return encode_item(str.__str__(item))
    if isinstance(item, bytes):
        return bytes(item)
    raise ItemError(
        f"an item of type {kind.__name__} has no canonical encoding; use text, bytes, int or float (str(item) for a "
        "UUID, integers of one stated unit for times)"
    )


@dataclass(frozen=True)
class ItemHash:
    """A 64-bit hash of canonical bytes, with the public name under which sketches made with it may be combined."""

    name: str
    digest: Callable[[bytes], int]


XXH64 = ItemHash("xxh64", xxhash.xxh64_intdigest)


def keyed_blake2b(key: bytes) -> ItemHash:
    """BLAKE2b-64 under a secret key of 16..64 bytes, for streams whose contributors may know the hash.

    Contributors then cannot craft items that fill chosen cells. epsilon is the same. The name of the hash has a digest
    of the key in it, so sketches under different keys are never merged. Presto does not know this hash.
    """
    if not 16 <= len(key) <= 64:
        raise ItemError(f"a BLAKE2b hash key has 16 to 64 bytes, got {len(key)}")
    label = hashlib.blake2b(b"sfm-stream hash key label", digest_size=8, key=key).hexdigest()

    def digest(data: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "big")

    return ItemHash(f"blake2b:{label}", digest)


def hash_encoded(encoded: Iterable[bytes], count: int, item_hash: ItemHash = XXH64) -> NDArray[np.uint64]:
    """Shape (count,): hashes of items that are given as canonical bytes."""
    return np.fromiter(map(item_hash.digest, encoded), np.uint64, count)


def hash_items(items: Iterable[object] | NDArray[np.generic], item_hash: ItemHash = XXH64) -> NDArray[np.uint64]:
    """Shape (n,): hashes of a column of items. Integer and float arrays are hashed without a Python loop."""
    if isinstance(items, str | bytes | bytearray | memoryview):
        raise ItemError("expected a column of items, got one text or bytes value; wrap it in a list")
    if type(items) is np.ndarray and items.dtype.kind in "iuf" and items.itemsize <= 8 and item_hash is XXH64:
        return _xxh64_of_words(_words(items.reshape(-1)))
    if isinstance(items, np.ndarray) and items.dtype.kind in "mM":
        # Their tolist() turns some units into integers.
        raise ItemError(f"an array of {items.dtype} has no canonical encoding; use integers of one stated unit")
    column = items.reshape(-1).tolist() if isinstance(items, np.ndarray) else list(items)
    return hash_encoded(map(encode_item, column), len(column), item_hash)


def _words(column: NDArray[np.generic]) -> NDArray[np.uint64]:
    if column.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # widening a signalling NaN would warn
            wide = column.astype("<f8")
        return np.where(np.isnan(wide), np.uint64(0x7FF8000000000000), wide.view(np.uint64))
    if column.dtype.kind == "u" and column.dtype.itemsize == 8 and column.size and int(column.max()) > INT64_MAX:
        raise ItemError("integer item outside int64; pass it as text")
    return column.astype(np.int64).view(np.uint64)


def _xxh64_of_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """xxHash64, seed 0, of each 8-byte word: the published algorithm for inputs of exactly 8 bytes, by columns."""
    prime1, prime2, prime3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
    prime4, prime5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
    with np.errstate(over="ignore"):
        lane = _rotated(words * prime2, 31) * prime1
        mixed = _rotated(lane ^ (prime5 + np.uint64(8)), 27) * prime1 + prime4
        mixed = (mixed ^ (mixed >> np.uint64(33))) * prime2
        mixed = (mixed ^ (mixed >> np.uint64(29))) * prime3
        return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def _rotated(words: NDArray[np.uint64], by: int) -> NDArray[np.uint64]:
    return np.asarray((words << np.uint64(by)) | (words >> np.uint64(64 - by)))
