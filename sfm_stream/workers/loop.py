"""Runs long-lived workers, each in a thread of its own, until a signal comes or one of them fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Protocol

from sfm_stream.clock import monotonic_s
from sfm_stream.errors import BrokerAway, SfmStreamError
from sfm_stream.workers.partition_worker import CHECKPOINT_S

_log = logging.getLogger(__name__)
_LOOK_S = 0.1
"""How often look() of each worker is called."""
_PAUSE_S = 1.0
"""How long a worker waits between a BrokerAway and its restart()."""
_LEAVE_S = 8.0
"""How long workers may take to stop. One may wait for an answer of the cluster that never comes."""


class Worker(Protocol):
    """A worker with its transport, as the loop runs it. look() must not wait; restart() follows a BrokerAway."""

    name: str

    def look(self) -> None: ...
    def tick(self, stopping: Callable[[], bool]) -> object: ...
    def checkpoint(self) -> None: ...
    def restart(self) -> None: ...
    def close(self) -> None: ...


def serve(
    workers: Sequence[Worker], stopping: Callable[[], bool], beat: Callable[[str], None] = lambda name: None
) -> None:
    """Run the workers until `stopping`, or until one of them fails: then the others stop too, and its error is raised.

    Each has a thread of its own, so that one that waits for the cluster does not hold up another. look() of each worker
    is called in the thread of the caller, however long its turns take; an error that it raises stops all workers. beat:
    called with the name of a worker after each of its turns.

    A worker that stops finishes its transaction and leaves its group. One that does not stop in time is left behind, as
    if it were killed; the outcome of its transaction stays unknown.
    """
    halt = Event()
    failures: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            _loop(worker, lambda: halt.is_set() or stopping(), beat, halt)
        except BaseException as error:
            failures.append(error)
        finally:
            halt.set()
            with suppress(SfmStreamError):
                worker.close()

    threads = [Thread(target=run, args=(worker,), name=worker.name, daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        while not stopping() and not halt.wait(_LOOK_S):
            for worker in workers:
                worker.look()
    except BaseException as error:
        failures.append(error)
    halt.set()
    until = monotonic_s() + _LEAVE_S
    for thread in threads:
        thread.join(max(0.0, until - monotonic_s()))
    if left := ", ".join(thread.name for thread in threads if thread.is_alive()):
        _log.warning("%s waits for the cluster and is left behind; the next start goes on from what is committed", left)
    if failures:
        raise failures[0]


def _loop(worker: Worker, stopping: Callable[[], bool], beat: Callable[[str], None], halt: Event) -> None:
    due = monotonic_s() + CHECKPOINT_S
    restart_due = False
    while not stopping():
        try:
            if restart_due:
                worker.restart()
                restart_due = False
            worker.tick(stopping)
            if monotonic_s() >= due:
                worker.checkpoint()
                due = monotonic_s() + CHECKPOINT_S
        except BrokerAway as error:
            _log.warning("%s goes on from what is committed, for a broker is away: %s", worker.name, error)
            restart_due = True
            halt.wait(_PAUSE_S)
        beat(worker.name)
