"""The order of tests: those that take long first, so that no processor waits at the end for the last of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from pathlib import PurePath
from typing import Protocol, TypeVar


class Test(Protocol):
    """What is asked of a pytest.Item."""

    @property
    def path(self) -> PurePath: ...
    @property
    def fixturenames(self) -> list[str]: ...


T = TypeVar("T", bound=Test)
THREE_BROKERS = 0
"""The rank of files that have a cluster of three brokers, of which only one is allowed at a time."""


def rank(test: Test) -> int:
    """The smaller, the longer such tests take."""
    if "kafka_three" in test.fixturenames:
        return THREE_BROKERS
    if "kafka" in test.fixturenames:
        return 1
    folders = set(test.path.parts)
    return 2 if "integration" in folders else 3 if folders & {"project", "properties", "statistics"} else 4


def long_first(tests: Iterable[T], workers: int) -> list[T]:
    """All tests, those of a file together and in their order, as so many parts that each begins with what takes long.

    pytest-xdist (worksteal) gives every worker process a part, and what lies at its end to whoever has nothing left.
    """
    files: dict[PurePath, list[T]] = {}
    for test in tests:
        files.setdefault(test.path, []).append(test)
    ranks = {path: min(map(rank, together)) for path, together in files.items()}
    parts: list[list[T]] = [[] for _ in range(workers)]
    turns = cycle(parts[1:] + parts[:1])
    for path in sorted(files, key=ranks.__getitem__):
        (parts[0] if ranks[path] == THREE_BROKERS else next(turns)).extend(files[path])
    return [test for part in parts for test in part]
