"""What stands before the bitmaps and the key of a published record: enough to know whether the rest of it is needed.

A head is read without a check of what follows it. Whoever goes on to use the record decodes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, takewhile
from typing import Any

import msgpack  # type: ignore[import-untyped]  # no stubs are published; the types of what is used are checked here

from sfm_stream.errors import FormatError, ShapeError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Window
from sfm_stream.wire.codec import decode_at
from sfm_stream.wire.fields import BITMAP, KEY, RecordLayout, peek_version
from sfm_stream.wire.record_layouts import LAYOUTS, RELEASE, ROLLUP

_HEAD_BYTES = 2048
"""More than these fields take: none is longer than 64 characters but the names of released spans."""


@dataclass(frozen=True, slots=True)
class ReleaseHead:
    """Of a release: the fields of the same names, shape and hash of its sketch."""

    pipeline: str
    epoch: int
    partition: int
    partitions: int
    window: Window
    span: str | None
    shape: SketchShape
    hash: str


@dataclass(frozen=True, slots=True)
class RollupHead:
    """Of a roll-up: the fields of the same names."""

    pipeline: str
    epoch: int
    partition: int
    grain: str
    window: Window
    revision: int


def head_at(place: str, data: bytes) -> ReleaseHead | RollupHead | None:
    """The head of a release or of a roll-up; None for a close marker.

    Raises FormatError, naming the place, for what is no record.
    """
    try:
        kind, fields = _fields(data)
        window = Window(fields["start_ms"], fields["end_ms"]) if kind in (RELEASE, ROLLUP) else None
        source = fields["pipeline"], fields["epoch"], fields["partition"]
        if kind == RELEASE and window:
            shape = SketchShape(fields["buckets"], fields["levels"])
            return ReleaseHead(*source, fields["partitions"], window, fields.get("span"), shape, fields["hash"])
        if kind == ROLLUP and window:
            return RollupHead(*source, fields["grain"], window, fields["revision"])
    except (LookupError, TypeError, ValueError, StopIteration, ShapeError, msgpack.UnpackException):
        decode_at(place, data)
        raise FormatError("record", "its head cannot be read", place) from None
    return None


def _fields(data: bytes) -> tuple[int, dict[str, Any]]:
    """The kind of a record, and its fields up to the first bitmap or the key."""
    values = _whole(data) if len(data) <= _HEAD_BYTES else None
    reading = _read_on(data) if values is None else iter(values)
    version, kind = next(reading), next(reading)
    if version != peek_version(data):
        raise ValueError
    names, types = _layout(version, kind)
    fields = list(islice(reading, len(names)))
    if list(map(type, fields)) != types:
        raise TypeError
    return kind, dict(zip(names, fields, strict=True))


def _whole(data: bytes) -> list[Any] | None:
    """All fields of a short record, in one step; None where they cannot be read."""
    try:
        found = msgpack.unpackb(data, raw=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None
    return found if type(found) is list else None


def _read_on(data: bytes) -> Iterator[Any]:
    """The fields of a record, one after the other. What follows those that are asked for may be anything."""
    unpacker = msgpack.Unpacker(raw=False)
    unpacker.feed(data[:_HEAD_BYTES])
    for _ in range(unpacker.read_array_header()):
        yield unpacker.unpack()


@cache
def _layout(version: int, kind: int) -> tuple[list[str], list[type]]:
    """The names of the fields of a record up to the first bitmap or the key, and their types."""
    layout: RecordLayout = LAYOUTS[version][kind]
    head = list(takewhile(lambda field: field.wire not in (BITMAP, KEY), layout[2:]))
    return [field.name for field in head], [field.wire.python for field in head]
