"""The bytes of an input as they are stored or sent: of a file from any position on, of a pipe only forward."""

from __future__ import annotations

import os
import select
import stat

from sfm_stream.errors import ConfigError, StateError, StorageError
from sfm_stream.transport.files.storage_faults import may_pass

PIPE_WAIT_MS = 200
"""How long a read waits for a pipe, so that the caller can look at its signals."""


class StoredBytes:
    """An open file or pipe ("-": standard input). position: of the next byte to be read.

    regular: it is a file, which can be read again from any position.
    Raises ConfigError naming `setting` where the path cannot be opened.
    """

    def __init__(self, path: str, setting: str) -> None:
        self.name = "standard input" if path == "-" else path
        self.position = 0
        self._fd = 0 if path == "-" else _open(path, setting)
        self._to_close = path != "-"
        self.regular = self._to_close and stat.S_ISREG(os.fstat(self._fd).st_mode)

    def read(self, limit: int) -> bytes | None:
        """The next 1 to `limit` bytes; b"" at the end (which may move, if the file grows); None: nothing yet.

        Raises StateError where the file has become shorter or cannot be read, StorageError where the disk fails in a
        way that may pass.
        """
        data = self._read_at(self.position, limit)
        if data:
            self.position += len(data)
        elif self.regular and (size := os.fstat(self._fd).st_size) < self.position:
            raise StateError(
                f"{self.name}: the file has {size} bytes now, but {self.position} were read already: it was truncated "
                "or replaced while being read"
            )
        return data

    def byte_before(self, position: int) -> int:
        """The byte of a regular file before this position, -1 where there is none."""
        before = self._read_at(position - 1, 1) if position else b""
        return before[0] if before else -1

    def size(self) -> int | None:
        """Bytes of the file now, None for a pipe."""
        return os.fstat(self._fd).st_size if self.regular else None

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._to_close:
            os.close(self._fd)
            self._to_close = False

    def _read_at(self, position: int, limit: int) -> bytes | None:
        try:
            return os.pread(self._fd, limit, position) if self.regular else _read_pipe(self._fd, limit)
        except OSError as error:
            kind = StorageError if may_pass(error) else StateError
            raise kind(f"{self.name}: cannot read at byte {position} of the file: {error.strerror}") from error


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
