"""Counting keys of a block of rows to the ids of a key table, and why a key is not taken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import KeyValue, Reason
from sfm_stream.wire.keys import encode_key


class KeyIds:
    """Looks keys up in a table and interns new ones. max_key_bytes: of the canonical bytes of a new key."""

    __slots__ = ("_max_key_bytes", "_table")

    def __init__(self, table: KeyTable, max_key_bytes: int) -> None:
        self._table, self._max_key_bytes = table, max_key_bytes

    def reason_of(self, key: KeyValue) -> Reason:
        """OK if the table holds the key or would take it."""
        return Reason.OK if key in self._table.ids else self._reason_of_unknown(key)

    def fill(
        self, keys: Sequence[KeyValue | None], reasons: NDArray[np.uint8], key_ids: NDArray[np.int32]
    ) -> list[int]:
        """Fill in key_ids, and a reason for each OK row whose key is not taken; returns the ids that are new.

        Shape (len(keys),) each. New keys are interned in the order of the rows, and only for rows whose reason is OK.
        The ids of other rows mean nothing.
        """
        if len(keys) > 1:
            try:  # one call for the whole column, as long as nothing is new
                key_ids[:] = np.fromiter(itemgetter(*keys)(self._table.ids), np.int32, len(keys))
                return []
            except KeyError:
                pass
        new: list[int] = []
        look_up = self._table.ids.get
        key_ids[:] = np.fromiter(map(look_up, keys, repeat(-1)), np.int32, len(keys))  # type: ignore[arg-type]  # None is no key
        for row in np.flatnonzero((key_ids < 0) & (reasons == Reason.OK)).tolist():
            key = keys[row]
            if key is None:
                continue
            key_id = look_up(key, -1)  # an earlier row of the block may have brought it
            if key_id < 0:
                if reason := self._reason_of_unknown(key):
                    reasons[row] = reason
                    continue
                key_id = self._table.intern(key)
                new.append(key_id)
            key_ids[row] = key_id
        return new

    def _reason_of_unknown(self, key: KeyValue) -> Reason:
        if _most_bytes(key) > self._max_key_bytes and len(encode_key(key)) > self._max_key_bytes:
            return Reason.KEY_TOO_LONG
        if not self._table.fixed:
            return Reason.OK
        return Reason.KEY_MISPLACED if self._table.is_elsewhere(key) else Reason.KEY_NOT_DECLARED


def _most_bytes(key: KeyValue) -> int:
    """An upper bound of the canonical length: 4 bytes a character of text, 9 for each head and each integer."""
    parts = key if type(key) is tuple else (key,)
    return 9 + sum(9 + 4 * len(part) if type(part) is str else 9 for part in parts)
