"""One record read slowly and exactly: its fields, or the reason why it has none.

Everything that the fast path (json_lines.py) cannot answer for comes here. A record is JSON as RFC 8259 has it, in
UTF-8, at most MAX_DEPTH objects and arrays deep, without lone surrogates, with an object at the top. Of one that is
not, its time and key are given as far as a scan that knows brackets only finds them (tolerant_scan.py): what stands in
another field decides neither when it arrived nor where it belongs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from sfm_stream.pipeline.event_format import EventFormat
from sfm_stream.pipeline.tolerant_scan import TolerantScan
from sfm_stream.types import Reason

MAX_DEPTH = 256
"""Deeper records are malformed: a bound of our own, well inside the interpreter's, which moves with the caller."""

_FRAME_HEADER_BYTES = 5
_HUGE_DIGITS = 40
_HUGE: Final[int] = 10**_HUGE_DIGITS
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_OTHER_ESCAPE = re.compile(r"\\[^u]")
_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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

    def __init__(self, form: EventFormat) -> None:
        item, *others = form.paths()
        self._item, self._time = item, others.pop(0) if form.time is not None else None
        self._key = tuple(others)
        self._max_bytes = form.max_record_bytes
        self._scan = TolerantScan(form.paths()[1:])
        self._json = json.JSONDecoder(
            object_pairs_hook=_members, parse_constant=_refuse_constant, parse_int=_integer, strict=True
        )

    def read(self, value: bytes | None) -> Fields:
        """The fields of a record. A repeated field reads as None, and the reason says so; the others are given.

        Of a record that is no such JSON: its time and key alone, each None where nothing readable is found.
        """
        if not value:
            return Fields(Reason.TOMBSTONE, key=(None,) * len(self._key))
        if len(value) > self._max_bytes:
            return self._scanned(Reason.RECORD_TOO_LONG, value)
        if value[0] == 0 and len(value) >= _FRAME_HEADER_BYTES:
            return self._scanned(Reason.FRAMED, value, _FRAME_HEADER_BYTES)
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return self._scanned(Reason.NOT_UTF8, value)
        if too_deep(value):
            return self._scanned(Reason.MALFORMED, value)
        try:
            document = self._json.decode(text)
        except ValueError:
            return self._scanned(Reason.MALFORMED, value)
        if not isinstance(document, dict) or _has_lone_surrogate(text):
            return self._scanned(Reason.MALFORMED, value)
        item = _at(document, self._item)
        time = None if self._time is None else _at(document, self._time)
        key = tuple(_at(document, path) for path in self._key)
        if _AMBIGUOUS not in (item, time, *key):
            return Fields(Reason.OK, item, time, key)
        return Fields(Reason.DUPLICATE_FIELD, _sole(item), _sole(time), tuple(map(_sole, key)))

    def _scanned(self, reason: Reason, value: bytes, start: int = 0) -> Fields:
        found = [None if raw is None else self._value(raw) for raw in self._scan.find(value, start)]
        time = None if self._time is None else found.pop(0)
        return Fields(reason, None, time, tuple(found))

    def _value(self, raw: bytes) -> object:
        """What the bytes of a text, number or word mean; None where they mean nothing."""
        try:
            text = raw.decode()
            value: object = self._json.decode(text)
        except ValueError:
            return None
        return None if _has_lone_surrogate(text) else value


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
    return None if value is _AMBIGUOUS else value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    # Past int64 the value no longer matters, and the time to convert it grows with the square of its length.
    if len(digits) <= _HUGE_DIGITS:
        return int(digits)
    return -_HUGE if digits[0] == "-" else _HUGE


def _has_lone_surrogate(text: str) -> bool:
    if "\\u" not in text:
        return False
    unicode_only = _OTHER_ESCAPE.sub(" ", text)
    return _SURROGATE.search(_SURROGATE_PAIR.sub(" ", unicode_only)) is not None
