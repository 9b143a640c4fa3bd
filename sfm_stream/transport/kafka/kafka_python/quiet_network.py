"""The log of the client's network, silent while clients are made: what a failed attempt raises says enough."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_LOGGERS = [logging.getLogger("kafka.net"), logging.getLogger("kafka.cluster")]


class _Quiet:
    """How many threads are in a block in which the network of the client logs nothing."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0

    def enter(self, change: int) -> None:
        with self.lock:
            self.inside += change
            for logger in _LOGGERS:
                if not logger.handlers:  # without any, what does not reach the log would go to standard error
                    logger.addHandler(logging.NullHandler())
                logger.propagate = not self.inside


_quiet = _Quiet()


@contextmanager
def connecting_quietly() -> Iterator[None]:
    """Make clients in this block: a failed attempt is not logged."""
    _quiet.enter(1)
    try:
        yield
    finally:
        _quiet.enter(-1)
