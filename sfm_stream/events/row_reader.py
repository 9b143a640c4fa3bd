"""Rows of records whose keys are not interned yet: those of plain records by columns, of the others one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.formats.format import Format
from sfm_stream.events.key_ids import KeyIds
from sfm_stream.events.odd_rows import OddReader
from sfm_stream.events.plain_rows import FormatReader, positions_without
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.types import KeyValue

_BLOCK_RECORDS = 2048


class ReadRows(NamedTuple):
    """One row for each record of a block.

    event_ms, reasons, hashes: shape (rows,); NO_TIME where there is no event time, each reason a Reason. keys: as they
    are interned. Keys and hashes mean nothing in rows that are not OK.
    """

    event_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    keys: Sequence[KeyValue | None]


class RowReader:
    """Reads records of a format. key_ids: judges whether the key of an odd record is taken."""

    __slots__ = ("_odd", "_plain")

    def __init__(self, form: Format, item_hash: ItemHash, key_ids: KeyIds) -> None:
        self._plain, self._odd = FormatReader(form, item_hash), OddReader(form, item_hash, key_ids)

    def blocks(self, values: Sequence[bytes | None], arrival_ms: NDArray[np.int64]) -> Iterator[tuple[slice, ReadRows]]:
        """(which records, their rows) of consecutive blocks. arrival_ms: shape (len(values),)."""
        count = len(values)
        blocks = -(-count // _BLOCK_RECORDS)
        for number in range(blocks):  # of about one size, so that none is small
            block = slice(number * count // blocks, (number + 1) * count // blocks)
            yield block, self._rows(values[block], arrival_ms[block])

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """As Extractor.key_of."""
        return self._odd.key_of(value)

    def _rows(self, values: Sequence[bytes | None], arrival_ms: NDArray[np.int64]) -> ReadRows:
        plain = self._plain.rows(values, arrival_ms)
        if not plain.odd:
            return ReadRows(plain.event_ms, plain.time_reasons, plain.hashes, plain.keys)
        count = len(values)
        keys: list[KeyValue | None] = [None] * count
        rows = ReadRows(np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.uint64), keys)
        positions = positions_without(count, plain.odd)
        rows.event_ms[positions], rows.reasons[positions] = plain.event_ms, plain.time_reasons
        rows.hashes[positions] = plain.hashes
        for position, key in zip(positions.tolist(), plain.keys, strict=True):
            keys[position] = key
        for position in plain.odd:
            row = self._odd.row(values[position], int(arrival_ms[position]))
            rows.event_ms[position], rows.reasons[position], rows.hashes[position], keys[position] = row
        return rows
