"""The row of one record that no fast reader answered for: the definition of what a record means."""

from __future__ import annotations

from math import isfinite
from typing import Any, TypeAlias

from sfm_stream.events.event_time import TimeReader
from sfm_stream.events.formats.format import NOT_UNICODE, Format
from sfm_stream.events.framing import read_record
from sfm_stream.events.key_ids import KeyIds
from sfm_stream.sketch.hashing import ItemHash, encode_item
from sfm_stream.types import NO_TIME, KeyValue, Reason
from sfm_stream.units import INT64_MAX, INT64_MIN

OddRow: TypeAlias = tuple[int, Reason, int, KeyValue | None]
"""Event time or NO_TIME, reason, hash of the item, counting key; 0 and None for the last two where it is not OK."""


class OddReader:
    """Reads records one by one. key_ids: judges whether a key is taken."""

    __slots__ = ("_arrival_is_event_time", "_form", "_hash", "_key_ids", "_time")

    def __init__(self, form: Format, item_hash: ItemHash, key_ids: KeyIds) -> None:
        self._form, self._hash, self._key_ids, self._time = form, item_hash, key_ids, TimeReader(form.schema)
        self._arrival_is_event_time = form.schema.time is None

    def row(self, value: bytes | None, arrival_ms: int) -> OddRow:
        """The row of a record, with the first reason in the order of `Reason`."""
        fields = read_record(self._form, value)
        if self._arrival_is_event_time:
            event_ms, time_reason = self._time.read(None if arrival_ms == NO_TIME else arrival_ms)
        else:
            event_ms, time_reason = self._time.read(fields.time)
        key = _key(fields.key)
        reason = fields.reason or time_reason or self._key_reason(fields.key, key) or self._item_reason(fields.item)
        if reason:
            return event_ms, reason, 0, None
        return event_ms, reason, self._hash.digest(encode_item(fields.item)), key

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """The counting key of a record, whatever else it holds; None where that is missing or no text or int64."""
        parts = read_record(self._form, value).key
        return None if _key_part_reason(parts) else _key(parts)

    def _key_reason(self, parts: tuple[object, ...], key: KeyValue) -> Reason:
        return _key_part_reason(parts) or self._key_ids.reason_of(key)

    def _item_reason(self, item: object) -> Reason:
        if item is None:
            return Reason.ITEM_MISSING
        if item is NOT_UNICODE:
            return Reason.ITEM_NOT_UNICODE
        if type(item) is float and not isfinite(item):
            return Reason.ITEM_NOT_FINITE
        if type(item) is float and self._form.schema.float_items:
            return Reason.OK
        if type(item) is not str and type(item) is not int:
            return Reason.ITEM_TYPE
        return Reason.ITEM_RANGE if type(item) is int and not INT64_MIN <= item <= INT64_MAX else Reason.OK


def _key(parts: tuple[Any, ...]) -> Any:
    """A counting key as it is interned."""
    return parts[0] if len(parts) == 1 else parts


def _key_part_reason(parts: tuple[object, ...]) -> Reason:
    """Why the parts of a key are not taken: missing, no Unicode, type or range, of whichever part. OK if all are."""
    if any(part is None for part in parts):
        return Reason.KEY_MISSING
    if any(part is NOT_UNICODE for part in parts):
        return Reason.KEY_NOT_UNICODE
    if any(type(part) is not str and type(part) is not int for part in parts):
        return Reason.KEY_TYPE
    if any(type(part) is int and not INT64_MIN <= part <= INT64_MAX for part in parts):
        return Reason.KEY_RANGE
    return Reason.OK
