"""Faults of disks and of the files on them: which may pass by themselves, and what to do about the others."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from sfm_stream.errors import ConfigError, SfmStreamError, StateError, StorageError

PASSING = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT),  # no room, for the disk or for this user
        *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EBUSY),  # a disk, or one over a network
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR),  # a host that has too much to do
    }
)
"""What the system may say today and not tomorrow, with nothing changed but the room or the health of the host."""
NEW_EPOCH = "raise pipeline.epoch and set window.start behind all that was ever released"
"""The remedy wherever it is not known any more what was released: nothing is drawn a second time."""
SMALLEST_BYTES = 512
"""The smallest page, so the smallest file with content that SQLite makes."""
_PASSING_OF_SQLITE = ("FULL", "IOERR", "BUSY", "LOCKED", "PROTOCOL", "NOMEM")
_DAMAGE = ("CORRUPT", "NOTADB", "IOERR_CORRUPTFS")


def may_pass(error: OSError) -> bool:
    """Whether starting again may help by itself."""
    return error.errno in PASSING


def database_fault(path: str, action: str, name: str, problem: str) -> SfmStreamError:
    """The error for what SQLite says. name: its error's, such as SQLITE_FULL.

    A StorageError where it may pass, a StateError where somebody has to look.
    """
    kind = name.removeprefix("SQLITE_")
    text = f"{path}: cannot {action}: {problem} ({name}). "
    if kind.startswith(_DAMAGE):
        return StateError(text + damage_text("It is damaged, or no SQLite file"))
    if kind.startswith("FULL"):
        return StorageError(text + "Make room on the disk and start again: nothing of this step is stored")
    if kind.startswith(_PASSING_OF_SQLITE) or (kind.startswith("CANTOPEN") and not _has_room(path)):
        return StorageError(text + "Check disk and file system, then start again: committed steps are whole")
    if kind.startswith(("CANTOPEN", "READONLY")):
        remedy = "If its writer was killed, open it for writing once; check the rights of the file and its directory"
        return StateError(text + remedy)
    return StateError(text + "Check disk and file system, then start again: committed steps are whole")


def _has_room(path: str) -> bool:
    """Whether the file system of a path can take one more file: SQLite does not say why it could not make one."""
    try:
        found = os.statvfs(os.path.dirname(path))
    except OSError:
        return True
    return found.f_bavail > 0 and (found.f_favail > 0 or found.f_files == 0)


def damage_text(what: str) -> str:
    """What is wrong with an output file that cannot be read, and what to do: no remedy may draw a window twice."""
    return (
        f"{what}. It was left as it is. Where no pipeline has released into it, name another path. Where one has, move "
        f"it away, put an older copy or nothing in its place, and {NEW_EPOCH}: counting on from an older copy, or into "
        "another file, would release the same windows a second time"
    )


@contextlib.contextmanager
def opening(path: str, setting: str) -> Iterator[None]:
    """Errors of the system inside this block as ones of ours. setting: where the path was written."""
    try:
        yield
    except OSError as error:
        problem = f"cannot open {path!r} for writing: {error.strerror}"
        if may_pass(error):
            raise StorageError(f"{path}: {problem}. Mend that and start again: nothing is lost") from error
        raise ConfigError(f"{setting}: {problem}") from error


def require_one_name(path: str) -> None:
    """Raise StateError for a file with a second name: the lock, and what was released, are kept beside one of them."""
    if (names := os.stat(path).st_nlink) > 1:
        raise StateError(
            f"{path}: the file has {names} names (hard links), and under another one it could be written at the same "
            "time, or released into a second time. Remove the others; to keep a copy, copy it"
        )


def require_readable(path: str, setting: str) -> None:
    """A clear error for the common mistakes. Opens nothing: closing the file would drop this process's SQLite locks."""
    if not os.path.isfile(path):
        raise ConfigError(f"{setting}: {path!r} is {'not a file' if os.path.exists(path) else 'not there'}")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{setting}: {path!r} may not be read by this user")
    if 0 < os.path.getsize(path) < SMALLEST_BYTES:
        # SQLite takes it for an empty database, and would write over it.
        raise StateError(f"{path}: {damage_text('this is not a SQLite file')}")
