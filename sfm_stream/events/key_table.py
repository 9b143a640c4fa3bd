"""Interned counting keys of one partition."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import KeyValue


class KeyTable:
    """Key values to small integers and back. Ids are reused once the last window that holds them is closed.

    declared: the table holds these keys for good and takes no others. everywhere: all declared keys, those of other
    partitions too; it is kept as it is, so that the tables of all partitions can share one.
    """

    __slots__ = ("_everywhere", "_free", "_values", "fixed", "ids")

    def __init__(
        self, declared: Iterable[KeyValue] | None = None, everywhere: Container[KeyValue] = frozenset()
    ) -> None:
        self._everywhere = everywhere
        self._values: list[KeyValue | None] = list(declared or ())
        self.fixed = declared is not None
        self.ids: dict[KeyValue, int] = {value: index for index, value in enumerate(self._values) if value is not None}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, key_id: int) -> KeyValue:
        value = self._values[key_id]
        if value is None:
            raise KeyError(key_id)
        return value

    def intern(self, key: KeyValue) -> int:
        """The id of a key, -1 where the table is fixed and does not hold it."""
        known = self.ids.get(key)
        if known is not None:
            return known
        return -1 if self.fixed else self.intern_new([key])[0]

    def intern_new(self, keys: Sequence[KeyValue]) -> list[int]:
        """The ids of distinct keys none of which the table holds, in their order, as intern() would give them.

        Only for a table that takes them.
        """
        ids = [self._free.pop() for _ in range(min(len(self._free), len(keys)))]
        for key_id, key in zip(ids, keys, strict=False):
            self._values[key_id] = key
        added = keys[len(ids) :]
        ids += range(len(self._values), len(self._values) + len(added))
        self._values += added
        self.ids.update(zip(keys, ids, strict=True))
        return ids

    def is_elsewhere(self, key: KeyValue) -> bool:
        """Whether a key that the table does not hold is declared, for another partition."""
        return key in self._everywhere

    def retain(self, live: NDArray[np.int32]) -> None:
        """Free every id that is not among the live ones, so that memory follows the open windows."""
        if self.fixed:
            return
        keep = np.zeros(len(self._values), np.bool_)
        keep[live] = True
        for key_id in np.flatnonzero(~keep).tolist():
            value = self._values[key_id]
            if value is not None:
                del self.ids[value]
                self._values[key_id] = None
                self._free.append(key_id)
        if len(self.ids) < len(self._values) // 8:
            self.ids = dict(self.ids)  # a dict never shrinks by itself

    def __iter__(self) -> Iterator[KeyValue]:
        return iter(self.ids)
