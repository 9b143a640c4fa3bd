"""Published records to bytes and back, versions 1 to 3 of the wire format (docs/wire-format.md).

Every record is one msgpack array of the fields in record_layouts.py. `encode` writes it in one form only, and `decode`
refuses all other forms: equal content has equal bytes, and two readers read the same. The key comes last, and up to it
all records of one configuration have the same length: the size of a record tells no more than its key does.

A record that needs nothing of version 2 is written in version 1, byte for byte as before there was another. A roll-up
without a tally, as roll-ups are published, is of version 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from sfm_stream.errors import FormatError, ShapeError, UsageError
from sfm_stream.sketch.agreement import Combinable, SketchKind
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.wire.count_fields import count_fields, count_of, epsilon_of_text, epsilon_text
from sfm_stream.wire.fields import peek_version, pieces, read_array, require_bytes, require_canonical
from sfm_stream.wire.record_layouts import FIGURES, FORMS, LAYOUTS, MARKER, RELEASE, ROLLUP
from sfm_stream.wire.records import STATUSES, CloseMarker, Release, RollupRecord, WireRecord
from sfm_stream.wire.tally_fields import planes_of, require_length, sizes_of, tally_of

__all__ = [
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

_ANOTHER = "another release of sfm-stream wrote the record: use that one, or a newer one. Nothing was changed"
_DAMAGED = "the record is not as it was written: restore it from a copy. Nothing was changed"

_TAKEN_AS_THEY_ARE = ("windows", "decided", "released", "complete", "revision", *FIGURES)
"""Fields of a roll-up whose values are those of the record of the same name."""

_taken = attrgetter(*_TAKEN_AS_THEY_ARE)

_R = TypeVar("_R", Release, CloseMarker, RollupRecord)


def encode(record: WireRecord) -> bytes:
    """The bytes of a record. Cannot fail: records are valid by construction and far below 64 MiB."""
    version, kind, values = _values_of(record)
    return FORMS[version][kind].packed(values)


def decode(data: bytes) -> WireRecord:
    """The record whose encoding is exactly `data`. Raises FormatError, and no other error, naming the field."""
    require_bytes(data)
    version = peek_version(data)
    if version is not None and version not in LAYOUTS:
        raise FormatError("version", f"{version} is unknown; this reader knows version {_listed(LAYOUTS)}")
    fields = read_array(data)
    if version is None:
        raise FormatError("version", "expected uint64 as the first field")
    layouts = LAYOUTS[version]
    kind = fields[1] if len(fields) > 1 else None
    if type(kind) is not int or kind not in layouts:
        problem = f"{kind} is unknown" if type(kind) is int else "expected uint64 as the second field"
        raise FormatError("kind", f"{problem}; version {version} knows {_listed(layouts)}")
    record = _BUILDERS[kind](FORMS[version][kind].named(fields))
    if encode(record) != data:
        require_canonical(layouts[kind], written(record), data)
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


def written(record: WireRecord) -> list[bytes]:
    """The bytes of the header and of each field, in order; joined they are what `encode` gives."""
    version, kind, values = _values_of(record)
    return pieces(LAYOUTS[version][kind], values)


def _values_of(record: WireRecord) -> tuple[int, int, list[object]]:
    """Version and kind of a record, and the values of its fields in wire order."""
    values: dict[str, object] = {
        "pipeline": record.pipeline,
        "epoch": record.epoch,
        "partition": record.partition,
        "partitions": record.partitions,
    }
    if isinstance(record, Release):
        kind = RELEASE
        values |= _release_values(record)
    elif isinstance(record, CloseMarker):
        kind = MARKER
        values |= _marker_values(record)
    else:
        kind = ROLLUP
        values |= _rollup_values(record)
    version = 1 if record.span is None else 2
    if isinstance(record, RollupRecord) and record.tally is None:
        version = 3
    layout = LAYOUTS[version][kind]
    values |= {"version": version, "kind": kind, "span": record.span or ""}
    return version, kind, [values[field.name] for field in layout]


def _release_values(record: Release) -> dict[str, object]:
    sketch = record.sketch
    count_epsilon, count = count_fields(sketch.count)
    return {
        "id": record.release_id,
        **_window_values(record.window),
        "unit": record.unit,
        **_shape_values(sketch),
        "bits": sketch.bits,
        "count_epsilon": count_epsilon,
        "count": count,
        "key": record.key,
    }


def _marker_values(record: CloseMarker) -> dict[str, object]:
    return {
        "start_ms": record.start_ms,
        "through_ms": record.through_ms,
        "window_ms": record.window_ms,
        "fingerprint": record.fingerprint,
        "spans": ",".join(record.spans),
    }


def _rollup_values(record: RollupRecord) -> dict[str, object]:
    return {
        "origin": record.origin or "",
        "grain": record.grain,
        **_window_values(record.window),
        "zone": record.zone,
        "unit": record.unit,
        **dict(zip(_TAKEN_AS_THEY_ARE, _taken(record), strict=True)),
        "status": STATUSES.index(record.status),
        **_shape_values(record.of_releases),
        "count_epsilon": epsilon_text(record.count_epsilon),
        **({} if record.tally is None or record.merged is None else _summed_values(record.tally, record.merged)),
        "key": record.key,
    }


def _summed_values(tally: Tally, merged: SfmSketch) -> dict[str, object]:
    ones, counts = sizes_of(tally)
    return {
        "planes": planes_of(tally),
        "ones": ones,
        "counts": counts,
        "merged_k": merged.flip_threshold,
        "merged": merged.bits,
    }


def _window_values(window: Window) -> dict[str, object]:
    return {"start_ms": window.start_ms, "end_ms": window.end_ms}


def _shape_values(sketch: Combinable) -> dict[str, object]:
    shape = sketch.shape
    return {"buckets": shape.buckets, "levels": shape.levels, "k": sketch.flip_threshold, "hash": sketch.hash}


def _release(values: dict[str, Any]) -> Release:
    count = count_of(values) if "count" in values else None
    record = Release(
        *_source(values),
        window=Window(values["start_ms"], values["end_ms"]),
        key=values["key"],
        unit=values["unit"],
        sketch=_sketch(_shape(values), values, "k", "bits", count),
        span=values.get("span"),
    )
    if values["id"] != record.release_id:
        raise FormatError("id", "is not the id of this pipeline, epoch, partition, window and key")
    return record


def _marker(values: dict[str, Any]) -> CloseMarker:
    covered = (values["start_ms"], values["through_ms"], values["window_ms"])
    spans = tuple(values["spans"].split(",")) if "spans" in values else ()
    return CloseMarker(*_source(values), *covered, values["fingerprint"], values.get("span"), spans)


def _rollup(values: dict[str, Any]) -> RollupRecord:
    shape, status = _shape(values), values["status"]
    if status >= len(STATUSES):
        raise FormatError("status", f"code {status} is unknown; this reader knows 0..{len(STATUSES) - 1}")
    count_epsilon = epsilon_of_text(values.get("count_epsilon", ""))
    origin, span, summed = values.get("origin"), values.get("span"), "planes" in values
    if not summed and origin == span == "":  # an epoch whose records name no span
        origin = span = None
    return RollupRecord(
        *_source(values),
        grain=values["grain"],
        window=Window(values["start_ms"], values["end_ms"]),
        zone=values["zone"],
        key=values["key"],
        unit=values["unit"],
        **{name: values[name] for name in _TAKEN_AS_THEY_ARE},
        tally=tally_of(shape, values, count_epsilon) if summed else None,
        merged=_sketch(shape, values, "merged_k", "merged") if summed else None,
        status=STATUSES[status],
        origin=origin,
        span=span,
        count_epsilon=count_epsilon,
        kind=None if summed else SketchKind(shape, values["k"], values["hash"]),
    )


_BUILDERS: dict[int, Callable[[dict[str, Any]], WireRecord]] = {RELEASE: _release, MARKER: _marker, ROLLUP: _rollup}


def _source(values: dict[str, Any]) -> tuple[str, int, int, int]:
    return values["pipeline"], values["epoch"], values["partition"], values["partitions"]


def _shape(values: dict[str, Any]) -> SketchShape:
    try:
        return _shape_of(values["buckets"], values["levels"])
    except ShapeError as error:
        field, _, problem = str(error).partition(": ")  # SketchShape names the dimension first
        raise FormatError(field, problem) from None


_shape_of = lru_cache(maxsize=64)(SketchShape)
"""All records of a pipeline have the same one. The numbers are integers as read, so equal ones are the same."""


def _sketch(
    shape: SketchShape, values: dict[str, Any], threshold: str, bits: str, count: NoisyCount | None = None
) -> SfmSketch:
    require_length(bits, values[bits], shape.nbytes)
    try:
        return SfmSketch(shape, values[threshold], values["hash"], values[bits], count)
    except UsageError:
        raise FormatError(threshold, f"{values[threshold]} is outside 1..2^63") from None


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
