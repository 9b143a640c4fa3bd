"""The keys of a key table where there is no compiled kernel: a dictionary and a list."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sfm_stream.types import KeyValue


class DictIndex:
    """Implements kernels.KeyIndex."""

    __slots__ = ("_free", "_ids", "_values")

    def __init__(self) -> None:
        self._values: list[KeyValue | None] = []
        self._ids: dict[KeyValue, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    def key_of(self, key_id: int) -> KeyValue:
        """As KeyIndex.key_of."""
        value = self._values[key_id] if 0 <= key_id < len(self._values) else None
        if value is None:
            raise KeyError(key_id)
        return value

    def keys_in_order(self) -> list[KeyValue]:
        """As KeyIndex.keys_in_order."""
        return [value for value in self._values if value is not None]

    def id_of(self, key: KeyValue) -> int:
        """As KeyIndex.id_of."""
        return self._ids.get(key, -1)

    def ids_of(self, keys: Sequence[KeyValue | None]) -> NDArray[np.int32]:
        """As KeyIndex.ids_of."""
        if len(keys) > 1:
            try:  # one call for the whole column, as long as nothing is new
                return np.fromiter(itemgetter(*keys)(self._ids), np.int32, len(keys))
            except KeyError:
                pass
        look_up = self._ids.get
        ids = (look_up(key, -1) for key in keys)  # type: ignore[arg-type]  # None is no key, and never held
        return np.fromiter(ids, np.int32, len(keys))

    def intern(self, keys: Sequence[KeyValue]) -> list[int]:
        """As KeyIndex.intern."""
        ids = [self._free.pop() for _ in range(min(len(self._free), len(keys)))]
        for key_id, key in zip(ids, keys, strict=False):
            self._values[key_id] = key
        added = keys[len(ids) :]
        ids += range(len(self._values), len(self._values) + len(added))
        self._values += added
        self._ids.update(zip(keys, ids, strict=True))
        return ids

    def retain(self, live: bytes) -> None:
        """As KeyIndex.retain."""
        keep = np.zeros(len(self._values), np.bool_)
        keep[np.frombuffer(live, np.int32)] = True
        for key_id in np.flatnonzero(~keep).tolist():
            value = self._values[key_id]
            if value is not None:
                del self._ids[value]
                self._values[key_id] = None
                self._free.append(key_id)
        used = len(self._values)
        while used and self._values[used - 1] is None:
            used -= 1
        if used < len(self._values):
            del self._values[used:]
            self._free = [key_id for key_id in self._free if key_id < used]
        if len(self._ids) < len(keep) // 8:
            self._ids = dict(self._ids)  # a dict never shrinks by itself
