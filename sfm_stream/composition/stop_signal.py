"""How a command is asked to stop: by SIGINT or SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """A flag that a signal sets; the loop looks at it between two transactions. A second signal ends at once."""

    def __init__(self) -> None:
        self.signal = 0

    def __call__(self) -> bool:
        return self.signal != 0

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """SIGINT and SIGTERM set the flag inside this block."""

        def note(number: int, frame: FrameType | None) -> None:
            self.signal = number
            signal.signal(number, signal.SIG_DFL)

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
