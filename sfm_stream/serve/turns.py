"""How many questions are answered at the same time, and how long each may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from sfm_stream.clock import monotonic_s
from sfm_stream.readable import duration
from sfm_stream.serve.refusals import NotNow, TooMuchAsked

_WAIT_S = 10.0
"""How long a question waits for its turn."""


class Turns:
    """Shared by all pipelines of a server. most: at the same time. longest_ms: of one question."""

    def __init__(self, most: int, longest_ms: int) -> None:
        self._free = BoundedSemaphore(most)
        self._longest_ms = longest_ms

    @contextmanager
    def turn(self) -> Iterator[Callable[[], None]]:
        """A turn for one question. What it gives is to be called again and again, and raises TooMuchAsked once the
        question has taken too long. Raises NotNow where none comes free.
        """
        if not self._free.acquire(timeout=_WAIT_S):
            raise NotNow("as many questions are answered now as serve.max_questions allows: ask again in a moment")
        ends_s = monotonic_s() + self._longest_ms / 1000

        def look() -> None:
            if monotonic_s() > ends_s:
                raise TooMuchAsked(
                    f"this question was ended after {duration(self._longest_ms)} (serve.max_time): ask for fewer keys "
                    "or a shorter span, or for coarser spans"
                )

        try:
            yield look
        finally:
            self._free.release()
