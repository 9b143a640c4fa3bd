"""A guess at the format of an input that is no JSON lines, from its first bytes, and what to do about it."""

from __future__ import annotations

import re

from sfm_stream.errors import SfmStreamError
from sfm_stream.transport.files.bytestream import ByteStream

HEAD_BYTES = 4096
"""As many of the first bytes as are worth looking at."""

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"PAR1", "a Parquet file", "write its rows as JSON lines, one object a line"),
    (b"Obj\x01", "an Avro file", "write its records as JSON lines, one object a line"),
    (b"ORC", "an ORC file", "write its rows as JSON lines, one object a line"),
    (b"ARROW1", "an Arrow file", "write its rows as JSON lines, one object a line"),
    (b"SQLite format 3\x00", "a SQLite database", "write the rows of a query as JSON lines, one object a line"),
    (b"\x1f\x8b", "gzip in gzip", "unpack it once"),
    (b"\xff\xfe", "UTF-16 text", "convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "convert it to UTF-8"),
    (b"<", "XML or HTML", "write its records as JSON lines, one object a line"),
    (b"[", "a JSON array", "write one object a line (jq -c '.[]')"),
)
"""First bytes, the format that begins with them, and the remedy."""
_SEPARATORS = re.compile(rb"[,;\t|]")


def guessed_format(head: bytes) -> tuple[str, str] | None:
    """(the format, the remedy); None where the bytes may be JSON lines.

    head: the first bytes of the decompressed input. At most HEAD_BYTES of them are looked at.
    """
    head = head[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    for magic, name, remedy in _MAGIC:
        if head.startswith(magic) or (len(magic) == 1 and head.lstrip().startswith(magic)):
            return name, remedy
    if _every_other_is_zero(head):
        return "UTF-16 text", "convert it to UTF-8"
    text = head.lstrip()
    if not text:
        return None
    if b"\n" not in head and b"\r" in head.rstrip(b"\r"):
        return "lines that end in carriage returns", r"end them in newlines (tr '\r' '\n')"
    first = text.splitlines()[0].rstrip()
    if first.startswith(b"{"):
        if first.count(b"{") > first.count(b"}") and b"\n" in text:
            return "JSON over several lines", "write one object a line (jq -c .)"
        return None
    if b"\x00" in head:
        return "binary data", "write its records as JSON lines, one object a line"
    if len(_SEPARATORS.findall(first)) >= 1 and not first.startswith(b'"{'):
        return "a table of separated values (CSV)", "write its rows as JSON lines, one object a line"
    return None


def format_hint(path: str) -> str:
    """What the file at `path` looks like, and the remedy, as a sentence; "" where it may be JSON lines.

    "" too for standard input, which cannot be read twice, and for a file that cannot be read any more.
    """
    if path == "-":
        return ""
    try:
        stream = ByteStream(path)
        try:
            guess = guessed_format(stream.read(HEAD_BYTES) or b"")
        finally:
            stream.close()
    except SfmStreamError:
        return ""
    return f"The input looks like {guess[0]}: {guess[1]}" if guess else ""


def _every_other_is_zero(head: bytes) -> bool:
    """ASCII in UTF-16 without a byte order mark."""
    pairs = head[: len(head) // 2 * 2]
    return len(pairs) >= 4 and any(pairs[start::2].count(0) > 0.9 * len(pairs) / 2 for start in (0, 1))
