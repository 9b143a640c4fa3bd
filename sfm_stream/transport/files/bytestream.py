"""Bytes of a plain file, a gzip file or standard input, with one position: that of the decompressed stream.

What the bytes are is found out from the first of them, never from the name. A regular file can be read again from any
position (gzip: by reading forward from its beginning); a pipe only forward, so that a re-run must be fed the same
bytes from the beginning again. A file that is renamed away (log rotation) is read to its end and not followed.
"""

from __future__ import annotations

import os
import select
import stat
import zlib

from sfm_stream.errors import ConfigError, StateError, StorageError
from sfm_stream.transport.files.storage_faults import may_pass

GZIP = b"\x1f\x8b"
"""First bytes of every gzip member (RFC 1952, 2.3.1)."""
OTHER_FORMATS = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
RAW_BYTES = 1 << 16
"""Compressed bytes read at a time."""
PIPE_WAIT_MS = 200
"""How long a read waits for a pipe, so that the loop above can look at its signals."""


class ByteStream:
    """An open input. position: bytes given out since the beginning; last: the last of them, -1 where there is none.

    regular: it is a file, which can be read again from any position.
    Raises ConfigError naming `setting` where the path cannot be opened or has a format that is not read here.
    """

    def __init__(self, path: str, setting: str = "input.path") -> None:
        self.name = "standard input" if path == "-" else path
        self.position = 0
        self.last = -1
        self._setting = setting
        self._fd = 0 if path == "-" else _open(path, setting)
        self._owned = path != "-"
        self.regular = self._owned and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._known = False
        self._gunzip: _Gunzip | None = None
        self._raw_at = 0
        self._held = b""

    def read(self, limit: int) -> bytes | None:
        """The next 1 to `limit` bytes; b"" at the end (which may move, if the file grows); None: nothing yet.

        Raises StateError where the file has become shorter, is a truncated or damaged gzip, or cannot be read,
        StorageError where the disk fails in a way that may pass.
        """
        if not self._known:
            found = self._recognise()
            if not found:
                return None if found is None else b""
        data = self._raw(limit) if self._gunzip is None else self._unpacked(self._gunzip, limit)
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
        if not self._known and not self._recognise():
            return
        if self._gunzip is None:
            self._held = b""
            self._raw_at = self.position = min(offset, os.fstat(self._fd).st_size)
            before = self._read_at(self.position - 1, 1) if self.position else b""
            self.last = before[0] if before else -1
        elif offset < self.position:
            self._gunzip = _Gunzip()
            self._held = b""
            self._raw_at = self.position = 0
            self.last = -1

    def consumed(self) -> int:
        """Bytes of the file (compressed ones, where it is) used up so far."""
        return self._raw_at - len(self._held) - (self._gunzip.waiting if self._gunzip else 0)

    def size(self) -> int | None:
        """Bytes of the file now, None for a pipe."""
        return os.fstat(self._fd).st_size if self.regular else None

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._owned:
            os.close(self._fd)
            self._owned = False

    def _recognise(self) -> bool | None:
        """True once the format is known, False at the end of an input still empty, None: nothing yet."""
        formats = (GZIP, *OTHER_FORMATS)
        while not self._held or any(len(self._held) < len(m) and m.startswith(self._held) for m in formats):
            more = self._from_file(RAW_BYTES)
            if more is None:
                return None
            if not more:
                if not self._held:
                    return False
                break
            self._held += more
        for magic, name in OTHER_FORMATS.items():
            if self._held.startswith(magic):
                raise ConfigError(
                    f"{self._setting}: {self.name} is {name}-compressed, which is not read here; decompress it, or "
                    "pipe its content in and set the path to '-'"
                )
        self._gunzip = _Gunzip() if self._held.startswith(GZIP) else None
        self._known = True
        return True

    def _raw(self, limit: int) -> bytes | None:
        if self._held:
            data, self._held = self._held[:limit], self._held[limit:]
            return data
        return self._from_file(limit)

    def _unpacked(self, gunzip: _Gunzip, limit: int) -> bytes | None:
        while True:
            try:
                data = gunzip.read(limit)
            except zlib.error as error:
                raise StateError(
                    f"{self.name}: {self._damage(gunzip, str(error))}. This was not taken as the input's end. Check it "
                    "with 'gzip -t', restore the file and start again"
                ) from None
            if data:
                return data
            raw = self._raw(RAW_BYTES)
            if raw is None:
                return None
            if raw:
                gunzip.feed(raw)
            elif gunzip.inside:
                raise StateError(
                    f"{self.name}: the gzip data ends in the middle, at byte {self._raw_at} of the file (byte "
                    f"{self.position} of its content). This was not taken as the input's end. Put the whole file "
                    "in place and start again; reading goes on where it was"
                )
            else:
                return b""

    def _damage(self, gunzip: _Gunzip, error: str) -> str:
        """What zlib's error says, and where: it checks a member at its end, so the place may lie anywhere in it."""
        for sign, what in (("data check", "checksum"), ("length check", "length")):
            if sign in error:
                return (
                    f"the {what} of the gzip member that begins at byte {gunzip.began} of the file is not that of its "
                    "content, which is damaged somewhere"
                )
        if "header check" in error and gunzip.began:
            return f"what follows the gzip member that ends at byte {gunzip.began} of the file is no gzip data"
        low, high = self.consumed(), self._raw_at - len(self._held)
        return (
            f"the gzip data is damaged between bytes {low} and {high} of the file (byte {self.position} of its "
            f"content): {error}"
        )

    def _from_file(self, limit: int) -> bytes | None:
        data = self._read_at(self._raw_at, limit)
        if data:
            self._raw_at += len(data)
        elif self.regular and (size := os.fstat(self._fd).st_size) < self._raw_at:
            raise StateError(
                f"{self.name}: the file has {size} bytes now, but {self._raw_at} were read already: it was truncated "
                "or replaced while being read"
            )
        return data

    def _read_at(self, at: int, limit: int) -> bytes | None:
        try:
            return os.pread(self._fd, limit, at) if self.regular else _read_pipe(self._fd, limit)
        except OSError as error:
            kind = StorageError if may_pass(error) else StateError
            raise kind(f"{self.name}: cannot read at byte {at} of the file: {error.strerror}") from error


class _Gunzip:
    """Members of a gzip file one after the other, never more unpacked than is asked for."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._input = b""
        self._members = self._fed = 0
        self.inside = False
        self.began = 0
        """Byte of the file at which the member begins that is read, or that would follow."""

    @property
    def waiting(self) -> int:
        return len(self._input)

    def feed(self, raw: bytes) -> None:
        self._input += raw
        self._fed += len(raw)

    def read(self, limit: int) -> bytes:
        """Up to `limit` bytes; b"": feed more, or the end if not `inside` a member. Raises zlib.error."""
        while True:
            if not self.inside:
                if self._members:
                    # gzip(1) allows zeros after a member: tapes and block devices pad with them.
                    self._input = self._input.lstrip(b"\0")
                if not self._input:
                    return b""
                self._member = zlib.decompressobj(wbits=31)
                self.inside, self.began = True, self._fed - len(self._input)
            # Without input too: zlib may still hold output that did not fit the limit of the last call.
            data = self._member.decompress(self._input, limit)
            if self._member.eof:
                self._input = self._member.unused_data
                self._members += 1
                self.inside = False
            else:
                self._input = self._member.unconsumed_tail
            if data or not self._input:
                return data


def _open(path: str, setting: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigError(f"{setting}: cannot open {path!r}: {problem}") from error
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise ConfigError(f"{setting}: {path!r} is a directory; name one file, or '-' for standard input")
    return fd


def _read_pipe(fd: int, limit: int) -> bytes | None:
    """What the pipe holds now, up to `limit` bytes: a writer in small pieces must not mean small batches."""
    # Not select: it cannot watch descriptors from 1024 on.
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(PIPE_WAIT_MS):
        return None
    pieces: list[bytes] = []
    left = limit
    while left and (piece := os.read(fd, left)):
        pieces.append(piece)
        left -= len(piece)
        if not poll.poll(0):
            break
    return b"".join(pieces)
