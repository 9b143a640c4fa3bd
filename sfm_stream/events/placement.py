"""Which events are in another partition than that of their counting key.

A count is complete only if every event of a counting key is in one partition. So each key is checked against the
partitioner of the producers (partitioner.py), and records in a wrong partition are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.partitioner import PARTITIONERS, Partitioner, partition_key
from sfm_stream.types import EventColumns, KeyValue, Reason

_UNKNOWN, _HERE, _ELSEWHERE = -1, 0, 1


class Placement:
    """Which keys one partition owns, and which rows of its columns have a key that belongs to another partition.

    partition: the one that is read, of `partitions`. It must be given every EventColumns of the partition, in order:
    only so does it notice that a key id was freed and belongs to another key now. Raises UsageError for a partition
    that is not one of them.
    """

    __slots__ = ("_owner_of", "_partition", "_partitioner", "_partitions")

    def __init__(self, partitioner: Partitioner, partition: int, partitions: int) -> None:
        if not 0 <= partition < partitions:
            raise UsageError(f"partition: {partition} is not one of {partitions}")
        self._partitioner, self._partition, self._partitions = partitioner, partition, partitions
        self._owner_of = np.full(64, _UNKNOWN, np.int8)
        """Key id to whether its key belongs here, elsewhere, or was not asked for yet."""

    def owns(self, key: KeyValue) -> bool:
        """Whether a counting key belongs to this partition. Raises UsageError as partition_key does."""
        return self._partitioner(partition_key(key), self._partitions) == self._partition

    def judged(self, columns: EventColumns, keys: KeyTable) -> EventColumns:
        """The columns, with rows marked whose key belongs to another partition. Call it as misplaced()."""
        wrong = self.misplaced(columns, keys) & (columns.reasons == Reason.OK)
        if not wrong.any():
            return columns
        return replace(columns, reasons=np.where(wrong, np.uint8(Reason.KEY_MISPLACED), columns.reasons))

    def misplaced(self, columns: EventColumns, keys: KeyTable) -> NDArray[np.bool_]:
        """Shape (rows,): True where the row's key belongs to another partition; False for a row without a key.

        Call it before `keys` frees an id of these columns. A partitioner is asked once for each key, not for each row.
        """
        key_ids = columns.key_ids
        self._reach(max(int(key_ids.max(initial=0)), max(columns.new_keys, default=0)))
        # A new id may be an old one that another key has now. A fixed table never says that an id is new.
        self._owner_of[list(columns.new_keys)] = _UNKNOWN
        has_key = key_ids >= 0
        owners = np.where(has_key, self._owner_of[key_ids], np.int8(_HERE))
        unseen = np.unique(key_ids[owners == _UNKNOWN])
        if unseen.size:
            owned = (self.owns(keys[key_id]) for key_id in unseen.tolist())
            self._owner_of[unseen] = [_HERE if mine else _ELSEWHERE for mine in owned]
            owners = self._owner_of[key_ids]
        return np.asarray((owners == _ELSEWHERE) & has_key)

    def _reach(self, key_id: int) -> None:
        """Make room for ids up to this one. Room at least doubles, so that its growth costs little in total."""
        have = len(self._owner_of)
        if key_id >= have:
            more = np.full(max(have, key_id + 1 - have), _UNKNOWN, np.int8)
            self._owner_of = np.concatenate([self._owner_of, more])


def placement_of(partitioner: str, partitions: Callable[[], int]) -> Callable[[int], Placement]:
    """Partition of the input to its Placement.

    partitioner: its name in the configuration. partitions: how many the input has, asked when a Placement is made.
    """
    chosen = PARTITIONERS[partitioner]
    return lambda partition: Placement(chosen, partition, partitions())
