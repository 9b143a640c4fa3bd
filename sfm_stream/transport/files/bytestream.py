"""Bytes of a plain file, a gzip file or standard input, with one position: that of the decompressed stream.

A regular file can be read again from any position (gzip: by reading forward from its beginning). A pipe is read only
forward, so that a re-run must be fed the same bytes from the beginning again. A file that is renamed away (log
rotation) is read to its end and not followed.
"""

from __future__ import annotations

import zlib

from sfm_stream.errors import ConfigError, StateError
from sfm_stream.transport.files.compression import READ_HERE, Compression, compression_of
from sfm_stream.transport.files.gzip_members import GzipMembers, MemberState
from sfm_stream.transport.files.stored_bytes import StoredBytes

PACKED_BYTES = 1 << 16
"""Compressed bytes read at a time."""


class ByteStream:
    """An open input. position: bytes given out since the beginning; last: the last of them, -1 where there is none.

    regular: it is a file, which can be read again from any position.
    Raises ConfigError naming `setting` where the path cannot be opened or has a format that is not read here.
    """

    def __init__(self, path: str, setting: str = "input.path") -> None:
        self._setting = setting
        self._stored = StoredBytes(path, setting)
        self.name, self.regular = self._stored.name, self._stored.regular
        self.position = 0
        self.last = -1
        self._compression = Compression.UNKNOWN
        self._head = b""
        """Stored bytes that were read to find out the compression, and not used since."""
        self._members = GzipMembers()
        """What a gzip file is unpacked by; unused in a plain one."""

    def read(self, limit: int) -> bytes | None:
        """The next 1 to `limit` bytes; b"" at the end (which may move, if the file grows); None: nothing yet.

        Raises StateError where the file has become shorter, is a truncated or damaged gzip, or cannot be read,
        StorageError where the disk fails in a way that may pass.
        """
        if self._compression is Compression.UNKNOWN:
            more = self._recognise()
            if self._compression is Compression.UNKNOWN:
                return more
        data = self._packed(limit) if self._compression is Compression.NONE else self._unpacked(limit)
        if data:
            self.position += len(data)
            self.last = data[-1]
        return data

    def rewind(self, offset: int) -> None:
        """Bring the position to `offset` or as near below it as goes without reading. StateError: only forward here."""
        if not self.regular:
            if offset < self.position:
                raise StateError(
                    f"{self.name}: it can only be read forward, and byte {offset} has passed (now at {self.position}); "
                    "start again and feed the same input from its beginning"
                )
            return
        if self._compression is Compression.UNKNOWN:
            self._recognise()
        if self._compression is Compression.NONE:
            self._head = b""
            self._stored.position = self.position = min(offset, self._stored.size() or 0)
            self.last = self._stored.byte_before(self.position)
        elif self._compression is Compression.GZIP and offset < self.position:
            self._members = GzipMembers()
            self._head = b""
            self._stored.position = self.position = 0
            self.last = -1

    def consumed(self) -> int:
        """Bytes of the file (compressed ones, where it is) used up so far."""
        return self._stored.position - len(self._head) - self._members.packed_bytes

    def size(self) -> int | None:
        """Bytes of the file now, None for a pipe."""
        return self._stored.size()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._stored.close()

    def _recognise(self) -> bytes | None:
        """Find out the compression, as far as there are bytes: b"" at the end of what is there, None: nothing yet."""
        more: bytes | None = b""
        while self._compression is Compression.UNKNOWN and (more := self._stored.read(PACKED_BYTES)) is not None:
            self._head += more
            compression = compression_of(self._head, at_end=not more)
            if compression not in (Compression.UNKNOWN, *READ_HERE):
                raise ConfigError(
                    f"{self._setting}: {self.name} is {compression.value}-compressed, which is not read here; "
                    "decompress it, or pipe its content in and set the path to '-'"
                )
            self._compression = compression
            if not more:
                break
        return more

    def _packed(self, limit: int) -> bytes | None:
        """The next stored bytes."""
        if self._head:
            data, self._head = self._head[:limit], self._head[limit:]
            return data
        return self._stored.read(limit)

    def _unpacked(self, limit: int) -> bytes | None:
        """The next bytes of the content of a gzip file."""
        members = self._members
        while True:
            try:
                data = members.read(limit)
            except zlib.error as error:
                raise StateError(
                    f"{self.name}: {self._damage(str(error))}. This was not taken as the input's end. Check it "
                    "with 'gzip -t', restore the file and start again"
                ) from None
            if data:
                return data
            packed = self._packed(PACKED_BYTES)
            if packed is None:
                return None
            if packed:
                members.feed(packed)
            elif members.state is MemberState.INSIDE:
                raise StateError(
                    f"{self.name}: the gzip data ends in the middle, at byte {self._stored.position} of the file (byte "
                    f"{self.position} of its content). This was not taken as the input's end. Put the whole file "
                    "in place and start again; reading goes on where it was"
                )
            else:
                return b""

    def _damage(self, error: str) -> str:
        """What zlib's error says, and where. zlib checks a member at its end, so the damage may lie anywhere in it."""
        start = self._members.member_start
        for sign, what in (("data check", "checksum"), ("length check", "length")):
            if sign in error:
                return (
                    f"the {what} of the gzip member that begins at byte {start} of the file is not that of its "
                    "content, which is damaged somewhere"
                )
        if "header check" in error and start:
            return f"what follows the gzip member that ends at byte {start} of the file is no gzip data"
        low, high = self.consumed(), self._stored.position - len(self._head)
        return (
            f"the gzip data is damaged between bytes {low} and {high} of the file (byte {self.position} of its "
            f"content): {error}"
        )
