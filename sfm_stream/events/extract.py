"""Records to events: what a value means, and why one is not counted.

`PythonExtractor` is the definition; another extractor has to agree with it row by row. For each record the first
reason in the order of `Reason` is given, but the times of a row are given whenever its time field is readable and
plausible, whatever the rest of the record holds, JSON or not: the clock of a partition is made of them, and it must not
depend on the content of keys and items (docs/privacy, "arrival decides what counts").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.event_time import EventTime, Times
from sfm_stream.events.formats.json_fast import JsonLines, PlainRows, as_positions
from sfm_stream.events.formats.json_strict import NOT_UNICODE, StrictReader
from sfm_stream.events.key_table import KeyTable, encode_key
from sfm_stream.sketch.hashing import XXH64, ItemHash, encode_item, hash_encoded, hash_items
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, EventColumns, KeyValue, Reason, RecordBatch
from sfm_stream.units import INT64_MAX, INT64_MIN

__all__ = ["EventSchema", "Extractor", "PythonExtractor"]

_BLOCK_RECORDS = 2048


class Extractor(Protocol):
    """Reads the records of one partition."""

    def columns(self, batches: Sequence[RecordBatch]) -> EventColumns:
        """One row for each record of the batches, which are of one partition and in order."""
        ...


class _Columns(NamedTuple):
    """Views of one block's rows, to be filled. Key ids and hashes mean nothing in rows that are not OK."""

    event_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    key_ids: NDArray[np.int32]
    hashes: NDArray[np.uint64]

    def rows(self, start: int, stop: int) -> _Columns:
        block = slice(start, stop)
        return _Columns(self.event_ms[block], self.reasons[block], self.key_ids[block], self.hashes[block])


class PythonExtractor:
    """Reads JSON records of one format; interns keys in the order of the records.

    A key is interned only for a row that is counted as far as this step can tell (reason OK). Where the table is
    fixed, a key that it does not hold is KEY_NOT_DECLARED, or KEY_MISPLACED if another partition's does. Never raises
    for the content of a record.
    """

    def __init__(self, form: EventSchema, shape: SketchShape, item_hash: ItemHash = XXH64, *, keys: KeyTable) -> None:
        self._form, self._shape, self._hash, self._keys = form, shape, item_hash, keys
        self._lines, self._strict, self._time = JsonLines(form), StrictReader(form), EventTime(form)

    def columns(self, batches: Sequence[RecordBatch]) -> EventColumns:
        """One row for each record of the batches, which are of one partition and in order.

        arrival_ms is the record timestamp, or the event time where a batch has none (`arrivals()` is None).
        Raises UsageError without any batch, or if the arrival is both the event time and not there.
        """
        if not batches:
            raise UsageError("columns: expected at least one batch")
        values = batches[0].values() if len(batches) == 1 else list(chain.from_iterable(b.values() for b in batches))
        count = len(values)
        filled = _Columns(
            np.empty(count, np.int64),
            np.empty(count, np.uint8),
            np.empty(count, np.int32),
            np.empty(count, np.uint64),
        )
        arrival_ms, given = self._arrivals(batches, filled.event_ms)
        new_keys: list[int] = []
        for start in range(0, count, _BLOCK_RECORDS):
            stop = min(start + _BLOCK_RECORDS, count)
            self._fill(values[start:stop], arrival_ms[start:stop], filled.rows(start, stop), new_keys)
        cells = self._shape.place(filled.hashes)
        if filled.reasons.any():
            dropped = filled.reasons != Reason.OK
            cells[dropped] = 0
            filled.key_ids[dropped] = -1
        return EventColumns(
            partition=batches[0].partition,
            next_offset=batches[-1].next_offset,
            offsets=_joined([batch.offsets() for batch in batches]),
            arrival_ms=arrival_ms if given is None else np.where(given, arrival_ms, filled.event_ms),
            event_ms=filled.event_ms,
            key_ids=filled.key_ids,
            cells=cells,
            reasons=filled.reasons,
            new_keys=tuple(new_keys),
        )

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """The counting key of one record, whatever else it holds; None where that is missing or no text or int64."""
        parts = self._strict.read(value).key
        key: Any = parts[0] if len(parts) == 1 else parts
        return None if _unusable(parts) else key

    def _arrivals(
        self, batches: Sequence[RecordBatch], event_ms: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Record timestamps, NO_TIME where negative, and which rows are of batches that have them (None: no choice).

        Where no batch has any, the column of event times itself, which is yet to be filled.
        """
        columns = [batch.arrivals() for batch in batches]
        lacking = [column is None for column in columns]
        if any(lacking) and self._form.time is None:
            raise UsageError("time: the event time is the arrival time, but these records have none")
        if all(lacking):
            return event_ms, None
        counts = [batch.count for batch in batches]
        filled = [np.full(n, NO_TIME) if column is None else column for column, n in zip(columns, counts, strict=True)]
        arrival_ms = np.maximum(_joined(filled), NO_TIME)
        return arrival_ms, np.repeat(np.logical_not(lacking), counts) if any(lacking) else None

    def _fill(
        self, values: list[bytes | None], arrival_ms: NDArray[np.int64], out: _Columns, new_keys: list[int]
    ) -> None:
        plain = self._lines.read(values)
        if not plain.odd:
            out.event_ms[:], out.reasons[:] = self._times(plain, arrival_ms)
            out.hashes[:] = self._hashes(plain)
            self._identify(plain.keys(), out, new_keys)
            return
        keys: list[Any] = [None] * len(values)
        if len(plain):
            at = as_positions(len(values), plain.odd)
            out.event_ms[at], out.reasons[at] = self._times(plain, arrival_ms[at])
            out.hashes[at] = self._hashes(plain)
            for position, key in zip(at.tolist(), plain.keys(), strict=True):
                keys[position] = key
        for position in plain.odd:
            keys[position] = self._fill_odd(values[position], position, arrival_ms, out)
        self._identify(keys, out, new_keys)

    def _times(self, plain: PlainRows, arrival_ms: NDArray[np.int64]) -> Times:
        if self._form.time is None:
            return self._time.arrivals(arrival_ms)
        if not self._time.numeric:
            return self._time.each(plain.times())
        return self._time.mixed(plain.times()) if plain.mixed_times else self._time.integers(plain.times())

    def _hashes(self, plain: PlainRows) -> NDArray[np.uint64]:
        encoded = plain.encoded_items()
        if encoded is not None:
            return hash_encoded(encoded, len(encoded), self._hash)
        items = plain.items()
        whole = set(map(type, items)) == {int}
        return hash_items(np.fromiter(items, np.int64, len(items)) if whole else items, self._hash)

    def _fill_odd(self, value: bytes | None, position: int, arrival_ms: NDArray[np.int64], out: _Columns) -> Any:
        """Fill the row of one record that was not plain; its key if the row is OK, else None."""
        fields = self._strict.read(value)
        if self._form.time is None:
            arrival = int(arrival_ms[position])
            event_ms, time_reason = self._time.read(None if arrival == NO_TIME else arrival)
        else:
            event_ms, time_reason = self._time.read(fields.time)
            unusual = self._time.numeric and type(fields.time) is not int
            if time_reason == Reason.OK and unusual and not self._lines.mixed_times:
                self._lines.mix_times()
        key = fields.key[0] if len(fields.key) == 1 else fields.key
        reason = fields.reason or time_reason or self._key_reason(fields.key, key) or self._item_reason(fields.item)
        out.event_ms[position], out.reasons[position] = event_ms, reason
        if reason != Reason.OK:
            out.hashes[position] = 0
            return None
        out.hashes[position] = self._hash.digest(encode_item(fields.item))
        return key

    def _identify(self, keys: list[Any], out: _Columns, new_keys: list[int]) -> None:
        """Fill in key ids, interning those of rows that are OK so far."""
        if len(keys) > 1:
            try:  # one call for the whole column, as long as nothing is new
                out.key_ids[:] = np.fromiter(itemgetter(*keys)(self._keys.ids), np.int32, len(keys))
                return
            except KeyError:
                pass
        find, reasons = self._keys.ids.get, out.reasons.tolist()
        key_ids = [find(key, -1) for key in keys]
        for position, key_id in enumerate(key_ids):
            if key_id < 0 and reasons[position] == Reason.OK:
                key_ids[position] = self._intern(keys[position], position, out, new_keys)
        out.key_ids[:] = key_ids

    def _intern(self, key: Any, position: int, out: _Columns, new_keys: list[int]) -> int:
        known = self._keys.ids.get(key, -1)  # an earlier row of the block may have brought it
        if known < 0:
            reason = self._unknown_reason(key)
            if reason != Reason.OK:
                out.reasons[position] = reason
                return -1
            known = self._keys.intern(key)
            new_keys.append(known)
        return known

    def _unknown_reason(self, key: Any) -> Reason:
        if _at_most_bytes(key) > self._form.max_key_bytes and len(encode_key(key)) > self._form.max_key_bytes:
            return Reason.KEY_TOO_LONG
        if not self._keys.fixed:
            return Reason.OK
        return Reason.KEY_MISPLACED if self._keys.is_elsewhere(key) else Reason.KEY_NOT_DECLARED

    def _key_reason(self, parts: tuple[object, ...], key: Any) -> Reason:
        return _unusable(parts) or (Reason.OK if key in self._keys.ids else self._unknown_reason(key))

    def _item_reason(self, item: object) -> Reason:
        if item is None:
            return Reason.ITEM_MISSING
        if item is NOT_UNICODE:
            return Reason.ITEM_NOT_UNICODE
        if type(item) is float and not isfinite(item):
            return Reason.ITEM_NOT_FINITE
        if type(item) is float and self._form.float_items:
            return Reason.OK
        if type(item) is not str and type(item) is not int:
            return Reason.ITEM_TYPE
        return Reason.ITEM_RANGE if type(item) is int and not INT64_MIN <= item <= INT64_MAX else Reason.OK


def _unusable(parts: tuple[object, ...]) -> Reason:
    """Missing, then no Unicode, type, range: whichever part of a key has it. OK where none does."""
    if any(part is None for part in parts):
        return Reason.KEY_MISSING
    if any(part is NOT_UNICODE for part in parts):
        return Reason.KEY_NOT_UNICODE
    if any(type(part) is not str and type(part) is not int for part in parts):
        return Reason.KEY_TYPE
    if any(type(part) is int and not INT64_MIN <= part <= INT64_MAX for part in parts):
        return Reason.KEY_RANGE
    return Reason.OK


def _at_most_bytes(key: Any) -> int:
    """An upper bound of the canonical length, from that of any text (4 bytes a character) and head (9 bytes)."""
    parts = key if type(key) is tuple else (key,)
    return 9 + sum(9 + 4 * len(part) if type(part) is str else 9 for part in parts)


def _joined(columns: list[Any]) -> Any:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
