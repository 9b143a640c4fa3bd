"""Records to events: one row for each record, with the reason why it is not counted, if so.

The rows of plain records come by columns (plain_rows.py), those of the others one by one (odd_rows.py). A compiled
kernel may answer for plain ones first (native_extractor.py).

The reason of a row is the first one in the order of `Reason`. But the times of a row are given whenever its time field
is readable and plausible, whatever the rest of the record holds. For the clock of a partition is made of these times,
and it must not depend on the content of keys and items (docs/privacy.md, "arrival decides what counts").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.events.formats.format import Format
from sfm_stream.events.key_ids import KeyIds
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.row_reader import RowReader
from sfm_stream.sketch.hashing import XXH64, ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, EventColumns, KeyValue, Reason, RecordBatch


class Extractor(Protocol):
    """Reads the records of one partition. Never raises for the content of a record."""

    def columns(self, batches: Sequence[RecordBatch]) -> EventColumns:
        """One row for each record of the batches, which are of one partition and in order.

        arrival_ms is the record timestamp, or the event time where a batch has none (`arrivals()` is None).
        Raises UsageError without any batch, or if the arrival is both the event time and not there.
        """
        ...

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """The counting key of one record, whatever else it holds; None where that is missing or no text or int64."""
        ...


class PythonExtractor:
    """Reads the records of a format, and interns their keys in the order of the records.

    A key is interned only for a row that is counted as far as this step can tell (reason OK). Where the table is
    fixed, a key that it does not hold is KEY_NOT_DECLARED, or KEY_MISPLACED if another partition's table does.

    shape, reader, key_ids, arrival_is_event_time: what it is made of, for an extractor that does a part of its work.
    """

    def __init__(self, form: Format, shape: SketchShape, item_hash: ItemHash = XXH64, *, keys: KeyTable) -> None:
        self.arrival_is_event_time, self.shape = form.schema.time is None, shape
        self.key_ids = KeyIds(keys, form.schema.max_key_bytes)
        self.reader = RowReader(form, item_hash, self.key_ids)

    def columns(self, batches: Sequence[RecordBatch]) -> EventColumns:
        """As Extractor.columns."""
        if not batches:
            raise UsageError("columns: expected at least one batch")
        values = batches[0].values() if len(batches) == 1 else list(chain.from_iterable(b.values() for b in batches))
        count = len(values)
        event_ms, reasons = np.empty(count, np.int64), np.empty(count, np.uint8)
        key_ids, hashes = np.empty(count, np.int32), np.empty(count, np.uint64)
        arrival_ms, given = self._arrivals(batches, event_ms)
        new_keys: list[int] = []
        for block, rows in self.reader.blocks(values, arrival_ms):
            event_ms[block], reasons[block], hashes[block] = rows.event_ms, rows.reasons, rows.hashes
            new_keys += self.key_ids.fill(rows.keys, reasons[block], key_ids[block])
        cells = self.shape.cells_of(hashes)
        blank_dropped(reasons, cells, key_ids)
        return EventColumns(
            partition=batches[0].partition,
            next_offset=batches[-1].next_offset,
            offsets=_joined([batch.offsets() for batch in batches]),
            arrival_ms=arrival_ms if given is None else np.where(given, arrival_ms, event_ms),
            event_ms=event_ms,
            key_ids=key_ids,
            cells=cells,
            reasons=reasons,
            new_keys=tuple(new_keys),
        )

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """As Extractor.key_of."""
        return self.reader.key_of(value)

    def _arrivals(
        self, batches: Sequence[RecordBatch], event_ms: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Record timestamps, NO_TIME where negative, and which rows are of batches that have them (None: no choice).

        Where no batch has any, the column of event times itself, which is yet to be filled.
        """
        columns = [batch.arrivals() for batch in batches]
        lacking = [column is None for column in columns]
        if any(lacking) and self.arrival_is_event_time:
            raise UsageError("time: the event time is the arrival time, but these records have none")
        if all(lacking):
            return event_ms, None
        counts = [batch.count for batch in batches]
        stamped = [np.full(n, NO_TIME) if column is None else column for column, n in zip(columns, counts, strict=True)]
        arrival_ms = np.maximum(_joined(stamped), NO_TIME)
        return arrival_ms, np.repeat(np.logical_not(lacking), counts) if any(lacking) else None


def blank_dropped(reasons: NDArray[np.uint8], cells: NDArray[np.uint32], key_ids: NDArray[np.int32]) -> None:
    """Give the rows that are not counted cell 0 and key id -1, in place. All columns have one shape."""
    if reasons.any():
        dropped = reasons != Reason.OK
        cells[dropped] = 0
        key_ids[dropped] = -1


def _joined(columns: list[Any]) -> Any:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
