"""Interned counting keys of one partition."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfm_stream import kernels
from sfm_stream.events.dict_index import DictIndex
from sfm_stream.types import KeyValue


class KeyTable:
    """Key values to small integers and back. Ids are reused once the last window that holds them is closed.

    declared: the table holds these keys for good and takes no others. everywhere: all declared keys, those of other
    partitions too; it is kept as it is, so that the tables of all partitions can share one.

    index: holds the keys; of the kernel that is in use when the table is made. Both kernels give the same ids.
    """

    __slots__ = ("_everywhere", "fixed", "index")

    def __init__(
        self, declared: Iterable[KeyValue] | None = None, everywhere: Container[KeyValue] = frozenset()
    ) -> None:
        self._everywhere = everywhere
        self.fixed = declared is not None
        native = kernels.native()
        self.index: kernels.KeyIndex = DictIndex() if native is None else native.KeyIndex()
        self.index.intern(list(declared or ()))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, key_id: int) -> KeyValue:
        return self.index.key_of(key_id)

    def ids_of(self, keys: Sequence[KeyValue | None]) -> NDArray[np.int32]:
        """Shape (len(keys),): the id of each key, -1 where the table does not hold it. None is no key."""
        return np.frombuffer(self.index.ids_of(keys), np.int32)

    def id_of(self, key: KeyValue) -> int:
        """The id of a key, -1 where the table does not hold it."""
        return self.index.id_of(key)

    def intern(self, key: KeyValue) -> int:
        """The id of a key, -1 where the table is fixed and does not hold it."""
        known = self.id_of(key)
        return known if known >= 0 or self.fixed else self.intern_new([key])[0]

    def intern_new(self, keys: Sequence[KeyValue]) -> list[int]:
        """The ids of distinct keys none of which the table holds, in their order, as intern() would give them.

        Only for a table that takes them.
        """
        return self.index.intern(keys)

    def is_elsewhere(self, key: KeyValue) -> bool:
        """Whether a key that the table does not hold is declared, for another partition."""
        return key in self._everywhere

    def retain(self, live: NDArray[np.int32]) -> None:
        """Free every id that is not among the live ones, so that memory follows the open windows."""
        if not self.fixed:
            self.index.retain(live.tobytes())

    def __iter__(self) -> Iterator[KeyValue]:
        """The keys, in the order of their ids."""
        return iter(self.index.keys_in_order())
