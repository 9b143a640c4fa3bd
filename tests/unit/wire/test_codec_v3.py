"""Version 3: a roll-up without what follows from its releases; when it is written, and every refusal of its own."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgpack
import pytest
from reference.naive_wire import read
from reference.wire_samples import (
    START_MS,
    altered,
    bare,
    f64,
    raw_rollup,
    release,
    rollup,
    sized_rollup,
    u64,
)

from sfm_stream.errors import FormatError
from sfm_stream.sketch.agreement import SketchKind
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.wire import codec

SHAPE = SketchShape(4096, 24)
MERGED, RAW, UNNAMED = (bare(record) for record in (sized_rollup(SHAPE), raw_rollup(SHAPE), rollup(SHAPE)))
BASE = {"merged": codec.encode(MERGED), "raw": codec.encode(RAW), "unnamed": codec.encode(UNNAMED)}


def pack(value: object) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


@pytest.mark.parametrize("record", [MERGED, RAW, UNNAMED], ids=BASE)
def test_round_trip(record: codec.RollupRecord) -> None:
    data = codec.encode(record)
    found = codec.decode_rollup(data)
    assert found == record
    assert (found.tally, found.merged, found.kind) == (
        None,
        None,
        SketchKind(SHAPE, record.of_releases.flip_threshold, "xxh64"),
    )
    naive = read(data)
    assert (naive["version"], naive["origin"], naive["span"]) == (3, record.origin or "", record.span or "")
    assert naive["value"] == record.value


def test_only_a_roll_up_without_a_tally_is_of_version_3() -> None:
    assert {read(data)["version"] for data in BASE.values()} == {3}
    for record, version in ((rollup(SHAPE), 1), (sized_rollup(SHAPE), 2), (release(SHAPE), 1)):
        assert read(codec.encode(record))["version"] == version


def test_it_is_a_small_part_of_a_release() -> None:
    """4096 x 24: with planes, sizes and the merged sketch a record of one release takes more than two releases."""
    assert len(codec.encode(raw_rollup(SHAPE))) > 2 * SHAPE.nbytes
    assert max(map(len, BASE.values())) < 0.03 * SHAPE.nbytes


REFUSED = [
    ("merged", "kind", u64(1), "kind", "1 is unknown; version 3 knows 3"),
    ("merged", "kind", u64(2), "kind", "2 is unknown; version 3 knows 3"),
    ("merged", "version", u64(1), "start_ms", "expected uint64, got str"),
    ("merged", "version", u64(2), "record", "30 fields where this kind has 35"),
    ("merged", "origin", pack(""), "origin", "raw, merged"),
    ("merged", "origin", b"\xc0", "origin", "expected str"),
    ("merged", "origin", pack("raw"), "span", "not the name of the span of a window of 1h"),
    ("merged", "span", pack(""), "span", "does not match"),
    ("merged", "span", pack("1d"), "span", "does not match"),
    ("merged", "grain", pack("week"), "end_ms", "a span of 1h is not one week"),
    ("merged", "released", u64(0), "released", "outside"),
    ("merged", "released", u64(61), "windows", "outside 61.."),
    ("merged", "value", f64(-1.0), "value", "negative"),
    ("merged", "high", f64(1099.0), "low", "above high"),
    ("merged", "status", u64(4), "status", "code 4"),
    ("merged", "buckets", u64(17), "buckets", "not a power of two"),
    ("merged", "levels", u64(49), "levels", "outside"),
    ("merged", "k", u64(0), "k", "outside"),
    ("merged", "k", u64(1 << 63), "k", "outside"),
    ("merged", "hash", pack("X"), "hash", "does not match"),
    ("merged", "count_epsilon", pack("0.250"), "count_epsilon", "does not match"),
    ("merged", "count_epsilon", pack("17"), "count_epsilon", "outside"),
    ("merged", "header", b"\xdd\x00\x00\x00\x1e", "record", "one form"),
    ("raw", "windows", u64(2), "origin", "of one window"),
    ("raw", "origin", pack("merged"), "grain", "not one of quarter, hour, day"),
    ("raw", "span", pack("week"), "span", "a span of 31d is not one week"),
    ("unnamed", "origin", pack("merged"), "span", "does not match"),
    ("unnamed", "span", pack("1m"), "origin", "raw, merged"),
    ("unnamed", "count_epsilon", pack("0.25"), "count_epsilon", "name origin and span"),
    ("unnamed", "start_ms", u64(START_MS + 60_000), "end_ms", "is not one hour"),
]


@pytest.mark.parametrize(("kind", "changed", "raw", "field", "problem"), REFUSED)
def test_refusals(kind: str, changed: str, raw: bytes, field: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        codec.decode(altered(BASE[kind], **{changed: raw}))
    assert (caught.value.field, problem in caught.value.problem) == (field, True), caught.value


UNWRITABLE: list[tuple[codec.RollupRecord, dict[str, Any], str]] = [
    (MERGED, {"kind": None}, "planes"),
    (MERGED, {"merged": rollup(SHAPE).merged}, "planes"),
    (MERGED, {"tally": rollup(SHAPE).tally}, "planes"),
    (rollup(SHAPE), {"kind": MERGED.kind}, "planes"),
    (rollup(SHAPE), {"merged": None}, "planes"),
    (MERGED, {"span": None}, "origin"),
    (UNNAMED, {"span": "1m"}, "origin"),
    (UNNAMED, {"count_epsilon": Decimal(1)}, "count_epsilon"),
    (MERGED, {"count_epsilon": Decimal("16.5")}, "count_epsilon"),
    (MERGED, {"kind": SketchKind(SHAPE, 1 << 63, "xxh64")}, "k"),
    (MERGED, {"kind": SketchKind(SHAPE, 1 << 60, "X")}, "hash"),
]


@pytest.mark.parametrize(("record", "changes", "field"), UNWRITABLE)
def test_what_could_not_be_read_cannot_be_made(record: codec.RollupRecord, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(FormatError) as caught:
        replace(record, **changes)
    assert caught.value.field == field
