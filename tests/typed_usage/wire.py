"""How `sfm_stream.wire` and `sfm_stream.wire.presto` are used, for mypy: each name with its types."""

from __future__ import annotations

from typing import assert_type

import numpy as np

from sfm_stream import FormatError, PcsaSketch, SfmSketch, SketchShape, Tally, flip, merge
from sfm_stream.wire import (
    CloseMarker,
    Release,
    RollupRecord,
    Window,
    WireRecord,
    decode,
    decode_at,
    decode_key,
    decode_marker,
    decode_release,
    decode_rollup,
    encode,
    encode_key,
    payload_digest,
    presto,
    release_id,
)

SHAPE = SketchShape(64, 8)
HOUR = Window(0, 3_600_000)


def records() -> None:
    sketch, key = flip(PcsaSketch(SHAPE).add(range(100)), 2), encode_key(("/pricing", 7))
    release = Release("visits", 1, 0, 1, HOUR, key, "removed", sketch)
    marker = CloseMarker("visits", 1, 0, 1, 0, HOUR.end_ms, HOUR.end_ms, "0123456789abcdef")
    rollup = RollupRecord(
        *("visits", 1, 0, 1, "hour", HOUR, "UTC", key, "removed"),
        *(1, 1, 1, True, 1, Tally.of([sketch]), merge([sketch])),
        *(100.0, 10.0, 80.0, 120.0, 0.95, "ok"),
    )
    assert_type(release.release_id, bytes)
    assert release.release_id == release_id("visits", 1, 0, HOUR, key)
    written: list[WireRecord] = [release, marker, rollup]
    for record in written:
        data = encode(record)
        assert_type(data, bytes)
        assert_type(payload_digest(data), bytes)
        read = decode(data)
        assert_type(read, Release | CloseMarker | RollupRecord)
        if isinstance(read, Release):
            assert_type(read.sketch, SfmSketch)
            assert_type(decode_key(read.key), tuple[str | int | bytes, ...])
        if isinstance(read, RollupRecord):
            assert_type(read.tally, Tally | None)
    assert_type(decode_release(encode(release)), Release)
    assert_type(decode_marker(encode(marker)), CloseMarker)
    assert_type(decode_rollup(encode(rollup)), RollupRecord)
    try:
        decode_at("sketches, offset 7", b"")
    except FormatError as error:
        assert_type((error.place, error.field, error.problem), tuple[str, str, str])


def presto_bytes() -> None:
    secret = PcsaSketch(SHAPE).add(range(100))
    sketch = flip(secret, 2)
    blob = presto.encode(sketch)
    assert_type(blob, bytes)
    assert_type(presto.decode(blob, hash="xxh64"), SfmSketch)
    assert_type(presto.cardinality(sketch), int)
    assert_type(presto.presto_cardinality(secret.bits, SHAPE, 0.0), int)
    assert_type(presto.probability(sketch.flip_threshold), float)
    empty = presto.read_raw(np.array([7, 6, 0, 0, 0, 8, *[0] * 15], np.uint8).tobytes())
    assert_type(empty, PcsaSketch)
