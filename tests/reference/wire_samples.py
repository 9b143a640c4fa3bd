"""Records that tests of the wire format share. Their bits are SHAKE-128 output, so nothing else is being tested."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from decimal import Decimal

import msgpack
import numpy as np
from reference.naive_wire import FIELDS

from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.sketch.sfm import NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import KeyValue, Window
from sfm_stream.wire.codec import CloseMarker, Release, RollupRecord
from sfm_stream.wire.keys import encode_key

HOUR_MS = 3_600_000
START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
COUNT = NoisyCount(-5, Decimal("0.25"))
K = 4_961_093_570_831_980_854  # epsilon 1: ceil(2^64 / (e + 1))


def bits(shape: SketchShape, seed: str) -> bytes:
    return hashlib.shake_128(seed.encode()).digest(shape.nbytes)


def sketch(shape: SketchShape, seed: str = "sketch", k: int = K) -> SfmSketch:
    return SfmSketch(shape, k, "xxh64", bits(shape, seed))


def release(shape: SketchShape, key: KeyValue = "/pricing", seed: str = "sketch") -> Release:
    window = Window(START_MS, START_MS + 60_000)
    return Release("visits", 1, 3, 12, window, encode_key(key), "removed", sketch(shape, seed))


def marker() -> CloseMarker:
    return CloseMarker("visits", 1, 3, 12, START_MS, START_MS + HOUR_MS, 60_000, "0123456789abcdef")


def rollup(shape: SketchShape, key: KeyValue = "/pricing", releases: int = 3, seed: str = "sketch") -> RollupRecord:
    numbers = hashlib.shake_128(seed.encode()).digest(4 * shape.cells)
    counts = (np.frombuffer(numbers, "<u4") % np.uint32(releases + 1)).astype(np.int32)
    tally = Tally(shape, K, "xxh64", releases, counts.reshape(shape.levels, shape.buckets))
    return RollupRecord(
        pipeline="visits",
        epoch=1,
        partition=3,
        partitions=12,
        grain="hour",
        window=Window(START_MS, START_MS + HOUR_MS),
        zone="UTC",
        key=encode_key(key),
        unit="removed",
        windows=max(60, releases),
        decided=max(60, releases),
        released=releases,
        complete=True,
        revision=releases + 1,
        tally=tally,
        merged=sketch(shape, seed + " merged", k=1 << 62),
        value=1234.5,
        standard_error=67.25,
        low=1100.0,
        high=float("inf"),
        confidence=0.95,
        status="ok",
    )


def counted_release(
    shape: SketchShape, key: KeyValue = "/pricing", seed: str = "sketch", count: NoisyCount | None = COUNT
) -> Release:
    """Version 2, with a noisy count that is negative, as a small one may be."""
    record = release(shape, key, seed)
    return replace(record, sketch=replace(record.sketch, count=count), span="1m")


def span_marker() -> CloseMarker:
    """Version 2."""
    return replace(marker(), window_ms=HOUR_MS, span="hour", spans=("1m", "hour", "day"))


def sized_rollup(
    shape: SketchShape,
    key: KeyValue = "/pricing",
    releases: int = 3,
    seed: str = "sketch",
    count_epsilon: Decimal | None = COUNT.epsilon,
) -> RollupRecord:
    """Version 2: a merged hour, whose counts are put together from the ones of its releases."""
    parts = [sketch(shape, f"{seed} {number}") for number in range(releases)]
    if count_epsilon is not None:
        parts = [replace(part, count=NoisyCount(7 * at - 8, count_epsilon)) for at, part in enumerate(parts)]
    record = rollup(shape, key, releases, seed)
    return replace(record, tally=Tally.of(parts), origin="merged", span="1m", count_epsilon=count_epsilon)


def raw_rollup(shape: SketchShape, key: KeyValue = "/pricing", seed: str = "sketch") -> RollupRecord:
    """Version 2: a month that was released itself."""
    month = Window(START_MS, START_MS + 31 * 24 * HOUR_MS)
    record = sized_rollup(shape, key, 1, seed)
    return replace(record, grain="month", window=month, windows=1, decided=1, origin="raw", span="month")


def bare(record: RollupRecord) -> RollupRecord:
    """Version 3: the same roll-up without what its releases say."""
    assert record.tally is not None
    return replace(record, tally=None, merged=None, kind=SketchKind.of(record.tally))


def u64(value: int) -> bytes:
    return struct.pack(">BQ", 0xCF, value)


def f64(value: float) -> bytes:
    return struct.pack(">Bd", 0xCB, value)


def raw_fields(data: bytes) -> dict[str, bytes]:
    """The undecoded bytes of each field by name, and those of the array header as "header"."""
    unpacker = msgpack.Unpacker(raw=False)
    unpacker.feed(data)
    count = unpacker.read_array_header()
    version, kind = msgpack.unpackb(data, raw=False)[:2]
    names = FIELDS[version][kind].split()
    borders = [0, unpacker.tell()]
    for _ in range(count):
        unpacker.skip()
        borders.append(unpacker.tell())
    return {name: data[a:b] for name, a, b in zip(["header", *names], borders[:-1], borders[1:], strict=True)}


def altered(data: bytes, **fields: bytes) -> bytes:
    """The record with the undecoded bytes of some fields replaced."""
    return b"".join((raw_fields(data) | fields).values())
