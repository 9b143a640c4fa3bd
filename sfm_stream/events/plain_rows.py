"""Rows of plain records, by columns: event times, hashes of items, counting keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_time import TimeColumn, TimeReader
from sfm_stream.events.formats.format import Format
from sfm_stream.sketch.hashing import ItemHash, hash_encoded, hash_items
from sfm_stream.types import KeyValue


class PlainRows(NamedTuple):
    """The rows of those records of a block that a format answers for, in the order of the records.

    event_ms, hashes: shape (rows,); NO_TIME where there is no event time. time_reasons: shape (rows,), OK or why the
    time is not taken. keys: counting keys as they are interned, one a row; whether the table takes them is not judged.
    odd: positions in the block of the records that are left out, ascending.
    """

    event_ms: NDArray[np.int64]
    time_reasons: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    keys: list[KeyValue]
    odd: Sequence[int]


class FormatReader:
    """Reads the plain records of a format in Python."""

    __slots__ = ("_form", "_hash", "_time")

    def __init__(self, form: Format, item_hash: ItemHash) -> None:
        self._form, self._hash, self._time = form, item_hash, TimeReader(form.schema)

    def rows(self, values: Sequence[bytes | None], arrival_ms: NDArray[np.int64]) -> PlainRows:
        """The rows of those records that the format answers for.

        arrival_ms: shape (len(values),), the event times where the schema has no path for the time.
        """
        columns = self._form.columns(values)
        event_ms, reasons = self._times(columns.times, columns.odd, arrival_ms)
        return PlainRows(event_ms, reasons, self._hashes(columns.items), columns.keys, columns.odd)

    def _times(
        self, times: NDArray[np.int64] | list[object] | None, odd: Sequence[int], arrival_ms: NDArray[np.int64]
    ) -> TimeColumn:
        if times is not None:
            return self._time.column(times)
        return self._time.arrivals(arrival_ms[positions_without(len(arrival_ms), odd)] if odd else arrival_ms)

    def _hashes(self, items: NDArray[np.int64] | list[bytes]) -> NDArray[np.uint64]:
        if isinstance(items, np.ndarray):
            return hash_items(items, self._hash)
        return hash_encoded(items, len(items), self._hash)


def positions_without(count: int, odd: Sequence[int]) -> NDArray[np.intp]:
    """Shape (count - len(odd),): the positions below `count` that are not odd, ascending."""
    kept = np.ones(count, np.bool_)
    kept[odd] = False
    return np.flatnonzero(kept)
