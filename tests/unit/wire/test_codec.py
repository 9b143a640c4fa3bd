"""Encode and decode: what comes back, and every refusal by the name of its field."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import msgpack
import numpy as np
import pytest
from reference.naive_wire import read
from reference.wire_samples import HOUR_MS, START_MS, altered, f64, marker, release, rollup, sketch, u64

from sfm_stream.errors import FormatError
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.types import Window
from sfm_stream.wire import codec
from sfm_stream.wire.keys import encode_key

SHAPE = SketchShape(16, 4)
RELEASE, MARKER, ROLLUP = codec.encode(release(SHAPE)), codec.encode(marker()), codec.encode(rollup(SHAPE))
BASE = {"release": RELEASE, "marker": MARKER, "rollup": ROLLUP}


def pack(value: object) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


def bitmap(value: bytes) -> bytes:
    return b"\xc6" + len(value).to_bytes(4, "big") + value


def refusal(data: object, decode: Callable[[bytes], object] = codec.decode) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode(data)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("key", ["", "page", "ü€", 0, -1, 1 << 62, -(1 << 63), b"", b"\x00\xff", (), ("a", 7, b"b")])
@pytest.mark.parametrize("shape", [SHAPE, SketchShape(64, 2), SketchShape(512, 24)], ids=str)
def test_round_trip(key: object, shape: SketchShape) -> None:
    for record in (release(shape, key), rollup(shape, key)):  # type: ignore[arg-type]
        data = codec.encode(record)
        assert codec.decode(data) == record
        assert codec.encode(codec.decode(data)) == data
        assert codec.decode(data).key == encode_key(key)  # type: ignore[union-attr, arg-type]


def test_marker_round_trip() -> None:
    assert codec.decode(MARKER) == marker()


@pytest.mark.parametrize("releases", [1, 2, 3, 4, 7, 8, 24, 255, 256, 257, 65535, 65536, (1 << 31) - 1])
def test_tally_of_any_number_of_releases(releases: int) -> None:
    record = rollup(SHAPE, releases=releases)
    data = codec.encode(record)
    assert codec.decode_rollup(data) == record
    assert read(data)["cells"] == record.tally.counts.tolist()
    assert len(read(data)["planes"]) == releases.bit_length() * SHAPE.nbytes  # type: ignore[arg-type]


def test_the_naive_reader_agrees() -> None:
    sample = rollup(SHAPE)
    fields = read(ROLLUP)
    assert fields["cells"] == sample.tally.counts.tolist()
    assert fields["merged_cells"] == sample.merged.cells().astype(int).tolist()
    for name in ("pipeline", "epoch", "grain", "zone", "windows", "released", "complete", "revision", "status"):
        assert fields[name] == getattr(sample, name)
    assert read(RELEASE)["cells"] == release(SHAPE).sketch.cells().astype(int).tolist()
    assert read(RELEASE)["id"] == release(SHAPE).release_id
    assert read(MARKER)["fingerprint"] == marker().fingerprint


def test_release_ids_differ_in_every_part_of_the_identity() -> None:
    base = release(SHAPE)
    others = [
        replace(base, pipeline="visits2"),
        replace(base, epoch=2),
        replace(base, partition=4),
        replace(base, window=Window(base.window.start_ms + 1, base.window.end_ms)),
        replace(base, window=Window(base.window.start_ms, base.window.end_ms + 1)),
        replace(base, key=encode_key(b"/pricing")),
        replace(base, key=encode_key(("/pricing", "/pricing"))),
    ]
    assert len({base.release_id, *(other.release_id for other in others)}) == 8
    for same in (replace(base, partitions=13), replace(base, unit="blanked"), release(SHAPE, seed="other coins")):
        assert same.release_id == base.release_id
    assert len(base.release_id) == 16


def test_typed_variants_refuse_other_kinds() -> None:
    assert codec.decode_release(RELEASE) == release(SHAPE)
    assert codec.decode_marker(MARKER) == marker()
    assert codec.decode_rollup(ROLLUP) == rollup(SHAPE)
    for decode, others in (
        (codec.decode_release, (MARKER, ROLLUP)),
        (codec.decode_marker, (RELEASE, ROLLUP)),
        (codec.decode_rollup, (RELEASE, MARKER)),
    ):
        for data in others:
            assert refusal(data, decode).field == "kind"
        assert refusal(b"", decode).field == "record"


def test_infinite_figures_are_kept_and_zero_has_one_sign() -> None:
    record = replace(rollup(SHAPE), value=-0.0, standard_error=float("inf"), low=0.0, status="uninformative")
    data = codec.encode(record)
    assert codec.decode(data) == record
    assert data == codec.encode(replace(record, value=0.0))


def test_payload_digest_tells_payloads_apart() -> None:
    assert len(codec.payload_digest(RELEASE)) == 32
    assert codec.payload_digest(RELEASE) != codec.payload_digest(codec.encode(release(SHAPE, seed="other coins")))


INTEGER_LIES = {"bool": b"\xc3", "negative": b"\xff", "int64 negative": b"\xd3" + b"\xff" * 8, "nil": b"\xc0"}
INTEGER_LIES |= {"float": f64(1.0), "text": b"\xa11", "bin": b"\xc4\x011", "array": b"\x91\x01", "map": b"\x80"}
INTEGER_FIELDS = {
    "release": "epoch partition partitions start_ms end_ms buckets levels k",
    "marker": "epoch partition partitions start_ms through_ms window_ms",
    "rollup": "epoch partition partitions start_ms end_ms windows decided released revision status buckets levels k "
    "merged_k",
}


@pytest.mark.parametrize("lie", INTEGER_LIES)
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, fields in INTEGER_FIELDS.items() for field in fields.split()]
)
def test_an_integer_is_nothing_else(kind: str, field: str, lie: str) -> None:
    error = refusal(altered(BASE[kind], **{field: INTEGER_LIES[lie]}))
    assert error.field == field
    assert error.problem.startswith("a negative integer" if "negative" in lie else "expected uint64")


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, fields in INTEGER_FIELDS.items() for field in fields.split()]
)
def test_an_integer_has_one_width(kind: str, field: str) -> None:
    value = read(BASE[kind])[field]
    shorter = pack(value if field != "status" else 0)
    if len(shorter) < 9:
        error = refusal(altered(BASE[kind], **{field: shorter}))
        assert (error.field, error.problem) == (field, "not in the one form this format allows")


@pytest.mark.parametrize("kind", BASE)
@pytest.mark.parametrize("wrong", [b"\xc0", b"\x01", b"\xc2", b"\x90", b"\x80", b"\xcb" + bytes(8)])
def test_text_bitmaps_and_keys_are_nothing_else(kind: str, wrong: bytes) -> None:
    others = ("id", "pipeline", "unit", "hash", "bits", "key", "grain", "zone", "planes", "merged", "fingerprint")
    for field in set(read(BASE[kind])) & set(others):
        if field == "key" and wrong == b"\x90":
            continue
        assert refusal(altered(BASE[kind], **{field: wrong})).field == field


REFUSED = [
    ("release", "version", u64(4), "version", "4 is unknown; this reader knows version 1, 2, 3"),
    ("release", "version", u64(3), "kind", "1 is unknown; version 3 knows 3"),
    ("release", "version", u64(2), "record", "16 fields where this kind has 19"),
    ("release", "version", u64(0), "version", "0 is unknown"),
    ("release", "version", b"\x01", "version", "expected uint64"),
    ("release", "version", b"\xc3", "version", "expected uint64"),
    ("release", "kind", u64(4), "kind", "4 is unknown; version 1 knows 1, 2, 3"),
    ("release", "kind", b"\x01", "kind", "one form"),
    ("release", "kind", b"\xc3", "kind", "expected uint64"),
    ("release", "kind", u64(2), "record", "16 fields where this kind has 10"),
    ("release", "id", pack(bytes(16)), "id", "is not the id"),
    ("release", "id", pack(bytes(15)), "id", "is not the id"),
    ("release", "pipeline", pack("other"), "id", "is not the id"),
    ("release", "epoch", u64(2), "id", "is not the id"),
    ("release", "partition", u64(4), "id", "is not the id"),
    ("release", "key", encode_key("/other"), "id", "is not the id"),
    ("release", "start_ms", u64(START_MS + 1), "id", "is not the id"),
    ("release", "end_ms", u64(START_MS + 1), "id", "is not the id"),
    ("release", "pipeline", pack(""), "pipeline", "does not match"),
    ("release", "pipeline", pack("a" * 65), "pipeline", "does not match"),
    ("release", "pipeline", pack("Visits"), "pipeline", "does not match"),
    ("release", "pipeline", pack("visits\n"), "pipeline", "does not match"),
    ("release", "pipeline", b"\xd9\x06visits", "pipeline", "one form"),
    ("release", "epoch", u64(0), "epoch", "outside 1..2147483647"),
    ("release", "epoch", u64(1 << 31), "epoch", "outside"),
    ("release", "epoch", b"\xd3" + (1).to_bytes(8, "big"), "epoch", "one form"),
    ("release", "partition", u64(12), "partition", "outside 0..11"),
    ("release", "partitions", u64(0), "partitions", "outside"),
    ("release", "partitions", u64(1 << 31), "partitions", "outside"),
    ("release", "start_ms", u64(START_MS + 60_000), "end_ms", "outside"),
    ("release", "start_ms", u64(1 << 63), "start_ms", "outside"),
    ("release", "end_ms", u64(1 << 63), "end_ms", "outside"),
    ("release", "end_ms", u64(0), "end_ms", "outside"),
    ("release", "unit", pack("added"), "unit", "removed, blanked"),
    ("release", "buckets", u64(17), "buckets", "not a power of two"),
    ("release", "buckets", u64(8), "buckets", "outside"),
    ("release", "buckets", u64(1 << 63), "buckets", "outside"),
    ("release", "buckets", u64(32), "bits", "8 bytes where the header asks for 16"),
    ("release", "levels", u64(1), "levels", "outside"),
    ("release", "levels", u64(49), "levels", "outside"),
    ("release", "k", u64(0), "k", "outside"),
    ("release", "k", u64(1 << 63), "k", "outside"),
    ("release", "k", u64((1 << 64) - 1), "k", "outside"),
    ("release", "hash", pack(""), "hash", "does not match"),
    ("release", "hash", pack("x" * 65), "hash", "does not match"),
    ("release", "bits", bitmap(bytes(7)), "bits", "7 bytes"),
    ("release", "bits", bitmap(bytes(9)), "bits", "9 bytes"),
    ("release", "bits", pack(bytes(8)), "bits", "one form"),
    ("release", "key", pack([True]), "key", "neither text, integer nor bytes: bool"),
    ("release", "key", pack([1.5]), "key", "float"),
    ("release", "key", pack([None]), "key", "NoneType"),
    ("release", "key", pack([["a"]]), "key", "list"),
    ("release", "key", pack([{}]), "key", "dict"),
    ("release", "key", pack([1 << 63]), "key", "outside int64"),
    ("release", "key", pack(["a"] * 33), "key", "33 fields"),
    ("release", "key", pack(["a"] * 65), "record", ""),
    ("release", "key", pack([b"a" * 65536]), "key", "at most 65536"),
    ("release", "key", pack(["a" * 65537]), "record", ""),
    ("release", "key", pack("/pricing"), "key", "expected array"),
    ("release", "key", b"\xdc\x00\x01\xa8/pricing", "key", "one form"),
    ("release", "key", b"\x91\xd9\x08/pricing", "key", "one form"),
    ("release", "key", b"\x91\xa2\xff\xff", "record", ""),
    ("release", "key", b"\x91\xd4\x05\x00", "record", ""),
    ("release", "key", b"\x91\xc7\x00\xff", "record", ""),
    ("release", "key", b"\x91\xc1", "record", ""),
    ("release", "key", b"\x81\x90\x01", "record", ""),
    ("release", "header", b"\xdd\x00\x00\x00\x10", "record", "one form"),
    ("release", "header", b"\xdc\x00\x0f", "record", "bytes follow"),
    ("release", "header", b"\xdc\x00\x11", "record", "truncated"),
    ("marker", "through_ms", u64(START_MS), "through_ms", "outside"),
    ("marker", "through_ms", u64(1 << 63), "through_ms", "outside"),
    ("marker", "start_ms", u64(1 << 63), "start_ms", "outside"),
    ("marker", "window_ms", u64(0), "window_ms", "outside"),
    ("marker", "window_ms", u64(7), "window_ms", "does not divide"),
    ("marker", "fingerprint", pack(""), "fingerprint", "does not match"),
    ("marker", "fingerprint", pack("a" * 65), "fingerprint", "does not match"),
    ("marker", "fingerprint", pack("ABCDEF"), "fingerprint", "does not match"),
    ("marker", "fingerprint", pack("xyz"), "fingerprint", "does not match"),
    ("rollup", "grain", pack("week"), "grain", "quarter, hour, day"),
    ("rollup", "grain", pack("day"), "end_ms", "is not one day"),
    ("rollup", "end_ms", u64(START_MS + HOUR_MS + 60_000), "end_ms", "is not one hour"),
    ("rollup", "zone", pack(""), "zone", "does not match"),
    ("rollup", "zone", pack("/etc/passwd"), "zone", "does not match"),
    ("rollup", "zone", pack("../UTC"), "zone", "does not match"),
    ("rollup", "zone", pack("a" * 65), "zone", "does not match"),
    ("rollup", "unit", pack("kept"), "unit", "not one of"),
    ("rollup", "windows", u64(2), "windows", "outside 3.."),
    ("rollup", "windows", u64(1 << 31), "windows", "outside"),
    ("rollup", "decided", u64(61), "decided", "outside 0..60"),
    ("rollup", "released", u64(0), "released", "outside"),
    ("rollup", "released", u64(1 << 31), "released", "outside"),
    ("rollup", "released", u64(2), "planes", "a count of 3 where there are 2 releases"),
    ("rollup", "released", u64(4), "planes", "16 bytes where the header asks for 24"),
    ("rollup", "released", u64((1 << 31) - 1), "planes", "asks for 248"),
    ("rollup", "complete", b"\x01", "complete", "expected bool"),
    ("rollup", "complete", b"\xc0", "complete", "expected bool"),
    ("rollup", "revision", u64(0), "revision", "outside"),
    ("rollup", "revision", u64(1 << 63), "revision", "outside"),
    ("rollup", "value", f64(float("nan")), "value", "NaN"),
    ("rollup", "value", f64(-1.0), "value", "negative"),
    ("rollup", "value", f64(-0.0), "value", "one form"),
    ("rollup", "value", u64(1234), "value", "expected float64"),
    ("rollup", "value", b"\xca" + bytes(4), "value", "one form"),
    ("rollup", "standard_error", f64(float("nan")), "standard_error", "NaN"),
    ("rollup", "standard_error", f64(-1.0), "standard_error", "negative"),
    ("rollup", "low", f64(float("-inf")), "low", "negative"),
    ("rollup", "low", f64(float("nan")), "low", "NaN"),
    ("rollup", "high", f64(1.0), "low", "above high"),
    ("rollup", "confidence", f64(0.0), "confidence", "not between"),
    ("rollup", "confidence", f64(1.0), "confidence", "not between"),
    ("rollup", "confidence", f64(float("inf")), "confidence", "not between"),
    ("rollup", "status", u64(4), "status", "code 4 is unknown; this reader knows 0..3"),
    ("rollup", "status", u64((1 << 64) - 1), "status", "unknown"),
    ("rollup", "buckets", u64(24), "buckets", "not a power of two"),
    ("rollup", "levels", u64(5), "planes", "asks for 20"),
    ("rollup", "k", u64(1 << 63), "k", "outside"),
    ("rollup", "hash", pack("Ü"), "hash", "does not match"),
    ("rollup", "planes", bitmap(bytes(15)), "planes", "15 bytes"),
    ("rollup", "planes", pack(bytes(16)), "planes", "one form"),
    ("rollup", "merged_k", u64(0), "merged_k", "outside"),
    ("rollup", "merged_k", u64((1 << 63) + 1), "merged_k", "outside"),
    ("rollup", "merged", bitmap(bytes(9)), "merged", "9 bytes"),
    ("rollup", "key", pack([0.0]), "key", "float"),
]


@pytest.mark.parametrize(("kind", "changed", "raw", "field", "problem"), REFUSED)
def test_refusals(kind: str, changed: str, raw: bytes, field: str, problem: str) -> None:
    error = refusal(altered(BASE[kind], **{changed: raw}))
    assert (error.field, problem in error.problem) == (field, True), error


def test_a_later_version_is_named_even_if_it_is_laid_out_differently() -> None:
    later = b"\x93" + u64(4) + b"\x81\xa1a\xc7\x00\x05" + b"\xc0"
    assert refusal(later).problem == "4 is unknown; this reader knows version 1, 2, 3"


def test_counts_over_the_number_of_releases_by_one_bit() -> None:
    planes = bitmap(bytes(8) + b"\x01" + bytes(7))
    assert codec.decode(altered(ROLLUP, released=u64(2), planes=planes))
    over = bitmap(b"\x01" + bytes(7) + b"\x01" + bytes(7))
    assert refusal(altered(ROLLUP, released=u64(2), planes=over)).field == "planes"


NOT_RECORDS = {
    "empty": b"",
    "nil": b"\xc0",
    "integer": b"\x01",
    "text": b"\xa3abc",
    "map": b"\x80",
    "empty array": b"\x90",
    "version only": b"\x91" + u64(1),
    "header of array16 only": b"\xdc",
    "array32 of 4 billion": b"\xdd\xff\xff\xff\xff" + u64(1),
    "text of 4 GiB": b"\x92" + u64(1) + b"\xdb\xff\xff\xff\xff",
    "bin of 4 GiB": b"\x92" + u64(1) + b"\xc6\xff\xff\xff\xff",
    "map of 4 billion": b"\x92" + u64(1) + b"\xdf\xff\xff\xff\xff",
    "many small arrays": b"\x92" + u64(1) + b"\xdc\x00\x40" * 200,
    "deep": b"\x91" * 200_000,
    "deep and complete": b"\x92" + u64(1) + b"\x91" * 900 + b"\xc0",
    "timestamp": b"\x92" + u64(1) + b"\xd6\xff\x00\x00\x00\x00",
    "trailing": RELEASE + b"\x00",
    "twice": RELEASE + RELEASE,
    "leading": b"\x00" + RELEASE,
}


@pytest.mark.parametrize("name", NOT_RECORDS)
def test_what_is_no_record_is_refused_and_allocates_little(name: str) -> None:
    tracemalloc.start()
    try:
        error = refusal(NOT_RECORDS[name])
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert error.field in ("record", "version", "kind")


@pytest.mark.parametrize("data", [None, "text", bytearray(RELEASE), memoryview(RELEASE), 5, [RELEASE]])
def test_only_bytes_are_read(data: object) -> None:
    assert "expected bytes" in refusal(data).problem


def test_more_than_64_mib_is_refused_unread() -> None:
    assert "at most 67108864" in refusal(bytes((64 << 20) + 1)).problem


def test_no_refusal_echoes_a_key() -> None:
    secret = "a-key-nobody-may-see"
    for data in (
        altered(RELEASE, key=pack([secret, True])),
        altered(RELEASE, key=pack([secret])),
        altered(RELEASE, key=pack([secret]))[:-1],
        altered(RELEASE, key=pack([secret]) + b"\xc0"),
        altered(RELEASE, key=pack([secret.encode() + b"\xff"]).replace(b"\xc4", b"\xd9")),
        altered(RELEASE, pipeline=pack(secret.upper())),
    ):
        error = refusal(data)
        assert secret not in str(error).lower()
        assert error.__context__ is None


def _bad_tally() -> Tally:
    return Tally(SHAPE, 1 << 63, "xxh64", 3, np.zeros((4, 16), np.int32))


UNWRITABLE = [
    (release(SHAPE), {"epoch": True}, "epoch"),
    (release(SHAPE), {"epoch": np.int64(1)}, "epoch"),
    (release(SHAPE), {"pipeline": b"visits"}, "pipeline"),
    (release(SHAPE), {"partition": -1}, "partition"),
    (release(SHAPE), {"window": Window(5, 5)}, "end_ms"),
    (release(SHAPE), {"window": Window(-1, 5)}, "start_ms"),
    (release(SHAPE), {"window": Window(0, 1 << 63)}, "end_ms"),
    (release(SHAPE), {"window": Window(0.0, 5)}, "start_ms"),  # type: ignore[arg-type]
    (release(SHAPE), {"unit": None}, "unit"),
    (release(SHAPE), {"key": "/pricing"}, "key"),
    (release(SHAPE), {"key": b"/pricing"}, "key"),
    (release(SHAPE), {"key": b""}, "key"),
    (release(SHAPE), {"sketch": sketch(SHAPE, k=1 << 63)}, "k"),
    (release(SHAPE), {"sketch": replace(sketch(SHAPE), hash="BLAKE2b")}, "hash"),
    (marker(), {"through_ms": START_MS}, "through_ms"),
    (marker(), {"fingerprint": None}, "fingerprint"),
    (rollup(SHAPE), {"complete": 1}, "complete"),
    (rollup(SHAPE), {"key": b"/pricing"}, "key"),
    (rollup(SHAPE), {"windows": 2}, "windows"),
    (rollup(SHAPE), {"released": 2}, "released"),
    (rollup(SHAPE), {"released": 4}, "released"),
    (rollup(SHAPE), {"decided": -1}, "decided"),
    (rollup(SHAPE), {"value": 3}, "value"),
    (rollup(SHAPE), {"status": "fine"}, "status"),
    (rollup(SHAPE), {"grain": ["hour"]}, "grain"),
    (rollup(SHAPE), {"window": Window(START_MS + 1, START_MS + 1 + HOUR_MS)}, "start_ms"),
    (rollup(SHAPE), {"merged": sketch(SketchShape(16, 3))}, "merged"),
    (rollup(SHAPE), {"merged": replace(sketch(SHAPE), hash="other")}, "merged"),
    (rollup(SHAPE), {"tally": _bad_tally()}, "k"),
]


@pytest.mark.parametrize(("record", "changes", "field"), UNWRITABLE)
def test_what_could_not_be_read_cannot_be_made(record: codec.WireRecord, changes: dict, field: str) -> None:
    with pytest.raises(FormatError) as caught:
        replace(record, **changes)
    assert caught.value.field == field


@pytest.mark.parametrize("hours", [22, 23, 24, 25, 26, 23.5, 24.5])
def test_days_of_every_length_in_use(hours: float) -> None:
    window = Window(START_MS, START_MS + int(hours * HOUR_MS))
    day = replace(rollup(SHAPE), grain="day", window=window, zone="America/Argentina/Buenos_Aires")
    assert codec.decode(codec.encode(day)) == day


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Etc/GMT+5", "America/Port-au-Prince", "EST5EDT"])
def test_zones(zone: str) -> None:
    record = replace(rollup(SHAPE), zone=zone)
    assert codec.decode_rollup(codec.encode(record)).zone == zone
