"""One record read slowly and exactly: its fields, or the reason why it has none.

Everything that the fast path (json_lines.py) cannot answer for comes here. A record is JSON as RFC 8259 has it, in
UTF-8, at most MAX_DEPTH objects and arrays deep, with an object at the top; a byte order mark before it is passed over.
JSON is taken a little wider where producers write it so: NaN, Infinity, halves of surrogate pairs and bytes that are
not UTF-8 harm only the field that they are in.

Of a record that is no such JSON, its time and key are given as far as a scan that knows brackets only finds them
(tolerant_scan.py): what stands in another field decides neither when it arrived nor where it belongs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.tolerant_scan import TolerantScan
from sfm_stream.types import Reason

MAX_DEPTH = 256
"""Deeper records are malformed: a bound of our own, well inside the interpreter's, which moves with the caller."""

_FRAME_HEADER_BYTES = 5
_HUGE_DIGITS = 40
_HUGE: Final[int] = 10**_HUGE_DIGITS
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NotUnicode:
    """Stands for a text that holds half a surrogate pair, or bytes that are not UTF-8."""


NOT_UNICODE: Final = NotUnicode()


class Fields(NamedTuple):
    """The values at the configured paths; None where missing or null. reason: of the record as a whole."""

    reason: Reason
    item: object = None
    time: object = None
    key: tuple[object, ...] = ()


class _Repeated(dict[str, object]):
    """An object in which some names were given more than once."""

    names: frozenset[str]


_AMBIGUOUS: Final = object()


class StrictReader:
    """Reads single records of one format."""

    def __init__(self, form: EventSchema) -> None:
        item, *others = form.paths()
        self._item, self._time = item, others.pop(0) if form.time is not None else None
        self._key = tuple(others)
        self._max_bytes = form.max_record_bytes
        self._scan = TolerantScan(form.paths()[1:])
        self._json = json.JSONDecoder(object_pairs_hook=_members, parse_constant=float, parse_int=_integer, strict=True)

    def read(self, value: bytes | None) -> Fields:
        """The fields of a record. A repeated field reads as None, and the reason says so; the others are given.

        Of a record that is no such JSON: its time and key alone, each None where nothing readable is found.
        """
        if value is not None and value.startswith(_BYTE_ORDER_MARK):
            value = value[len(_BYTE_ORDER_MARK) :]
        if not value:
            return Fields(Reason.TOMBSTONE, key=(None,) * len(self._key))
        if len(value) > self._max_bytes:
            return self._scanned(Reason.RECORD_TOO_LONG, value)
        if value[0] == 0 and len(value) >= _FRAME_HEADER_BYTES:
            return self._scanned(Reason.FRAMED, value, _FRAME_HEADER_BYTES)
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

    def _scanned(self, reason: Reason, value: bytes, start: int = 0) -> Fields:
        found = [None if raw is None else self._value(raw) for raw in self._scan.find(value, start)]
        time = None if self._time is None else found.pop(0)
        return Fields(reason, None, time, tuple(found))

    def _value(self, raw: bytes) -> object:
        """What the bytes of a text, number or word mean; None where they mean nothing."""
        try:
            return _unicode(self._json.decode(raw.decode(errors="surrogateescape")))
        except ValueError:
            return None


def _what_is_wrong(value: bytes) -> Reason:
    """With a record that is no object of JSON."""
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
    """None if missing or null; whatever stands in the way if that is no object: its type will be refused."""
    node = document
    for name in path:
        if not isinstance(node, dict):
            return node if node is None else []
        if isinstance(node, _Repeated) and name in node.names:
            return _AMBIGUOUS
        node = node.get(name)
    return node


def _sole(value: object) -> object:
    return None if value is _AMBIGUOUS else _unicode(value)


def _unicode(value: object) -> object:
    """The value, or NOT_UNICODE for a text that has no UTF-8."""
    return NOT_UNICODE if isinstance(value, str) and _SURROGATE.search(value) else value


def _integer(digits: str) -> int:
    # Past int64 the value no longer matters, and the time to convert it grows with the square of its length.
    if len(digits) <= _HUGE_DIGITS:
        return int(digits)
    return -_HUGE if digits[0] == "-" else _HUGE
