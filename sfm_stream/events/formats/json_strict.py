"""One JSON record read slowly and exactly: its fields, or the reason why it has none.

Every record that the fast reader (json_fast.py) does not answer for comes here. A record is JSON as RFC 8259 has it, in
UTF-8, at most MAX_DEPTH objects and arrays deep, with an object at the top. A byte order mark before it is skipped.
JSON is taken a little wider, since producers write it so: NaN, Infinity, halves of surrogate pairs and bytes that are
not UTF-8 spoil only the field that they are in.

A record that is no such JSON is refused as a whole. Its time and key are then read by a scan that knows only strings,
brackets, commas and colons (tolerant_scan.py). So the content of one field decides neither when the record arrived nor
which partition it belongs to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import BYTE_ORDER_MARK, NOT_UNICODE, Fields
from sfm_stream.events.formats.tolerant_scan import TolerantScan
from sfm_stream.types import Reason

MAX_DEPTH = 256
"""Deeper records are malformed. The bound lies well inside the interpreter's, which depends on the caller's depth."""

_HUGE_DIGITS = 40
_HUGE: Final[int] = 10**_HUGE_DIGITS
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Repeated(dict[str, object]):
    """An object in which some names were given more than once."""

    names: frozenset[str]


_AMBIGUOUS: Final = object()
"""Stands for the value of a field that is given twice."""


class StrictReader:
    """Reads single records of one schema."""

    def __init__(self, schema: EventSchema) -> None:
        item, *others = schema.paths()
        self._item, self._time = item, others.pop(0) if schema.time is not None else None
        self._key = tuple(others)
        self._max_bytes = schema.max_record_bytes
        self._scan = TolerantScan(schema.paths()[1:])
        self._json = json.JSONDecoder(object_pairs_hook=_members, parse_constant=float, parse_int=_integer, strict=True)

    def read(self, value: bytes | None) -> Fields:
        """As Format.read; of a record that is refused as a whole, time and key are what the scan gives."""
        if value is not None and value.startswith(BYTE_ORDER_MARK):
            value = value[len(BYTE_ORDER_MARK) :]
        if not value:
            return Fields(Reason.TOMBSTONE, key=(None,) * len(self._key))
        if len(value) > self._max_bytes:
            return self._scanned(Reason.RECORD_TOO_LONG, value)
        if too_deep(value):
            return self._scanned(Reason.MALFORMED, value)
        try:
            document = self._json.decode(value.decode(errors="surrogateescape"))
        except ValueError:
            document = None
        if not isinstance(document, dict):
            return self._scanned(_what_is_wrong(value), value)
        item = _at(document, self._item)
        time = None if self._time is None else _at(document, self._time)
        key = tuple(_at(document, path) for path in self._key)
        if _AMBIGUOUS not in (item, time, *key):
            return Fields(Reason.OK, _unicode(item), _unicode(time), tuple(map(_unicode, key)))
        return Fields(Reason.DUPLICATE_FIELD, _sole(item), _sole(time), tuple(map(_sole, key)))

    def _scanned(self, reason: Reason, value: bytes) -> Fields:
        """The fields of a record that is refused for this reason."""
        others = [None if raw is None else self._value(raw) for raw in self._scan.values(value)]
        time = None if self._time is None else others.pop(0)
        return Fields(reason, None, time, tuple(others))

    def _value(self, raw: bytes) -> object:
        """What the bytes of a text, number or word mean; None where they mean nothing."""
        try:
            return _unicode(self._json.decode(raw.decode(errors="surrogateescape")))
        except ValueError:
            return None


def _what_is_wrong(value: bytes) -> Reason:
    """The reason for a record that is no JSON object."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return Reason.NOT_UTF8
    return Reason.MALFORMED


def too_deep(value: bytes) -> bool:
    """Whether objects and arrays are nested more than MAX_DEPTH deep, valid or not."""
    if value.count(b"[") + value.count(b"{") <= MAX_DEPTH:
        return False
    outside = np.frombuffer(_STRING.sub(b"", value), np.uint8) | 0x20  # '[' and '{', ']' and '}' differ in this bit
    steps = (outside == ord("{")).astype(np.int8) - (outside == ord("}")).astype(np.int8)
    return bool(steps.size) and int(np.cumsum(steps, dtype=np.int64).max()) > MAX_DEPTH


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated, seen = _Repeated(members), set[str]()
    repeated.names = frozenset(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return repeated


def _at(document: object, path: Sequence[str]) -> object:
    """The value at a path: None if missing or null; a list, which no field may be, if no object stands on the way."""
    node = document
    for name in path:
        if not isinstance(node, dict):
            return node if node is None else []
        if isinstance(node, _Repeated) and name in node.names:
            return _AMBIGUOUS
        node = node.get(name)
    return node


def _sole(value: object) -> object:
    """The value of a field of a record in which some field is given twice."""
    return None if value is _AMBIGUOUS else _unicode(value)


def _unicode(value: object) -> object:
    """The value, or NOT_UNICODE for a text that has no UTF-8."""
    return NOT_UNICODE if isinstance(value, str) and _SURROGATE.search(value) else value


def _integer(digits: str) -> int:
    # Past int64 the value no longer matters, and the time to convert it grows with the square of its length.
    if len(digits) <= _HUGE_DIGITS:
        return int(digits)
    return -_HUGE if digits[0] == "-" else _HUGE
