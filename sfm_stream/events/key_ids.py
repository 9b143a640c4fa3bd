"""Counting keys of a block of rows to the ids of a key table, and why a key is not taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.key_table import KeyTable
from sfm_stream.types import KeyValue, Reason
from sfm_stream.wire.keys import encode_key


class KeyIds:
    """Looks keys up in a table and interns new ones. max_key_bytes: of the canonical bytes of a new key."""

    __slots__ = ("_max_key_bytes", "_surely_short", "table")

    def __init__(self, table: KeyTable, max_key_bytes: int) -> None:
        self.table, self._max_key_bytes = table, max_key_bytes
        self._surely_short = (max_key_bytes - _most_bytes("")) // _CHARACTER_BYTES
        """A text of so many characters is not too long, whichever they are."""

    def reason_of(self, key: KeyValue) -> Reason:
        """OK if the table holds the key or would take it."""
        return Reason.OK if self.table.id_of(key) >= 0 else self._reason_of_unknown(key)

    def fill(
        self, keys: Sequence[KeyValue | None], reasons: NDArray[np.uint8], key_ids: NDArray[np.int32]
    ) -> list[int]:
        """Fill in key_ids, and a reason for each OK row whose key is not taken; returns the ids that are new.

        Shape (len(keys),) each. New keys are interned in the order of the rows, and only for rows whose reason is OK.
        The ids of other rows mean nothing.
        """
        key_ids[:] = self.table.ids_of(keys)
        if key_ids.min(initial=0) >= 0:
            return []
        rows = np.flatnonzero((key_ids < 0) & (reasons == Reason.OK)).tolist()
        if not rows:
            return []
        unknown = dict.fromkeys(keys[row] for row in rows)
        unknown.pop(None, None)
        refused = self._refused(unknown)  # type: ignore[arg-type]
        taken = [key for key in unknown if key not in refused] if refused else list(unknown)
        new = self.table.intern_new(taken)  # type: ignore[arg-type]
        id_of = dict(zip(taken, new, strict=True)).get
        key_ids[rows] = [id_of(keys[row], -1) for row in rows]
        if refused:
            for row in rows:
                if reason := refused.get(keys[row]):  # type: ignore[arg-type]
                    reasons[row] = reason
        return new

    def _refused(self, unknown: Iterable[KeyValue]) -> dict[KeyValue, Reason]:
        """Those of the keys, none of which the table holds, that it does not take."""
        if not self.table.fixed:
            unknown = [key for key in unknown if type(key) is not str or len(key) > self._surely_short]
        return {key: reason for key in unknown if (reason := self._reason_of_unknown(key))}

    def _reason_of_unknown(self, key: KeyValue) -> Reason:
        if _most_bytes(key) > self._max_key_bytes and len(encode_key(key)) > self._max_key_bytes:
            return Reason.KEY_TOO_LONG
        if not self.table.fixed:
            return Reason.OK
        return Reason.KEY_MISPLACED if self.table.is_elsewhere(key) else Reason.KEY_NOT_DECLARED


_CHARACTER_BYTES = 4


def _most_bytes(key: KeyValue) -> int:
    """An upper bound of the canonical length: 4 bytes a character of text, 9 for each head and each integer."""
    parts = key if type(key) is tuple else (key,)
    return 9 + sum(9 + _CHARACTER_BYTES * len(part) if type(part) is str else 9 for part in parts)
