"""The topics of a running worker, looked at again and again: what a start checks has to stay so."""

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
"""After so long a finding is looked for once more: a broker that has just started may not know a topic yet."""


class TopicWatch:
    """Ends a worker whose topics changed. look: what changed, one line each; it may wait for the cluster.

    It waits in a thread of its own. tick() is for another one than the worker's, whose turn may wait for a topic that
    is not there any more.
    """

    def __init__(self, look: Callable[[], list[str]]) -> None:
        self._look = look
        self._answer: Future[list[str]] | None = None
        self._found: list[str] = []
        self._at_s = monotonic_s() + EVERY_S

    def tick(self) -> None:
        """Raises StateError where two looks in a row found the same. A cluster that does not answer tells nothing."""
        if self._answer is None:
            if monotonic_s() >= self._at_s:
                self._answer = _asked(self._look)
        elif self._answer.done():
            answer, self._answer = self._answer, None
            self._at_s = monotonic_s() + CONFIRM_S
            try:
                found = answer.result()
            except BrokerError as error:
                _log.info("the topics cannot be looked at now: %s", error)
                return
            if found and found == self._found:
                raise StateError("\n".join(found))
            self._found = found
            if not found:
                self._at_s = monotonic_s() + EVERY_S

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Inside it an error that would end the worker says how its topics changed, where they did.

        Of a topic that was made anew the client says many things, by what it was about to do; also that records are
        gone.
        """
        try:
            yield
        except BrokerAway:
            raise
        except (BrokerError, StateError) as error:
            with suppress(BrokerError):
                if found := self._look():
                    raise StateError("\n".join(found)) from error
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
