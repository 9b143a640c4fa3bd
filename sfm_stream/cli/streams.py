"""The standard streams of a process that has to go on. News on standard error that cannot be written is lost, and that
is all; standard output is what a command is for, so there it is an error, which says so once.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from sfm_stream.errors import SfmStreamError, StorageError
from sfm_stream.transport.files.storage_faults import may_pass


class ReaderGone(Exception):
    """Nobody reads our standard output any more: no error, and a reason to end. (click ends BrokenPipeError with 1.)"""


def guard() -> None:
    """Put guarded streams in the place of this process's own standard output and error, and of no others.

    A standard stream that was closed leads nowhere from now on: else the next file that is opened would take its
    number, and whatever is printed would be written into that file. Reading such an input is an error, not its end.
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
    """The error for a file or stream that could not be written: a StorageError where that may pass."""
    kind = StorageError if may_pass(error) else SfmStreamError
    return kind(f"{name}: {error.strerror or error}")


class _Guarded(io.RawIOBase):
    """Bytes to a file descriptor. name: of a stream whose loss is an error; None where it is none."""

    def __init__(self, number: int, name: str | None) -> None:
        self._number, self._name, self._lost = number, name, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        """Raises ReaderGone or what `fault` makes of it, once; what comes after that is dropped."""
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
    """Text in the encoding that the stream before it had."""
    encoding, errors = (like.encoding, like.errors) if like is not None else ("utf-8", "backslashreplace")
    if like is not None:
        like.flush()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True)
