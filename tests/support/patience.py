"""How long tests wait for an event: so long that no machine is too slow. How long something took, no test asserts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

PATIENCE_S = 300.0


def patiently(problem: Callable[[], object] = lambda: "", every_s: float = 0.0, limit_s: float = 0.0) -> Iterator[None]:
    """Turns of a loop that looks for an event, and is left once it is there.

    Raises AssertionError with the problem once PATIENCE_S are over, or limit_s where that is more. every_s: between two
    turns.
    """
    limit_s = max(limit_s, PATIENCE_S)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        yield
        time.sleep(every_s)
    raise AssertionError(f"not there after {limit_s:.0f} s: {problem()}")


def until(done: Callable[[], object], problem: Callable[[], object] = lambda: "", every_s: float = 0.05) -> None:
    """Wait for this."""
    for _ in patiently(problem, every_s):
        if done():
            return
