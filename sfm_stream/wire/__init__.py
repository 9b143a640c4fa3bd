"""Everything with bytes: published records, keys, stored state, and Presto's sketches (`sfm_stream.wire.presto`).

`decode` reads what is published (docs/wire-format.md), `encode` writes it. As in `sfm_stream`, names are loaded when
they are first used: a module that needs the bytes of a key loads neither the codec nor numpy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sfm_stream.wire import public

        return getattr(public, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
