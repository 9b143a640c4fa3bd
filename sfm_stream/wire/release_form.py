"""Releases that differ in nothing but key, bits and noisy count: written, and recognised, by the bytes they share.

    version 1    [ head | id | middle                   | bits         | key ]
    version 2    [ head | id | middle                   | bits | tail | count | key ]

    head     the array header, version, kind and the header of the id
    middle   from the pipeline to the hash, and the header of the bits
    tail     the epsilon of the count, and the header of the count; with no count the whole of it

The bytes between them come from `encode`, so what is written here is byte for byte what `encode` writes
(docs/decisions/0032-a-form-for-each-window.md).
"""

from __future__ import annotations

import hashlib
import struct

from sfm_stream.errors import FormatError, UsageError
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.wire.codec import written
from sfm_stream.wire.keys import decode_key
from sfm_stream.wire.record_layouts import LAYOUTS, RELEASE
from sfm_stream.wire.records import Release, identity_before_key

_ID_BYTES = 16
_COUNT = struct.Struct(">q")


class ReleaseForm:
    """All releases that have everything in common with `like` but key, bits, and the value of a noisy count.

    like: any one of them.
    """

    def __init__(self, like: Release) -> None:
        self.like = like
        names = ["record", *(field.name for field in LAYOUTS[1 if like.span is None else 2][RELEASE])]
        pieces = dict(zip(names, written(like), strict=True))
        self._bits_bytes = like.sketch.shape.nbytes
        self._counted = like.sketch.count is not None
        before_id, after_id = names[: names.index("id")], names[names.index("id") + 1 : names.index("bits")]
        self._head = b"".join(pieces[name] for name in before_id) + pieces["id"][:-_ID_BYTES]
        self._middle = b"".join(pieces[name] for name in after_id) + pieces["bits"][: -self._bits_bytes]
        tail = b"".join(pieces.get(name, b"") for name in ("count_epsilon", "count"))
        self._tail = tail[: -_COUNT.size] if self._counted else tail
        self._identity = identity_before_key(like.pipeline, like.epoch, like.partition, like.window)
        self._id_at = len(self._head)
        self._middle_at = self._id_at + _ID_BYTES
        self._bits_at = self._middle_at + len(self._middle)
        self._tail_at = self._bits_at + self._bits_bytes
        self._count_at = self._tail_at + len(self._tail)
        self._key_at = self._count_at + (_COUNT.size if self._counted else 0)

    def write(self, key: bytes, bits: bytes | memoryview, count: int | None) -> bytes:
        """The bytes that `encode` gives for such a release.

        key: canonical bytes as encode_key gives them, which are not looked at again. bits: shape.nbytes bytes.
        count: the value of the noisy count, None where the form has none. Raises UsageError.
        """
        if len(bits) != self._bits_bytes or (count is not None) != self._counted:
            raise UsageError(f"a release of another form: {len(bits)} bytes of bits, the count is {count}")
        value = _COUNT.pack(count) if count is not None else b""
        return b"".join((self._head, self._id(key), self._middle, bits, self._tail, value, key))

    def read(self, payload: bytes) -> tuple[bytes, bytes] | None:
        """(release id, key) of a payload that `decode` takes, and takes for a release of this form; None for any other.

        Bits and count may have any value, so only the bytes around them are compared.
        """
        release_id, key = payload[self._id_at : self._middle_at], payload[self._key_at :]
        if (
            payload[: self._id_at] != self._head
            or payload[self._middle_at : self._bits_at] != self._middle
            or payload[self._tail_at : self._count_at] != self._tail
            or release_id != self._id(key)
        ):
            return None
        try:
            decode_key(key)
        except FormatError:
            return None
        return release_id, key

    def release(self, payload: bytes) -> Release | None:
        """What `decode` gives for a payload that `read` takes; None for any other."""
        found, like = self.read(payload), self.like.sketch
        if found is None:
            return None
        count = like.count
        if count is not None:
            (value,) = _COUNT.unpack_from(payload, self._count_at)
            count = NoisyCount(value, count.epsilon)
        bits = payload[self._bits_at : self._tail_at]
        sketch = SfmSketch(like.shape, like.flip_threshold, like.hash, bits, count)
        return _of_another_key(self.like, found[1], sketch)

    def _id(self, key: bytes) -> bytes:
        return hashlib.sha256(self._identity + key).digest()[:_ID_BYTES]


def _of_another_key(like: Release, key: bytes, sketch: SfmSketch) -> Release:
    """A release that differs in key, bits and the value of its count alone, so that nothing has to be checked again.

    key: known to be canonical. sketch: with a count of the same epsilon, or without one as `like`.
    """
    release = object.__new__(Release)
    for name in Release.__slots__:
        object.__setattr__(release, name, getattr(like, name))
    object.__setattr__(release, "key", key)
    object.__setattr__(release, "sketch", sketch)
    return release
