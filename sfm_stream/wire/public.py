"""What `sfm_stream.wire` offers, from where it is defined. Loaded when the first of these names is used."""

from sfm_stream.types import Window
from sfm_stream.wire.codec import (
    decode,
    decode_at,
    decode_marker,
    decode_release,
    decode_rollup,
    encode,
    payload_digest,
)
from sfm_stream.wire.keys import decode_key, encode_key
from sfm_stream.wire.records import CloseMarker, Release, RollupRecord, WireRecord, release_id

__all__ = [
    "CloseMarker",
    "Release",
    "RollupRecord",
    "Window",
    "WireRecord",
    "decode",
    "decode_at",
    "decode_key",
    "decode_marker",
    "decode_release",
    "decode_rollup",
    "encode",
    "encode_key",
    "payload_digest",
    "release_id",
]
