"""Version 2: what comes back, which version a record is written in, and every refusal of its own fields."""

from __future__ import annotations

import decimal
import struct
from dataclasses import replace
from decimal import Decimal

import msgpack
import numpy as np
import pytest
from reference.naive_wire import read
from reference.wire_samples import (
    HOUR_MS,
    START_MS,
    altered,
    counted_release,
    marker,
    raw_rollup,
    release,
    rollup,
    sized_rollup,
    sketch,
    span_marker,
    u64,
)

from sfm_stream.errors import FormatError
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.window_sizes import WindowSizes
from sfm_stream.types import Window
from sfm_stream.wire import codec
from sfm_stream.wire.keys import encode_key

SHAPE = SketchShape(16, 4)
DAY_MS = 24 * HOUR_MS
RELEASE, MARKER, ROLLUP = (
    codec.encode(record) for record in (counted_release(SHAPE), span_marker(), sized_rollup(SHAPE))
)
RAW, PLAIN = codec.encode(raw_rollup(SHAPE)), codec.encode(counted_release(SHAPE, count=None))
BASE = {"release": RELEASE, "plain": PLAIN, "marker": MARKER, "rollup": ROLLUP, "raw": RAW}


def pack(value: object) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


def i64(value: int) -> bytes:
    return struct.pack(">Bq", 0xD3, value)


def words(code: str, *values: int) -> bytes:
    content = struct.pack(f">{len(values)}{code}", *values)
    return b"\xc6" + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("value", [0, 1, -1, 127, -128, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_a_noisy_count_is_any_64_bit_integer_in_one_width(value: int) -> None:
    record = counted_release(SHAPE, count=NoisyCount(value, Decimal("0.1")))
    data = codec.encode(record)
    assert codec.decode(data) == record
    assert len(data) == len(codec.encode(counted_release(SHAPE, count=NoisyCount(7, Decimal("0.1")))))
    assert (read(data)["count"], read(data)["count_epsilon"]) == (value, Decimal("0.1"))


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [("0.1", "0.1"), ("0.10", "0.1"), ("2", "2"), ("1E+1", "10"), ("2.0", "2"), ("9.765625E-4", "0.0009765625")],
)
def test_an_epsilon_has_one_text(epsilon: str, text: str) -> None:
    record = counted_release(SHAPE, count=NoisyCount(3, Decimal(epsilon)))
    with decimal.localcontext() as context:
        context.prec = 1  # whatever the caller's arithmetic is
        data = codec.encode(record)
        assert codec.decode(data) == record
    assert msgpack.unpackb(data)[-3] == text


def test_only_a_record_that_names_its_span_is_of_version_2() -> None:
    assert {name: read(data)["version"] for name, data in BASE.items()} == dict.fromkeys(BASE, 2)
    for plain in (release(SHAPE), marker(), rollup(SHAPE)):
        assert read(codec.encode(plain))["version"] == 1
    named = replace(release(SHAPE), span="1m")
    assert named.release_id == release(SHAPE).release_id
    assert codec.decode(codec.encode(named)) == named != release(SHAPE)


@pytest.mark.parametrize("count_epsilon", [None, Decimal("0.25")])
@pytest.mark.parametrize("releases", [1, 2, 3, 24, 300])
def test_what_each_release_of_a_rollup_says_comes_back(releases: int, count_epsilon: Decimal | None) -> None:
    record = sized_rollup(SHAPE, releases=releases, count_epsilon=count_epsilon)
    data = codec.encode(record)
    found = codec.decode_rollup(data)
    assert (found, found.tally.sizes) == (record, record.tally.sizes)
    assert read(data)["ones"] == record.tally.sizes.ones.tolist()  # type: ignore[union-attr]
    assert read(data)["counts"] == ([] if count_epsilon is None else [c.value for c in record.tally.sizes.counts])  # type: ignore[union-attr]


def test_a_merged_rollup_may_leave_out_what_its_releases_say() -> None:
    record = sized_rollup(SHAPE)
    record = replace(record, tally=replace(record.tally, sizes=None))
    found = codec.decode_rollup(codec.encode(record))
    assert (found, found.tally.sizes, found.count_epsilon) == (record, None, Decimal("0.25"))


def test_version_1_has_no_place_for_what_each_release_says() -> None:
    """It is left out there, as ever; a noisy count would be lost, and is refused."""
    parts = [sketch(SHAPE, name) for name in ("a", "b", "c")]
    record = replace(rollup(SHAPE), tally=Tally.of(parts))
    assert codec.decode_rollup(codec.encode(record)).tally.sizes is None
    counted = Tally.of([replace(part, count=NoisyCount(1, Decimal(1))) for part in parts])
    with pytest.raises(FormatError, match="count_epsilon: version 1"):
        replace(record, tally=counted)


SPANS = [
    ("1ms", 1),
    ("500ms", 500),
    ("30s", 30_000),
    ("15m", 15 * 60_000),
    ("1h", HOUR_MS),
    ("hour", HOUR_MS),
    ("day", 22 * HOUR_MS),
    ("day", 26 * HOUR_MS),
    ("week", 6 * DAY_MS),
    ("week", 7 * DAY_MS + HOUR_MS),
    ("month", 27 * DAY_MS),
    ("month", 31 * DAY_MS + HOUR_MS),
]


@pytest.mark.parametrize(("span", "length_ms"), SPANS)
def test_spans(span: str, length_ms: int) -> None:
    window = Window(START_MS, START_MS + length_ms)
    for record in (
        replace(counted_release(SHAPE), window=window, span=span),
        replace(span_marker(), through_ms=window.end_ms, window_ms=length_ms, span=span, spans=(span, "1s")),
    ):
        assert codec.decode(codec.encode(record)) == record


@pytest.mark.parametrize("cut", [Decimal("0.0009765624"), Decimal("16.1"), Decimal("1." + 63 * "1")])
def test_what_no_flip_would_spend_on_a_count_cannot_be_written(cut: Decimal) -> None:
    with pytest.raises(FormatError, match="count_epsilon"):
        counted_release(SHAPE, count=NoisyCount(1, cut))


REFUSED = [
    ("release", "kind", u64(4), "kind", "4 is unknown; version 2 knows 1, 2, 3"),
    ("release", "version", u64(1), "record", "19 fields where this kind has 16"),
    ("release", "id", pack(bytes(16)), "id", "is not the id"),
    ("release", "span", b"\xc0", "span", "expected str"),
    ("release", "span", pack(""), "span", "not the name of the span of a window of 1m"),
    ("release", "span", pack("60s"), "span", "not the name"),
    ("release", "span", pack("01m"), "span", "not the name"),
    ("release", "span", pack("hour"), "span", "a span of 1m is not one hour"),
    ("release", "span", pack("year"), "span", "not the name"),
    ("release", "span", b"\xd9\x021m", "span", "one form"),
    ("release", "count_epsilon", b"\xc0", "count_epsilon", "expected str"),
    ("release", "count_epsilon", pack(""), "count", "one form"),
    ("release", "count_epsilon", pack("0"), "count_epsilon", "outside"),
    ("release", "count_epsilon", pack("0.0001"), "count_epsilon", "outside"),
    ("release", "count_epsilon", pack("17"), "count_epsilon", "outside"),
    ("release", "count_epsilon", pack("0.250"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack(".25"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("00.25"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("2.5E-1"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("-0.25"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("NaN"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("0.25\n"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("\u0661"), "count_epsilon", "does not match"),
    ("release", "count_epsilon", pack("1." + 63 * "1"), "count_epsilon", "more than 64"),
    ("release", "count_epsilon", pack("1" * 60_000), "count_epsilon", ""),
    ("release", "count", pack(-5), "count", "one form"),
    ("release", "count", u64(5), "count", "one form"),
    ("release", "count", u64(1 << 63), "count", "above 2^63"),
    ("release", "count", b"\xc3", "count", "expected int64, got bool"),
    ("release", "count", b"\xcb" + bytes(8), "count", "expected int64"),
    ("plain", "count", i64(1), "count", "one form"),
    ("plain", "count", i64(-1), "count", "one form"),
    ("marker", "span", pack("day"), "span", "a span of 1h is not one day"),
    ("marker", "span", pack("week"), "span", "not one week"),
    ("marker", "span", pack("1h"), "spans", "1h is not among them"),
    ("marker", "spans", pack(""), "spans", "does not match"),
    ("marker", "spans", pack("1m,day"), "spans", "hour is not among them"),
    ("marker", "spans", pack("1m,hour,1m"), "spans", "named twice"),
    ("marker", "spans", pack("1m, hour"), "spans", "does not match"),
    ("marker", "spans", b"\xd9\x04hour", "spans", "one form"),
    ("marker", "through_ms", u64(START_MS + HOUR_MS + 1), "window_ms", "does not divide"),
    ("rollup", "origin", pack(""), "origin", "raw, merged"),
    ("rollup", "origin", pack("raw"), "span", "not the name of the span of a window of 1h"),
    ("rollup", "span", pack("a day"), "span", "does not match"),
    ("rollup", "span", pack("1d"), "span", "does not match"),
    ("rollup", "grain", pack("week"), "end_ms", "a span of 1h is not one week"),
    ("rollup", "grain", pack("year"), "grain", "quarter, hour, day, week, month"),
    ("rollup", "ones", words("I", *range(11)), "ones", "44 bytes where the header asks for 48"),
    ("rollup", "ones", words("I", *[17] * 12), "ones", "17 ones in a level of 16 buckets"),
    ("rollup", "ones", words("I", *[(1 << 32) - 1] * 12), "ones", "4294967295 ones"),
    ("rollup", "ones", words("I", *[1] * 12), "ones", "not those that it counts"),
    ("rollup", "ones", b"\xc6" + bytes(4), "counts", "one form"),
    ("rollup", "counts", words("q", 1, 2), "counts", "16 bytes where the header asks for 24"),
    ("rollup", "counts", b"\xc6" + bytes(4), "counts", "0 bytes"),
    ("rollup", "count_epsilon", pack(""), "counts", "one form"),
    ("rollup", "count_epsilon", pack("0.1234567890" * 6), "count_epsilon", "does not match"),
    ("rollup", "released", u64(2), "planes", ""),
    ("raw", "origin", pack("merged"), "grain", "not one of quarter, hour, day"),
    ("raw", "windows", u64(2), "origin", "of one window"),
    ("raw", "span", pack("week"), "span", "a span of 31d is not one week"),
    ("raw", "span", pack("1h"), "span", "not the name"),
    ("raw", "ones", b"\xc6" + bytes(4), "origin", "says what it counted"),
]


@pytest.mark.parametrize(("kind", "changed", "raw", "field", "problem"), REFUSED)
def test_refusals(kind: str, changed: str, raw: bytes, field: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        codec.decode(altered(BASE[kind], **{changed: raw}))
    assert (caught.value.field, problem in caught.value.problem) == (field, True), caught.value


def test_a_record_of_a_later_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(FormatError) as caught:
        codec.decode_at("topic visits.sketches, partition 0, offset 7", altered(RELEASE, version=u64(4)))
    assert str(caught.value) == (
        "topic visits.sketches, partition 0, offset 7: version: 4 is unknown; this reader knows version 1, 2, 3; "
        "another release of sfm-stream wrote the record: use that one, or a newer one. Nothing was changed"
    )


def test_rows_of_what_releases_say_have_one_order() -> None:
    """The rows of the sample differ, so exchanged they are the same releases in another form."""
    ones = sized_rollup(SHAPE).tally.sizes.ones  # type: ignore[union-attr]
    assert len(np.unique(ones, axis=0)) == 3
    exchanged = altered(ROLLUP, ones=words("I", *ones[::-1].reshape(-1).tolist()))
    with pytest.raises(FormatError, match="ones: not in the one form"):
        codec.decode(exchanged)


def test_a_marker_of_calendar_spans_is_of_one_window() -> None:
    days = {
        "start_ms": START_MS,
        "through_ms": START_MS + 2 * DAY_MS,
        "window_ms": DAY_MS,
        "span": "day",
        "spans": ("day",),
    }
    with pytest.raises(FormatError, match="through_ms: a marker of one day"):
        replace(span_marker(), **days)
    hours = replace(span_marker(), through_ms=START_MS + 2 * HOUR_MS)
    assert codec.decode(codec.encode(hours)) == hours


UNWRITABLE = [
    (counted_release(SHAPE), {"span": None}, "count"),
    (counted_release(SHAPE), {"span": 1}, "span"),
    (counted_release(SHAPE), {"window": Window(START_MS, START_MS + 7)}, "span"),
    (
        counted_release(SHAPE),
        {"span": "hour", "window": Window(START_MS + 1, START_MS + 1 + HOUR_MS)},
        "start_ms",
    ),
    (span_marker(), {"span": b"hour"}, "span"),
    (span_marker(), {"span": None}, "spans"),
    (span_marker(), {"spans": ()}, "spans"),
    (span_marker(), {"spans": ["hour"]}, "spans"),
    (span_marker(), {"spans": ("hour", 1)}, "spans"),
    (sized_rollup(SHAPE), {"origin": None}, "origin"),
    (sized_rollup(SHAPE), {"span": None}, "origin"),
    (sized_rollup(SHAPE), {"origin": "other"}, "origin"),
    (sized_rollup(SHAPE), {"origin": None, "span": None}, "count_epsilon"),
    (sized_rollup(SHAPE), {"count_epsilon": None}, "count_epsilon"),
    (sized_rollup(SHAPE), {"count_epsilon": Decimal(1)}, "count_epsilon"),
    (sized_rollup(SHAPE, count_epsilon=None), {"count_epsilon": Decimal(1)}, "count_epsilon"),
    (rollup(SHAPE), {"count_epsilon": Decimal(1)}, "count_epsilon"),
    (rollup(SHAPE), {"span": "1m"}, "origin"),
    (rollup(SHAPE), {"origin": "merged"}, "origin"),
    (rollup(SHAPE), {"grain": "week", "window": Window(START_MS, START_MS + 7 * DAY_MS)}, "grain"),
]


@pytest.mark.parametrize(("record", "changes", "field"), UNWRITABLE)
def test_what_could_not_be_read_cannot_be_made(record: codec.WireRecord, changes: dict, field: str) -> None:
    with pytest.raises(FormatError) as caught:
        replace(record, **changes)
    assert caught.value.field == field


@pytest.mark.parametrize("others", [(None,), (NoisyCount(1, Decimal(2)),)])
def test_releases_that_were_not_counted_alike_have_no_record(others: tuple[NoisyCount | None]) -> None:
    record = sized_rollup(SHAPE)
    sizes = record.tally.sizes
    assert sizes is not None
    mixed = WindowSizes(sizes.ones, (*sizes.counts[:2], *others))
    with pytest.raises(FormatError, match="count_epsilon: not that of"):
        replace(record, tally=replace(record.tally, sizes=mixed))


def test_no_refusal_echoes_a_key() -> None:
    secret = "a-key-nobody-may-see"
    with pytest.raises(FormatError) as caught:
        codec.decode(altered(RELEASE, key=encode_key(secret)))
    assert secret not in str(caught.value)
