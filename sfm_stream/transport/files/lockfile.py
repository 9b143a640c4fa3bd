"""One writing process at a time: an operating-system lock beside a file, gone with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os

from sfm_stream.errors import StateError

_OF_RELEASES = (
    "Two of them would draw a release twice, so this one stops; readers (estimate, inspect, export) can run at the "
    "same time"
)


class WriterLock:
    """Held from construction to close(), or to the end of the process however it ends. Mode 0600, never deleted.

    The lock is on `<path>.lock`, not on the file itself: closing any descriptor of a SQLite file would drop SQLite's
    own locks. The file's content, the holder's process id, serves the message only. Raises StateError naming the
    holder where another one writes, and why there may be one only.
    """

    def __init__(self, path: str, why: str = _OF_RELEASES) -> None:
        lock = path + ".lock"
        self._fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            self.close()
            if not isinstance(error, BlockingIOError):
                raise
            raise StateError(f"{path}: another process ({holder}) is writing it. {why}") from None
        with contextlib.suppress(OSError):  # it is for the message only, and the disk may be full
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Give up the lock. A second time: nothing."""
        with contextlib.suppress(OSError):
            os.close(self._fd)
        self._fd = -1
