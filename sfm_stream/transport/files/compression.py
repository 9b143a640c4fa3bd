"""How an input is compressed, found out from its first bytes and never from its name."""

from __future__ import annotations

from enum import Enum

GZIP_MAGIC = b"\x1f\x8b"
"""First bytes of every gzip member (RFC 1952, 2.3.1)."""


class Compression(Enum):
    """Each value is the name of the format."""

    UNKNOWN = ""
    """Too little was read yet."""
    NONE = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"
    BZIP2 = "bzip2"
    XZ = "xz"


_MAGIC = {
    GZIP_MAGIC: Compression.GZIP,
    b"\x28\xb5\x2f\xfd": Compression.ZSTD,
    b"BZh": Compression.BZIP2,
    b"\xfd7zXZ": Compression.XZ,
}
READ_HERE = (Compression.NONE, Compression.GZIP)


def compression_of(head: bytes, at_end: bool) -> Compression:
    """Of an input that begins with `head`. UNKNOWN while it is empty, or may go on to be compressed.

    at_end: no more bytes follow for now.
    """
    for magic, compression in _MAGIC.items():
        if head.startswith(magic):
            return compression
    undecided = not head or (not at_end and any(magic.startswith(head) for magic in _MAGIC))
    return Compression.UNKNOWN if undecided else Compression.NONE
