"""Published records to bytes and back, wire format version 1 (docs/wire-format.md).

::

    Release       [version, kind 1, id, pipeline, epoch, partition, partitions, start_ms, end_ms, unit,
                   buckets, levels, k, hash, bits, key]
    CloseMarker   [version, kind 2, pipeline, epoch, partition, partitions, start_ms, through_ms, window_ms,
                   fingerprint]
    RollupRecord  [version, kind 3, pipeline, epoch, partition, partitions, grain, start_ms, end_ms, zone, unit,
                   windows, decided, released, complete, revision, value, standard_error, low, high, confidence,
                   status, buckets, levels, k, hash, planes, merged_k, merged, key]

Every record is one msgpack array. `encode` writes it in one form only, and `decode` refuses all other forms: equal
content has equal bytes, and two readers read the same. The key comes last, and up to it all records of one
configuration have the same length: the size of a record tells no more than its key does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from sfm_stream.errors import FormatError, ShapeError, UsageError
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.units import INT31_MAX
from sfm_stream.wire.fields import (
    BITMAP,
    DIGEST,
    FLAG,
    KEY,
    REAL,
    TEXT,
    UINT,
    RecordLayout,
    layout_of,
    named,
    peek_version,
    pieces,
    read_array,
    require_bytes,
    require_canonical,
)
from sfm_stream.wire.records import STATUSES, CloseMarker, Release, RollupRecord, WireRecord

__all__ = [
    "LAYOUTS",
    "VERSION",
    "CloseMarker",
    "Release",
    "RollupRecord",
    "WireRecord",
    "decode",
    "decode_at",
    "decode_marker",
    "decode_release",
    "decode_rollup",
    "encode",
    "payload_digest",
]

VERSION = 1
_HEAD = (("version", UINT), ("kind", UINT))
_ORIGIN = (("pipeline", TEXT), ("epoch", UINT), ("partition", UINT), ("partitions", UINT))
_WINDOW = (("start_ms", UINT), ("end_ms", UINT))
_SHAPE = (("buckets", UINT), ("levels", UINT), ("k", UINT), ("hash", TEXT))
_FIGURES = (("value", REAL), ("standard_error", REAL), ("low", REAL), ("high", REAL), ("confidence", REAL))
LAYOUTS: dict[int, RecordLayout] = {
    1: layout_of(*_HEAD, ("id", DIGEST), *_ORIGIN, *_WINDOW, ("unit", TEXT), *_SHAPE, ("bits", BITMAP), ("key", KEY)),
    2: layout_of(
        *_HEAD, *_ORIGIN, ("start_ms", UINT), ("through_ms", UINT), ("window_ms", UINT), ("fingerprint", TEXT)
    ),
    3: layout_of(
        *_HEAD,
        *_ORIGIN,
        ("grain", TEXT),
        *_WINDOW,
        ("zone", TEXT),
        ("unit", TEXT),
        *(("windows", UINT), ("decided", UINT), ("released", UINT), ("complete", FLAG), ("revision", UINT)),
        *_FIGURES,
        ("status", UINT),  # a code: the length of a name would vary with the estimate
        *_SHAPE,
        *(("planes", BITMAP), ("merged_k", UINT), ("merged", BITMAP), ("key", KEY)),
    ),
}
"""The fields of each kind, in wire order."""

_ANOTHER = "another release of sfm-stream wrote the record: use that one, or a newer one. Nothing was changed"
_DAMAGED = "the record is not as it was written: restore it from a copy. Nothing was changed"

_R = TypeVar("_R", Release, CloseMarker, RollupRecord)


def encode(record: WireRecord) -> bytes:
    """The bytes of a record. Cannot fail: records are valid by construction and far below 64 MiB."""
    return b"".join(_written(record))


def decode(data: bytes) -> WireRecord:
    """The record whose encoding is exactly `data`. Raises FormatError, and no other error, naming the field."""
    require_bytes(data)
    version = peek_version(data)
    if version not in (None, VERSION):
        raise FormatError("version", f"{version} is unknown; this reader knows version {VERSION}")
    fields = read_array(data)
    if version is None:
        raise FormatError("version", "expected uint64 as the first field")
    kind = fields[1] if len(fields) > 1 else None
    if type(kind) is not int or kind not in LAYOUTS:
        problem = f"{kind} is unknown" if type(kind) is int else "expected uint64 as the second field"
        raise FormatError("kind", f"{problem}; version {VERSION} knows {', '.join(map(str, LAYOUTS))}")
    values = named(LAYOUTS[kind], fields)
    record = _BUILDERS[kind](values)
    require_canonical(LAYOUTS[kind], _written(record), data)
    return record


def decode_at(place: str, data: bytes) -> WireRecord:
    """As `decode`. The error also names the place, such as a topic and an offset, and the remedy."""
    try:
        return decode(data)
    except FormatError as error:
        remedy = _ANOTHER if error.field == "version" else _DAMAGED
        raise FormatError(error.field, f"{error.problem}; {remedy}", place) from None


def decode_release(data: bytes) -> Release:
    """As `decode`; raises FormatError("kind", ...) for another kind of record."""
    return _only(Release, decode(data))


def decode_marker(data: bytes) -> CloseMarker:
    """As `decode`; raises FormatError("kind", ...) for another kind of record."""
    return _only(CloseMarker, decode(data))


def decode_rollup(data: bytes) -> RollupRecord:
    """As `decode`; raises FormatError("kind", ...) for another kind of record."""
    return _only(RollupRecord, decode(data))


def payload_digest(data: bytes) -> bytes:
    """SHA-256 of an encoded record, 32 bytes. A release id seen with two of them is a privacy incident."""
    return hashlib.sha256(data).digest()


def _only(wanted: type[_R], record: WireRecord) -> _R:
    if not isinstance(record, wanted):
        raise FormatError("kind", f"expected {wanted.__name__}, got {type(record).__name__}")
    return record


def _written(record: WireRecord) -> list[bytes]:
    values: tuple[object, ...]
    origin = (record.pipeline, record.epoch, record.partition, record.partitions)
    if isinstance(record, CloseMarker):
        values = (2, *origin, record.start_ms, record.through_ms, record.window_ms, record.fingerprint)
        return pieces(LAYOUTS[2], (VERSION, *values))
    window = (record.window.start_ms, record.window.end_ms)
    if isinstance(record, Release):
        sketch = record.sketch
        shape = (sketch.shape.buckets, sketch.shape.levels, sketch.flip_threshold, sketch.hash)
        values = (1, record.release_id, *origin, *window, record.unit, *shape, sketch.bits, record.key)
        return pieces(LAYOUTS[1], (VERSION, *values))
    tally = record.tally
    values = (
        *(3, *origin, record.grain, *window, record.zone, record.unit),
        *(record.windows, record.decided, record.released, record.complete, record.revision),
        *(record.value, record.standard_error, record.low, record.high, record.confidence),
        *(STATUSES.index(record.status), tally.shape.buckets, tally.shape.levels, tally.flip_threshold, tally.hash),
        *(_planes(tally), record.merged.flip_threshold, record.merged.bits, record.key),
    )
    return pieces(LAYOUTS[3], (VERSION, *values))


def _planes(tally: Tally) -> bytes:
    """The bit planes of the counts, plane 0 first: releases.bit_length() = ceil(log2(releases + 1)) bitmaps."""
    columns = np.ascontiguousarray(tally.counts, "<i4").reshape(-1, 1).view(np.uint8)  # 8 bits a column
    planes = []
    for bit in range(tally.releases.bit_length()):
        planes.append(np.packbits(columns[:, bit // 8] & np.uint8(1 << bit % 8), bitorder="little"))
    return b"".join(plane.tobytes() for plane in planes)


def _tally(shape: SketchShape, values: dict[str, Any]) -> Tally:
    """The inverse of `_planes`. Sizes are checked first, so a false length in a record allocates no memory."""
    releases, planes = values["released"], values["planes"]
    if not 1 <= releases <= INT31_MAX:
        raise FormatError("released", f"{releases} is outside 1..{INT31_MAX}")
    _require_length("planes", planes, releases.bit_length() * shape.nbytes)
    columns = np.zeros((4, shape.cells), np.uint8)
    for bit in range(releases.bit_length()):
        plane = np.frombuffer(planes, np.uint8, shape.nbytes, bit * shape.nbytes)
        columns[bit // 8] |= np.unpackbits(plane, bitorder="little") << np.uint8(bit % 8)
    counts = np.ascontiguousarray(columns.T).view("<i4").astype(np.int32).reshape(-1)
    if int(counts.max()) > releases:
        raise FormatError("planes", f"a count of {int(counts.max())} where there are {releases} releases")
    return Tally(shape, values["k"], values["hash"], releases, counts.reshape(shape.levels, shape.buckets))


def _release(values: dict[str, Any]) -> Release:
    record = Release(
        *_origin(values),
        window=Window(values["start_ms"], values["end_ms"]),
        key=values["key"],
        unit=values["unit"],
        sketch=_sketch(_shape(values), values, "k", "bits"),
    )
    if values["id"] != record.release_id:
        raise FormatError("id", "is not the id of this pipeline, epoch, partition, window and key")
    return record


def _marker(values: dict[str, Any]) -> CloseMarker:
    return CloseMarker(
        *_origin(values), values["start_ms"], values["through_ms"], values["window_ms"], values["fingerprint"]
    )


def _rollup(values: dict[str, Any]) -> RollupRecord:
    shape, status = _shape(values), values["status"]
    if status >= len(STATUSES):
        raise FormatError("status", f"code {status} is unknown; this reader knows 0..{len(STATUSES) - 1}")
    return RollupRecord(
        *_origin(values),
        grain=values["grain"],
        window=Window(values["start_ms"], values["end_ms"]),
        zone=values["zone"],
        key=values["key"],
        unit=values["unit"],
        windows=values["windows"],
        decided=values["decided"],
        released=values["released"],
        complete=values["complete"],
        revision=values["revision"],
        tally=_tally(shape, values),
        merged=_sketch(shape, values, "merged_k", "merged"),
        **{name: values[name] for name, _ in _FIGURES},
        status=STATUSES[status],
    )


_BUILDERS: dict[int, Callable[[dict[str, Any]], WireRecord]] = {1: _release, 2: _marker, 3: _rollup}


def _origin(values: dict[str, Any]) -> tuple[str, int, int, int]:
    return values["pipeline"], values["epoch"], values["partition"], values["partitions"]


def _shape(values: dict[str, Any]) -> SketchShape:
    try:
        return SketchShape(values["buckets"], values["levels"])
    except ShapeError as error:
        field, _, problem = str(error).partition(": ")  # SketchShape names the dimension first
        raise FormatError(field, problem) from None


def _sketch(shape: SketchShape, values: dict[str, Any], threshold: str, bits: str) -> SfmSketch:
    _require_length(bits, values[bits], shape.nbytes)
    try:
        return SfmSketch(shape, values[threshold], values["hash"], values[bits])
    except UsageError:
        raise FormatError(threshold, f"{values[threshold]} is outside 1..2^63") from None


def _require_length(field: str, bitmap: bytes, expected: int) -> None:
    if len(bitmap) != expected:
        raise FormatError(field, f"{len(bitmap)} bytes where the header asks for {expected}")
