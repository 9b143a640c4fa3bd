"""Standard streams that may be closed, full or without a reader.

What cannot be written to standard error is dropped, and the command goes on. Standard output is what a command is
for: a write that fails there is an error, which is raised once.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from sfm_stream.errors import SfmStreamError, StorageError
from sfm_stream.transport.files.storage_faults import may_pass


class ReaderGone(Exception):
    """The reader of standard output is gone: the command ends, and it is no error.

    It is no BrokenPipeError, for which click would end with exit code 1.
    """


def guard() -> None:
    """Guard this process's own standard output and error. Streams that somebody has put in their place are left alone.

    A standard stream that is closed is opened on the null device, for writing: else the next file that is opened would
    take its number, and whatever is printed would be written into that file. Reading a closed standard input is thereby
    an error, not the end of an input.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # takes the lowest number that is free
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Guarded(1, "standard output"), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Guarded(2, None), sys.stderr)


def fault(name: str, error: OSError) -> SfmStreamError:
    """The error for a file or stream that could not be written: a StorageError if the fault may pass."""
    kind = StorageError if may_pass(error) else SfmStreamError
    return kind(f"{name}: {error.strerror or error}")


class _Guarded(io.RawIOBase):
    """Writes bytes to a file descriptor. name: the name of the stream in errors; None if its bytes may be lost."""

    def __init__(self, number: int, name: str | None) -> None:
        self._number, self._name, self._lost = number, name, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        """Raises ReaderGone or the error of `fault` once; what is written after that is dropped."""
        if self._lost:
            return len(data)
        try:
            return os.write(self._number, data)
        except OSError as error:
            if self._name is None:
                return len(data)
            self._lost = True
            if isinstance(error, BrokenPipeError):
                raise ReaderGone from error
            raise fault(self._name, error) from error


def _text(raw: _Guarded, like: TextIO | None) -> TextIO:
    """A text stream over `raw`, with the encoding of the stream that it replaces."""
    encoding, errors = (like.encoding, like.errors) if like is not None else ("utf-8", "backslashreplace")
    if like is not None:
        like.flush()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)
