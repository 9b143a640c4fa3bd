"""Faults of disks and of the files on them: whether starting again may help, and what to do where it does not."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from sfm_stream.errors import ConfigError, SfmStreamError, StateError, StorageError

TEMPORARY = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT),  # no room, for the disk or for this user
        *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EBUSY),  # a disk, or one over a network
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR),  # a host that has too much to do
    }
)
"""Error numbers of faults that may pass: of room on a disk, and of the health of a disk or host."""
NEW_EPOCH = "raise pipeline.epoch and set window.start behind all that was ever released"
"""The remedy if it is unknown what was released: nothing is then drawn a second time."""
SMALLEST_BYTES = 512
"""The smallest page of SQLite, and so the smallest file with content."""
_TEMPORARY_OF_SQLITE = ("FULL", "IOERR", "BUSY", "LOCKED", "PROTOCOL", "NOMEM")
_DAMAGE = ("CORRUPT", "NOTADB", "IOERR_CORRUPTFS")


def may_pass(error: OSError) -> bool:
    """Whether starting again may help although nothing else is changed."""
    return error.errno in TEMPORARY


def database_fault(path: str, action: str, name: str, problem: str) -> SfmStreamError:
    """The error for a fault that SQLite reports. name: SQLite's name of it, such as SQLITE_FULL.

    A StorageError if starting again may help, a StateError if a person has to look.
    """
    kind = name.removeprefix("SQLITE_")
    text = f"{path}: cannot {action}: {problem} ({name}). "
    if kind.startswith(_DAMAGE):
        return StateError(text + damage_text("It is damaged, or no SQLite file"))
    if kind.startswith("FULL"):
        return StorageError(text + "Make room on the disk and start again: nothing of this step is stored")
    if kind.startswith(_TEMPORARY_OF_SQLITE) or (kind.startswith("CANTOPEN") and not _has_room(path)):
        return StorageError(text + "Check disk and file system, then start again: committed steps are whole")
    if kind.startswith(("CANTOPEN", "READONLY")):
        remedy = "If its writer was killed, open it for writing once; check the rights of the file and its directory"
        return StateError(text + remedy)
    return StateError(text + "Check disk and file system, then start again: committed steps are whole")


def _has_room(path: str) -> bool:
    """Whether the file system of a path has room for another file. SQLite does not say why it could not create one."""
    try:
        room = os.statvfs(os.path.dirname(path))
    except OSError:
        return True
    return room.f_bavail > 0 and (room.f_favail > 0 or room.f_files == 0)


def damage_text(what: str) -> str:
    """The message for a damaged output file, with the remedy. No remedy in it leads to a second draw of a window."""
    return (
        f"{what}. It was left as it is. Where no pipeline has released into it, name another path. Where one has, move "
        f"it away, put an older copy or nothing in its place, and {NEW_EPOCH}: counting on from an older copy, or into "
        "another file, would release the same windows a second time"
    )


@contextlib.contextmanager
def opening(path: str, setting: str) -> Iterator[None]:
    """Errors of the system inside this block as errors of this package. setting: the one that holds the path."""
    try:
        yield
    except OSError as error:
        problem = f"cannot open {path!r} for writing: {error.strerror}"
        if may_pass(error):
            raise StorageError(f"{path}: {problem}. Mend that and start again: nothing is lost") from error
        raise ConfigError(f"{setting}: {problem}") from error


def require_one_name(path: str) -> None:
    """Raise StateError for a file with a second name: its lock and its released borders lie beside one name only."""
    if (names := os.stat(path).st_nlink) > 1:
        raise StateError(
            f"{path}: the file has {names} names (hard links), and under another one it could be written at the same "
            "time, or released into a second time. Remove the others; to keep a copy, copy it"
        )


def require_readable(path: str, setting: str) -> None:
    """Raise ConfigError or StateError for a path that is no readable output file.

    Nothing is opened here: closing the file again would drop the locks that SQLite holds in this process.
    """
    if not os.path.isfile(path):
        raise ConfigError(f"{setting}: {path!r} is {'not a file' if os.path.exists(path) else 'not there'}")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{setting}: {path!r} may not be read by this user")
    if 0 < os.path.getsize(path) < SMALLEST_BYTES:
        # SQLite takes it for an empty database, and would write over it.
        raise StateError(f"{path}: {damage_text('this is not a SQLite file')}")
