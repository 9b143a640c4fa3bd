"""Watches the topics of a running worker: what was checked at its start must not change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread

from sfm_stream.clock import monotonic_s
from sfm_stream.errors import BrokerAway, BrokerError, StateError

_log = logging.getLogger(__name__)
EVERY_S = 20.0
CONFIRM_S = 5.0
"""After how long a change is looked for again: a broker that has just started may not know a topic yet."""


class TopicWatch:
    """Ends a worker whose topics changed. look: returns what changed, one line each; it may wait for the cluster.

    look() runs in a thread of its own. Call tick() from another thread than that of the worker: a turn of the worker
    may wait for a topic that does not exist any more.
    """

    def __init__(self, look: Callable[[], list[str]]) -> None:
        self._look = look
        self._answer: Future[list[str]] | None = None
        self._changes: list[str] = []
        """What the last look returned."""
        self._at_s = monotonic_s() + EVERY_S

    def tick(self) -> None:
        """Raise StateError if two looks in a row found the same changes. A look without an answer does not count."""
        if self._answer is None:
            if monotonic_s() >= self._at_s:
                self._answer = _asked(self._look)
        elif self._answer.done():
            answer, self._answer = self._answer, None
            self._at_s = monotonic_s() + CONFIRM_S
            try:
                changes = answer.result()
            except BrokerError as error:
                _log.info("the topics cannot be looked at now: %s", error)
                return
            if changes and changes == self._changes:
                raise StateError("\n".join(changes))
            self._changes = changes
            if not changes:
                self._at_s = monotonic_s() + EVERY_S

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """If the topics changed, an error in this block that would end the worker says how.

        When a topic was made anew, the error of the client depends on what the client was doing. It may even say that
        records are gone.
        """
        try:
            yield
        except BrokerAway:
            raise
        except (BrokerError, StateError) as error:
            with suppress(BrokerError):
                if changes := self._look():
                    raise StateError("\n".join(changes)) from error
            raise


def _asked(look: Callable[[], list[str]]) -> Future[list[str]]:
    answer: Future[list[str]] = Future()

    def run() -> None:
        try:
            answer.set_result(look())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="topics", daemon=True).start()
    return answer
