"""Strict msgpack: one array of typed fields in a fixed order, written in exactly one way.

Every integer is a uint64 (0xcf) or, where it may be negative, an int64 (0xd3), every float a float64 (0xcb) and every
bitmap a bin32 (0xc6), whatever its value. So the length of a record says nothing about the values in it. A reader
refuses all bytes that writing does not give.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias, cast

import msgpack  # type: ignore[import-untyped]  # no stubs are published; read_array checks the type of every field

from sfm_stream.errors import FormatError
from sfm_stream.units import INT64_MAX
from sfm_stream.wire.keys import (
    MAX_KEY_BYTES,
    MAX_KEY_PARTS,
    checked_parts,
    encode_key,
)

MAX_RECORD_BYTES = 64 << 20
_UINT64 = struct.Struct(">BQ")
_INT64 = struct.Struct(">Bq")
_FLOAT64 = struct.Struct(">Bd")
_BIN32 = struct.Struct(">BI")


@dataclass(frozen=True, slots=True)
class WireType:
    """One type of field: how it is written, and the Python type that it is read as."""

    name: str
    python: type
    pack: Callable[[Any], bytes]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its name and its type."""

    name: str
    wire: WireType


RecordLayout: TypeAlias = tuple[Field, ...]
"""The fields of one kind of record, in wire order."""


def _uint64(value: int) -> bytes:
    return _UINT64.pack(0xCF, value)


def _int64(value: int) -> bytes:
    return _INT64.pack(0xD3, value)


def _float64(value: float) -> bytes:
    return _FLOAT64.pack(0xCB, value + 0.0)  # adding zero turns -0.0 into 0.0: equal values have equal bytes


def _bin32(value: bytes) -> bytes:
    return _BIN32.pack(0xC6, len(value)) + value


def _flag(value: bool) -> bytes:
    return b"\xc3" if value else b"\xc2"


def _generic(value: object) -> bytes:
    return bytes(msgpack.packb(value, use_bin_type=True))


@lru_cache(maxsize=256)  # names of a configuration: all records of a pipeline have the same few
def _text(value: str) -> bytes:
    return _generic(value)


UINT = WireType("uint64", int, _uint64)
INT = WireType("int64", int, _int64)
REAL = WireType("float64", float, _float64)
FLAG = WireType("bool", bool, _flag)
TEXT = WireType("str", str, _text)
DIGEST = WireType("bin8", bytes, _generic)
BITMAP = WireType("bin32", bytes, _bin32)
KEY = WireType("array", list, bytes)
"""A nested array, given as its canonical bytes."""


_TAGS = {UINT.name: "BQ", REAL.name: "Bd"}
"""Of types that stand side by side: a byte that names the type, and the number."""


def layout_of(*fields: tuple[str, WireType]) -> RecordLayout:
    """The layout with these pairs of name and type, in wire order."""
    return tuple(Field(name, wire) for name, wire in fields)


def array_header(count: int) -> bytes:
    """The shortest msgpack array header. count: 0..65535."""
    return bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2, "big")


def pieces(fields: RecordLayout, values: Sequence[object]) -> list[bytes]:
    """The header, then the bytes of each field; joined they are the record. values: checked by the caller."""
    return [
        array_header(len(fields)),
        *(field.wire.pack(value) for field, value in zip(fields, values, strict=True)),
    ]


class RecordForm:
    """Writes and reads records of one layout as `pieces` and `named` do, several times faster: many in one step."""

    def __init__(self, fields: RecordLayout) -> None:
        self._fields, self._header = fields, array_header(len(fields))
        self._names = [field.name for field in fields]
        self._types = [field.wire.python for field in fields]
        self._unsigned = itemgetter(*(place for place, field in enumerate(fields) if field.wire is UINT))
        self._others = [(field.name, place) for place, field in enumerate(fields) if field.wire in (INT, KEY)]
        self._steps: list[tuple[int, int, struct.Struct | None, WireType]] = []
        for wire, run in groupby(enumerate(fields), lambda each: each[1].wire):
            places = [place for place, _ in run]
            tag = _TAGS.get(wire.name)
            if tag is not None:
                whole = struct.Struct(">" + tag * len(places))
                self._steps.append((places[0], places[-1] + 1, whole, wire))
            else:
                self._steps += [(place, place + 1, None, wire) for place in places]

    def packed(self, values: Sequence[Any]) -> bytes:
        """The record with these values, in wire order. values: checked by the caller."""
        parts = [self._header]
        for begin, end, whole, wire in self._steps:
            if whole is None:
                parts.append(wire.pack(values[begin]))
            elif wire is UINT:
                tagged: list[Any] = [0xCF] * (2 * (end - begin))
                tagged[1::2] = values[begin:end]
                parts.append(whole.pack(*tagged))
            else:
                tagged = [0xCB] * (2 * (end - begin))
                tagged[1::2] = [value + 0.0 for value in values[begin:end]]
                parts.append(whole.pack(*tagged))
        return b"".join(parts)

    def named(self, record: Sequence[object]) -> dict[str, Any]:
        """The values by name, as from `named`, whose errors it raises."""
        if list(map(type, record)) != self._types or min(self._unsigned(record)) < 0:
            return named(self._fields, record)
        values: dict[str, Any] = dict(zip(self._names, record, strict=True))
        for name, place in self._others:
            (values[name],) = named(self._fields[place : place + 1], record[place : place + 1]).values()
        return values


def read_array(data: bytes) -> list[object]:
    """The fields of one msgpack array that fills `data` to the last byte.

    Raises FormatError("record", ...) for another type, more than 64 MiB, bytes that are not one msgpack array, or
    anything after it. No declared length allocates more than the input itself.
    """
    problem = "not a msgpack array"
    try:
        record = msgpack.unpackb(
            data,
            raw=False,
            max_bin_len=MAX_RECORD_BYTES,
            max_str_len=MAX_KEY_BYTES,
            max_array_len=2 * MAX_KEY_PARTS,
            max_map_len=0,
            max_ext_len=0,
        )
    except msgpack.ExtraData:
        record, problem = None, "bytes follow the end of the record"
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        record, problem = None, "truncated, or not msgpack as this format uses it"
    if type(record) is not list:
        # Raised after the handlers: an error of msgpack holds what it read, and must not be the context of this one.
        raise FormatError("record", problem)
    return record


def require_bytes(data: object) -> None:
    """Raise FormatError("record", ...) unless data is bytes of at most 64 MiB."""
    if type(data) is not bytes:
        raise FormatError("record", f"expected bytes, got {type(data).__name__}")
    if len(data) > MAX_RECORD_BYTES:
        raise FormatError("record", f"{len(data)} bytes, at most {MAX_RECORD_BYTES}")


def peek_version(data: bytes) -> int | None:
    """The version of a record; None if it does not begin with an array header and a uint64, as every version does.

    It is read first, since this reader may be unable to unpack the layout of a later version.
    """
    at = 1 if data[:1] and 0x90 <= data[0] <= 0x9F else 3 if data[:1] == b"\xdc" else 5 if data[:1] == b"\xdd" else 0
    if not at or len(data) < at + _UINT64.size or data[at] != 0xCF:
        return None
    return int.from_bytes(data[at + 1 : at + _UINT64.size], "big")


def named(fields: RecordLayout, record: Sequence[object]) -> dict[str, Any]:
    """The values by name, each of the Python type its field has; a key as its canonical bytes.

    Raises FormatError naming the field: wrong count, wrong type (a bool is not an integer), an integer out of range.
    """
    if len(record) != len(fields):
        raise FormatError("record", f"{len(record)} fields where this kind has {len(fields)}")
    values: dict[str, Any] = {}
    for field, found in zip(fields, record, strict=True):
        wire, value = field.wire, cast(Any, found)
        if type(found) is not wire.python:
            raise FormatError(field.name, f"expected {wire.name}, got {type(found).__name__}")
        if wire is UINT:
            if value < 0:
                raise FormatError(field.name, "a negative integer")
        elif wire is INT:
            if value > INT64_MAX:
                raise FormatError(field.name, "above 2^63 - 1")
        elif wire is KEY:
            value = encode_key(checked_parts(value))
        values[field.name] = value
    return values


def require_canonical(fields: RecordLayout, written: Sequence[bytes], data: bytes) -> None:
    """Raise FormatError naming the first field of which the bytes in `data` differ from those that are written for it.

    data: one whole msgpack array, as read_array makes sure; so no byte follows the last field.
    """
    at = 0
    for name, piece in zip(("record", *(field.name for field in fields)), written, strict=True):
        if data[at : at + len(piece)] != piece:
            raise FormatError(name, "not in the one form this format allows")
        at += len(piece)
