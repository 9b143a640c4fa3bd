"""A worker as a child process, for clusters that start everything again that ends.

This process ends as the worker did where starting it again loses nothing. After an exit code that says that a person
has to look first it stays instead: alive, so that nothing starts the worker again, and not ready, so that somebody
notices.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from logging import getLogger
from pathlib import Path
from threading import Event
from types import FrameType

from sfm_stream.errors import (
    ConfigError,
    ConflictError,
    EntropyError,
    NothingCounted,
    SfmStreamError,
    StateError,
    UsageError,
)

_log = getLogger(__name__)
STAYS_STOPPED = frozenset(
    each.exit_code for each in (UsageError, ConfigError, StateError, EntropyError, ConflictError, NothingCounted)
)
"""Exit codes after which nothing but a person may start a worker again."""
WORKER = (sys.executable, "-m", "sfm_stream.cli")
"""The program that is given the worker's command."""


class _Child:
    """The process of the worker. It gets the signals that ask this process to stop."""

    def __init__(self) -> None:
        self.stopping = Event()
        self._too_early: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """SIGINT and SIGTERM go on to the worker inside this block, each as often as it comes."""
        before = {number: signal.signal(number, self._pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def run(self, call: Sequence[str]) -> int:
        """Its exit code; 128 and the number of the signal that killed it, as shells have it."""
        self._process = subprocess.Popen(call)  # noqa: S603  # this very package, with the arguments of its caller
        for number in self._too_early:
            self._process.send_signal(number)
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.stopping.set()
        if self._process is None:
            self._too_early.append(number)
        else:
            self._process.send_signal(number)


def run_kept_stopped(command: Sequence[str], address: str, note: Path | None, program: Sequence[str] = WORKER) -> int:
    """Run a worker. The exit code of this process: the worker's, when it may be started again or was asked to stop.

    command: of the worker, as in ("ingest", "app.toml"). address: where it is said that it stays stopped; "": nowhere.
    note: a file that says so to the next start, which then starts nothing; None: the next start starts the worker.
    Raises StateError where the note cannot be read.
    """
    child = _Child()
    with child.listening():
        code = None if note is None else _noted(note)
        if code is None:
            code = child.run([*program, *command])
            if code not in STAYS_STOPPED:
                return code
            if note is not None:
                _write(note, code)
        if not child.stopping.is_set():
            why = f"{command[0]} ended with exit code {code}: a person has to look before it is started again"
            _log.error("%s. This process stays, so that nothing starts it again", why)
            with _saying(address, command[0], code, why):
                child.stopping.wait()
    return code


@contextmanager
def _saying(address: str, name: str, code: int, why: str) -> Iterator[None]:
    """Pages and a metric that say that a worker is stopped. Where it cannot listen it says so, and goes on without."""
    # Here, because a process that waits for its worker needs none of the many modules that these bring with them.
    from sfm_stream.observe.listener import operator_listener
    from sfm_stream.observe.metrics import STOPPED, OperatorMetrics

    told = OperatorMetrics()
    told.replace(name, [(STOPPED, (name,), code)])
    listener = None
    if address:
        try:
            listener = operator_listener(address, told.registry, live=lambda: [], ready=lambda: [why])
        except SfmStreamError as error:
            _log.error("%s", error)
    try:
        yield
    finally:
        if listener is not None:
            listener.close()


def _noted(note: Path) -> int | None:
    """The exit code in a note; None where there is none."""
    try:
        return int(note.read_text("ascii"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise StateError(f"{note} is there and cannot be read: a worker was stopped here, and stays so") from None


def _write(note: Path, code: int) -> None:
    part = note.with_name(f"{note.name}.part")
    try:
        part.write_text(f"{code}\n", "ascii")
        os.replace(part, note)
    except OSError as error:
        _log.error("%s: %s. The next start of this process would start the worker again", note, error.strerror)
        with suppress(OSError):
            part.unlink()
