"""Results of a function that are kept from one call to the next, as long as they are small together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class KeptResults(Generic[P, R]):
    """Calls a function, and keeps the results that were used last: so many at most, and so many bytes of arrays.

    The last one is kept, however large it is. Arguments are hashable. Safe to share by threads.
    """

    def __init__(self, function: Callable[P, R], most: int, most_bytes: int) -> None:
        self._function, self._most, self._most_bytes = function, most, most_bytes
        self._kept: OrderedDict[tuple[Hashable, ...], tuple[R, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        """Bytes of the arrays that are kept."""
        with self._lock:
            return self._bytes()

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        key = (*args, *sorted(named.items()))
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known[0]
        result = self._function(*args, **named)
        with self._lock:
            self._kept[key] = result, array_bytes(result)
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes() > self._most_bytes):
                self._kept.popitem(last=False)
        return result

    def _bytes(self) -> int:
        return sum(size for _, size in self._kept.values())


def keep_results(most: int, most_bytes: int) -> Callable[[Callable[P, R]], KeptResults[P, R]]:
    """As a decorator: the function with its results kept, as in KeptResults."""
    return lambda function: KeptResults(function, most, most_bytes)


def array_bytes(value: object) -> int:
    """Bytes of an array, and of those in the fields of a dataclass."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(array_bytes(getattr(value, field.name)) for field in fields(value))
    return 0
