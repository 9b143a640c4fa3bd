"""The compiled kernel answers for a record only if Python would say the same of it, and never fails for its bytes.

Each case is read by a NativeExtractor and by a PythonExtractor, over two tables, several calls in a row. All columns,
new keys, the tables and the class of an error are compared.
"""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import lz4.block
import lz4.frame
import numpy as np
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.codec import snappy_encode
from kafka.errors import CorruptRecordError
from support.json_records import NOW_S, SCHEMAS, TEXT_TIMES, documents, good, spoiled
from support.key_tables import table_of
from support.wire_batches import batch_of, handed_on, record, stored

from sfm_stream import kernels
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.native_extractor import NativeExtractor, plain_records
from sfm_stream.kernels import ColumnsOfRecords, PlainRecords
from sfm_stream.sketch.hashing import XXH64
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.types import EventColumns, RecordBatch

SHAPE = SketchShape(512, 7)
CORPUS = (Path(__file__).parents[1] / "data/hostile.jsonl").read_bytes().split(b"\n")[:-1]
NATIVE = sorted(name for name, schema in SCHEMAS.items() if "%" not in schema.time_unit)
ENCODE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, gzip.compress),
    "snappy": (2, snappy.compress),
    "snappy of xerial": (2, snappy_encode),
    "lz4": (3, lz4.frame.compress),
    "lz4, linked blocks, checksums": (
        3,
        lambda data: lz4.frame.compress(
            data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, content_checksum=True, block_checksum=True, store_size=False
        ),
    ),
    "zstd": (4, zstandard.compress),
    "zstd of a stream": (4, lambda data: _streamed(zstandard.ZstdCompressor().compressobj(), data)),
}


def _streamed(compressor, data: bytes) -> bytes:
    return compressor.compress(data) + compressor.flush()


@pytest.fixture(autouse=True, scope="module")
def _native() -> None:
    if problem := kernels.why_not():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(problem)


def plain(schema: EventSchema) -> PlainRecords:
    found = plain_records(schema, SHAPE, XXH64)
    assert found is not None
    return found


def answer(reader: PlainRecords, raw: bytes, most_bytes: int) -> ColumnsOfRecords | None:
    """What the kernel says of one batch where no key is open."""
    return reader.batches([raw], [0], most_bytes, table_of("native").index)


class Pair:
    """Both extractors of a schema, which must say the same in call after call."""

    def __init__(self, schema: EventSchema, declared: Sequence[object] | None = None) -> None:
        native, python = (table_of(kernel, declared, frozenset([7, "b"])) for kernel in ("native", "python"))  # type: ignore[arg-type]
        self.tables = native, python
        self.extractors: list[Extractor] = [
            NativeExtractor(plain(schema), PythonExtractor(JsonFormat(schema), SHAPE, keys=native)),
            PythonExtractor(JsonFormat(schema), SHAPE, keys=python),
        ]

    def compare(self, make: Callable[[], list[RecordBatch]]) -> EventColumns | None:
        """The columns of both; None where both raise the same class of error."""
        found: list[EventColumns | type[Exception]] = []
        for extractor in self.extractors:
            try:
                found.append(extractor.columns(make()))
            except CorruptRecordError as error:
                found.append(type(error))
        native, python = found
        if isinstance(native, type) or isinstance(python, type):
            assert native is python
            return None
        for name in ("offsets", "arrival_ms", "event_ms", "key_ids", "cells", "reasons"):
            ours, theirs = getattr(native, name), getattr(python, name)
            assert ours.dtype == theirs.dtype, name
            assert ours.tolist() == theirs.tolist(), name
        assert native.new_keys == python.new_keys
        assert (native.partition, native.next_offset) == (python.partition, python.next_offset)
        assert [*map(repr, self.tables[0])] == [*map(repr, self.tables[1])]
        return native


def wire(raws: list[bytes], first: int = 0) -> Callable[[], list[RecordBatch]]:
    """Batches that are handed on one by one, each from this offset on."""
    return lambda: [handed_on(raw, first=first) for raw in raws]


def joined(raws: list[bytes], first: int = 0) -> Callable[[], list[RecordBatch]]:
    """The same handed on together, twice."""
    return lambda: [handed_on(*raws, first=first)] * 2


def stretched(raws: list[bytes], first: int = 0) -> Callable[[], list[RecordBatch]]:
    """The same one behind the other in few texts, as the client finds them in a fetch."""
    return lambda: [handed_on(b"".join(raws), first=first), handed_on(raws[0], b"".join(raws), first=first)]


def encoded(records: Sequence[bytes | None], stamps: Sequence[int], codec: str, first: int = 0) -> bytes:
    data = b"".join(record(at, ms, each) for at, (each, ms) in enumerate(zip(records, stamps, strict=True)))
    number, encode = ENCODE[codec]
    return stored(encode(data), len(records), first, number)


hostile = documents.map(lambda text: text.encode("utf-8", "surrogatepass"))


@settings(max_examples=300)
@given(st.data(), st.sampled_from(NATIVE), st.sampled_from(sorted(ENCODE)), st.booleans())
def test_batches_of_good_and_hostile_records(data, name, codec, fixed):
    schema = SCHEMAS[name]
    pair = Pair(schema, [1, "a"] if fixed else None)
    records = st.lists(
        st.one_of(st.integers(0, 99).map(lambda n: good(schema, n)), spoiled(schema), hostile), max_size=8
    )
    for call in range(data.draw(st.integers(1, 3))):
        raws = []
        for _ in range(data.draw(st.integers(1, 3))):
            drawn = data.draw(records)
            stamps = data.draw(
                st.lists(st.sampled_from([-1, 0, NOW_S * 1000]), min_size=len(drawn), max_size=len(drawn))
            )
            raws.append(encoded(drawn, stamps, codec, 100 * call + 10 * len(raws)))
        pair.compare(
            data.draw(st.sampled_from([wire, joined, stretched]))(raws, 100 * call + data.draw(st.integers(0, 5)))
        )


@settings(max_examples=200)
@given(st.data(), st.sampled_from([name for name in NATIVE if SCHEMAS[name].time is not None]), st.integers(1, 300))
def test_lines_of_good_and_hostile_records(data, name, most_bytes):
    schema = SCHEMAS[name]
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r\n", b"", b"\r"])
    line = st.one_of(st.integers(0, 99).map(lambda n: good(schema, n)), spoiled(schema).map(lambda each: each or b""))
    pieces = data.draw(st.lists(st.tuples(line | st.binary(max_size=9), ends), max_size=8))
    text = b"".join(piece for pair in pieces for piece in pair)
    for most in (most_bytes, 1 << 20):
        Pair(schema).compare(lambda most=most: [LineBatch(text, 5, 5 + len(text), most)] * 2)  # type: ignore[misc]


@pytest.mark.parametrize("name", NATIVE)
def test_good_records_are_answered_for(name):
    """All of a schema are, but for times without an offset in a zone that keeps changing its clock."""
    schema = SCHEMAS[name]
    records = [good(schema, number) for number in range(20)]
    odd = answer(plain(schema), encoded(records, [NOW_S * 1000] * 20, "none"), 1 << 20)[-1]  # type: ignore[index]
    assert len(odd) == (20 if name == "local" else 0)


@pytest.mark.parametrize("name", ["zone names", "pattern"])
def test_patterns_of_times_are_for_python(name):
    assert plain_records(SCHEMAS[name], SHAPE, XXH64) is None


def mutated(draw: random.Random, line: bytes) -> bytes:
    """A record with some bytes changed, moved or taken out; sometimes none."""
    spoilt = bytearray(line)
    for _ in range(draw.choice([0, 1, 1, 1, 2, 5])):
        if not spoilt:
            break
        at = draw.randrange(len(spoilt))
        change = draw.randrange(5)
        if change == 0:
            spoilt[at] = draw.choice(b'{}[]",:\\0123456789.eE+-tfnu \t\n\r\x00\x1f\x7f\x80\xc3\xed\xff')
        elif change == 1:
            del spoilt[at : at + draw.randrange(1, 9)]
        elif change == 2:
            spoilt[at:at] = spoilt[draw.randrange(len(spoilt)) :][: draw.randrange(1, 30)]
        elif change == 3:
            spoilt[at:at] = draw.choice(
                [
                    b"\\u00e9",
                    b"\\/",
                    b"\\",
                    b"\xc3\xa9",
                    b"\xed\xa0\x80",
                    b"1e3",
                    b"-",
                    b"00",
                    b"[" * 260,
                    b"null",
                    b'""',
                ]
            )
        else:
            spoilt[at] ^= 1 << draw.randrange(8)
    return bytes(spoilt)


@pytest.mark.parametrize("name", NATIVE)
def test_mutated_records(name):
    schema, draw = SCHEMAS[name], random.Random(name)
    seeds = [good(schema, number) for number in range(30)] * 9 + [line for line in CORPUS if len(line) < 2000]
    if schema.time_unit == "iso8601":
        texts = [text.encode() for text in TEXT_TIMES]
        seeds += [b'{"page":1,"user":2,"at":"%b"}' % text for text in texts for _ in range(8)]
    pair = Pair(schema)
    answered = 0
    for _ in range(12):
        records = [mutated(draw, draw.choice(seeds)) for _ in range(400)]
        raw = encoded(records, [NOW_S * 1000 + at for at in range(400)], "none")
        columns = pair.compare(wire([raw]))
        assert columns is not None
        answered += 400 - len(answer(plain(schema), raw, 1 << 30)[-1])  # type: ignore[index]
    assert answered > (5 if name == "local" else 360)


FLOATS = st.decimals(0, 2 * NOW_S, places=9).map(str) | st.floats(0, 2e18).map(repr) | st.integers(0, 10**20).map(str)


@settings(max_examples=500)
@given(
    st.sampled_from(["plain", "seconds", "micros", "nanos"]), st.lists(FLOATS, min_size=1, max_size=20), st.booleans()
)
def test_numbers_as_times(name, numbers, quoted):
    spelled = [f'"{number}"' if quoted else number for number in numbers]
    records = [f'{{"page":1,"user":"u","at":{number}}}'.encode() for number in spelled]
    Pair(SCHEMAS[name]).compare(wire([encoded(records, [0] * len(records), "none")]))


ISO = st.builds(
    "{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}{}{}".format,
    st.integers(2019, 2028) | st.integers(0, 9999),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from("TT t_"),
    st.integers(0, 25),
    st.integers(0, 61),
    st.integers(0, 61),
    st.sampled_from(["", ".", ".1", ".12", ".123", ".9999", ".123456", ".999999999", ".1234567890", ",5", ".1x"]),
    st.sampled_from(["Z", "Z", "", "z", "+01:00", "-23:59", "+24:00", "+0100", "+01", "-00:00", "+01:00:30", " Z"]),
)


@settings(max_examples=500)
@given(
    st.sampled_from(["iso", "naive", "local"]), st.lists(ISO | st.datetimes().map(lambda t: t.isoformat()), min_size=1)
)
def test_iso_times(name, texts):
    records = [f'{{"page":1,"user":"u","at":"{text}"}}'.encode() for text in texts]
    Pair(SCHEMAS[name]).compare(wire([encoded(records, [0] * len(records), "none")]))


@settings(max_examples=300)
@given(st.data(), st.sampled_from(sorted(ENCODE)))
def test_damaged_batches(data, codec):
    """Changed, cut or lengthened anywhere: the same error as Python's, or the same columns."""
    schema = SCHEMAS["plain"]
    records = [good(schema, number) for number in range(data.draw(st.integers(0, 60)))]
    raw = bytearray(encoded(records, [NOW_S * 1000] * len(records), codec))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(16, len(raw)))
        raw[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=10))
    good_one = encoded(records, [0] * len(records), codec)
    Pair(schema).compare(wire([bytes(raw), good_one]))
    Pair(schema).compare(joined([good_one, bytes(raw), good_one]))
    Pair(schema).compare(stretched([good_one, bytes(raw), good_one]))


@settings(max_examples=300)
@given(st.data(), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_damaged_stretches(data, counts):
    """Many small batches one behind the other, changed, cut or lengthened anywhere, lengths of batches among it."""
    schema = SCHEMAS["plain"]
    raws = [encoded([good(schema, at)] * count, [0] * count, "none", 4 * at) for at, count in enumerate(counts)]
    stretch, begins = bytearray(b"".join(raws)), np.cumsum([0, *map(len, raws)]).tolist()
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.sampled_from(begins)) + data.draw(st.integers(0, 70))
        stretch[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=5))
    first = data.draw(st.integers(0, 50))
    Pair(schema).compare(lambda: [handed_on(bytes(stretch), first=first)] * 2)


@pytest.mark.parametrize("codec", sorted(ENCODE.keys() - {"none"}))
@pytest.mark.parametrize("size", [0, 1, 1_000, 100_000])
def test_a_batch_decompresses_up_to_any_bound_and_no_further(codec, size):
    data = record(0, 0, b"x" * size)
    number, encode = ENCODE[codec]
    raw, reader = stored(encode(data), 1, 0, number), plain(SCHEMAS["plain"])
    assert answer(reader, raw, len(data)) == answer(reader, stored(data, 1), 0)
    assert answer(reader, raw, len(data) - 1) is None
    assert answer(reader, raw, 0) is None


@settings(max_examples=200)
@given(st.lists(st.integers(-2, 6), min_size=1, max_size=5), st.integers(-3, 12), st.booleans(), st.integers(-1, 5))
def test_gaps_offsets_and_stamps_of_the_broker(steps, first, appended, more):
    """Compacted batches, whose offsets must ascend; and batches begun in the middle."""
    deltas = np.cumsum(steps).tolist()
    records = [record(delta, 5, good(SCHEMAS["record time"], at), b"k") for at, delta in enumerate(deltas)]
    raw = bytearray(batch_of(records, 3, 8 if appended else 0, NOW_S * 1000))
    raw[23:27] = (len(records) + more).to_bytes(4, "big")
    if min(steps[1:], default=1) > 0 or more == -1:
        Pair(SCHEMAS["record time"]).compare(wire([bytes(raw)], first))
        Pair(SCHEMAS["record time"]).compare(stretched([bytes(raw)] * 3, first))


def test_nulls_and_headers():
    """Headers are passed over by the length of the record, whatever they hold."""
    value = good(SCHEMAS["plain"], 1)
    records = [
        record(0, 0, None),
        record(1, 0, value, b"k", b"\x04\x02a\x02b\x02c\x01"),
        record(2, 0, value, None, b"\xff" * 9),
    ]
    columns = Pair(SCHEMAS["plain"]).compare(wire([batch_of(records)]))
    assert columns is not None
    assert columns.reasons.tolist() == [1, 0, 0]


@pytest.mark.parametrize("codec", sorted(ENCODE))
def test_what_decompresses_to_more_than_allowed_is_not_answered_for(codec):
    schema = SCHEMAS["plain"]
    records = [good(schema, number) for number in range(500)]
    raw = encoded(records, [0] * 500, codec)
    size = len(b"".join(record(at, 0, each) for at, each in enumerate(records)))
    assert answer(plain(schema), raw, size) is not None
    assert (answer(plain(schema), raw, size - 1) is None) == (codec != "none")


@pytest.mark.parametrize("codec", sorted(ENCODE))
def test_a_part_of_a_compressed_batch_is_not_answered_for(codec):
    """Nor is what has something behind it."""
    records = [good(SCHEMAS["plain"], number) for number in range(50)]
    raw = encoded(records, [0] * 50, codec)
    for spoilt in (*(raw[:at] for at in range(0, len(raw), 7)), raw + b"\0", raw + raw[61:]):
        assert answer(plain(SCHEMAS["plain"]), spoilt, 1 << 20) is None


def test_keys_that_are_open_known_and_new_beside_odd_rows():
    """Many distinct keys, each seen twice, beside odd rows: ids and new keys are as Python gives them."""
    pair = Pair(SCHEMAS["seconds"])
    pages = [f'"k{at % 700}"' if at % 3 else f"{at % 500}" for at in range(3000)]
    records = [f'{{"page":{page},"user":1.5,"at":{NOW_S}}}'.encode() for page in pages[:100]]
    records += [f'{{"page":{page},"user":{at},"at":{NOW_S}}}'.encode() for at, page in enumerate(pages)]
    for start in range(0, len(records), 1100):
        some = records[start : start + 1100]
        pair.compare(wire([encoded(some, [0] * len(some), "lz4")]))


PAGES = (
    st.integers(-3, 3).map(str) | st.text("ab\u00e9", max_size=2).map(lambda text: f'"{text}"') | st.just(r'"\u0061"')
)


@settings(max_examples=150)
@given(st.data(), st.sampled_from(["plain", "record time"]), st.none() | st.just([1, "a", "bb"]), st.booleans())
def test_keys_that_come_and_go_between_calls(data, name, declared, lines):
    """Some windows close and their keys are freed, whose ids others then have. A key may be of two parts."""
    lines = lines and name != "record time"
    pair = Pair(SCHEMAS[name], declared)
    for _ in range(data.draw(st.integers(1, 5))):
        pages = data.draw(st.lists(PAGES, min_size=1, max_size=20)) * data.draw(st.sampled_from([1, 10]))
        users = data.draw(st.sampled_from(['"u"', "1.5"]))
        records = [f'{{"page":{page},"user":{users},"at":{NOW_S * 1000}}}'.encode() for page in pages]
        text = b"\n".join([*records, b""])
        raw = encoded(records, [NOW_S * 1000] * len(records), "none")
        pair.compare((lambda text=text: [LineBatch(text, 0, len(text))]) if lines else wire([raw]))  # type: ignore[misc]
        if declared is None:
            ids = [pair.tables[0].id_of(key) for key in pair.tables[0]]
            live = np.array(data.draw(st.lists(st.sampled_from(ids))) if ids else [], np.int32)
            for table in pair.tables:
                table.retain(live)


def test_known_keys_come_back_as_ids_and_new_ones_once():
    """No object is made of a key that the table holds."""
    table = table_of("native", ["a", 2])
    records = [f'{{"page":{page},"user":1,"at":{NOW_S * 1000}}}'.encode() for page in ('"a"', 7, 2, '"b"', 7, "{}")]
    said = plain(SCHEMAS["plain"]).batches([encoded(records, [0] * 6, "none")], [0], 1 << 20, table.index)
    assert said is not None
    *_, key_ids, keys, first_rows, odd, _ = said
    assert np.frombuffer(key_ids, np.int32).tolist() == [0, -1, 1, -2, -1, -1]
    assert (keys, np.frombuffer(first_rows, np.int32).tolist()) == ([7, "b"], [1, 3])
    assert np.frombuffer(odd, np.int32).tolist() == [5]
    assert list(table) == ["a", 2]
