"""Long-lived workers: a loop each, until a signal, or until one of them fails and all stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Protocol

from sfm_stream.app.drive import CHECKPOINT_S
from sfm_stream.clock import monotonic_s
from sfm_stream.errors import SfmStreamError

_LOOK_S = 0.1


class Worker(Protocol):
    """What ingest, publisher and roll-up have in common."""

    name: str

    def tick(self, stopping: Callable[[], bool]) -> object: ...
    def checkpoint(self) -> None: ...
    def close(self) -> None: ...


def serve(
    workers: Sequence[Worker], stopping: Callable[[], bool], beat: Callable[[str], None] = lambda name: None
) -> None:
    """Run the workers until `stopping`, or until one of them fails: then the others stop too, and its error is raised.

    Each has a thread of its own, so that one waiting for the cluster does not hold up another. beat: called with the
    name of a worker after each turn. A worker that stops finishes the transaction in hand and leaves its group.
    """
    halt = Event()
    failures: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            _loop(worker, lambda: halt.is_set() or stopping(), beat)
        except BaseException as error:
            failures.append(error)
        finally:
            halt.set()
            with suppress(SfmStreamError):
                worker.close()

    threads = [Thread(target=run, args=(worker,), name=worker.name, daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    while not stopping() and not halt.wait(_LOOK_S):
        pass
    halt.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _loop(worker: Worker, stopping: Callable[[], bool], beat: Callable[[str], None]) -> None:
    due = monotonic_s() + CHECKPOINT_S
    while not stopping():
        worker.tick(stopping)
        beat(worker.name)
        if monotonic_s() >= due:
            worker.checkpoint()
            due = monotonic_s() + CHECKPOINT_S
