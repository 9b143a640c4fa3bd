"""Time and key of a record do not depend on its item: for no bytes whose quotes and brackets come in pairs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.test_extract_paths import rules
from reference.naive_extract import Refused, meaning, placed_by
from support.json_records import BAND, SCHEMAS, documents, good, objects, scalars, spoiled

from sfm_stream.events.event_schema import EventSchema, parse_path
from sfm_stream.events.event_time import TimeReader
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.framing import read_record
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import Reason

SHAPE = SketchShape(16, 2)
TIMED = {name: schema for name, schema in SCHEMAS.items() if schema.time is not None}
# An item that is the last member of an object in which something else is looked for.
TIMED["last"] = EventSchema(key=("page",), item="user.id", time="user.at", time_unit="ms", **BAND)
ITEM = "\x1a"
"""Stands for the item while a record is made; no other text of a record is this one."""

HOSTILE = [
    b'"Ann \\ud83d"',
    b'"\\udc00\\ud83d"',
    b'"\xff\xfe"',
    b"\xc3(",
    b'"' + b"x" * 5000 + b'"',
    b"NaN",
    b"-Infinity",
    b"[" * 300 + b"]" * 300,
    b'{"user":' * 300 + b"1" + b"}" * 300,
    b"1.",
    b"-",
    b"0123",
    b"Ann",
    b"'Ann'",
    b"",
    b" \x00 ",
    b'"\x01"',
    b'"\\q"',
    b'"{[:,"',
    b'"a" "b"',
    b'"at":1',
    b'x{"at":1}',
    b'{"at":1}["at":2,"at":3]',
    b"[,,]",
    b"[1}",
    b'{"page":[}"at":7]',
    b'"\\\\"',
    b'"\\""',
    b"true",
    b'["a"]',
    b"1e400",
    b"9" * 5000,
]
"""Items that no strict reader takes, and some that it takes for no item."""
balanced = st.recursive(
    st.one_of(st.sampled_from(HOSTILE), st.binary(max_size=6).map(lambda raw: raw.translate(None, b'"[]{},\n'))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: b"[" + b",".join(parts) + b"}"),
        st.lists(inner, max_size=3).map(lambda parts: b'{"at":' + b',"at":'.join(parts) + b"}"),
        st.lists(inner, min_size=2, max_size=2).map(b" ".join),
    ),
)


def fields(schema: EventSchema, record: bytes, scan: bool = False) -> tuple[int, Reason, object]:
    """The time of a record with its reason, and the key that repartitioning places it by."""
    reader = JsonFormat(schema)
    if scan:
        strict = reader._strict
        strict.read = lambda value: strict._scanned(Reason.MALFORMED, value)  # type: ignore[method-assign]
    extractor = PythonExtractor(reader, SHAPE, keys=KeyTable())
    return *TimeReader(schema).read(read_record(reader, record).time), repr(extractor.key_of(record))


@st.composite
def with_a_hole(draw: st.DrawFn, schema: EventSchema) -> tuple[bytes, bytes]:
    """What stands before and behind the item of a record that may have any other fault or further members."""
    document = json.loads(good(schema, draw(st.integers(0, 99))))
    node = document
    *outer, last = parse_path(schema.item)
    for name in outer:
        node = node[name]
    node[last] = ITEM
    record = json.dumps(document, ensure_ascii=draw(st.booleans())).encode()
    change = draw(st.integers(0, 4))
    if change == 0:
        extra = draw(objects(scalars))[1:].encode("utf-8", "surrogatepass")
        record = record[:-1] + b"," + extra if extra != b"}" else record
    elif change == 1:
        record = draw(st.sampled_from([b"\x00abcd", b"\xef\xbb\xbf", b"", b" "])) + record
        record += draw(st.sampled_from([b"}", b"x", b",", record, b"\xff"]))
    elif change == 2:
        other = draw(balanced)
        record = record.replace(b'"ballast": ', b'"ballast": ' + other + b" ")
    before, _, behind = record.partition(json.dumps(ITEM).encode())
    return before, behind


@settings(max_examples=400)
@given(st.data())
def test_an_item_of_any_content_leaves_time_and_key_as_if_it_were_blanked(data: st.DataObject) -> None:
    schema = TIMED[data.draw(st.sampled_from(sorted(TIMED)))]
    before, behind = data.draw(with_a_hole(schema))
    item = data.draw(balanced)
    assert fields(schema, before + item + behind) == fields(schema, before + b"null" + behind)


@pytest.mark.parametrize("name", sorted(TIMED))
@pytest.mark.parametrize("item", HOSTILE)
def test_each_hostile_item_leaves_the_time_and_the_key(name: str, item: bytes) -> None:
    schema = TIMED[name]
    whole = good(schema, 7)
    record = whole.replace(b'"u7"', item)
    time, reason, key = fields(schema, record)
    assert (time, reason, key) == fields(schema, whole)
    assert reason == Reason.OK
    assert key != "None"


@settings(max_examples=600)
@given(st.sampled_from(sorted(TIMED)), st.data())
def test_for_what_can_be_read_strictly_the_scan_gives_the_same(name: str, data: st.DataObject) -> None:
    schema = TIMED[name]
    whole = documents.map(lambda text: text.encode("utf-8", "surrogatepass"))
    record = data.draw(st.one_of(spoiled(schema), spoiled(schema), whole))
    strict = read_record(JsonFormat(schema), record)
    if not record or strict.reason not in (Reason.OK, Reason.DUPLICATE_FIELD):
        return
    read, scanned = fields(schema, record), fields(schema, record, scan=True)
    assert read[::2] == scanned[::2]
    # The scan does not look into arrays and objects: one in the place of the time is no time in either case.
    assert read[1] == scanned[1] or (read[1], scanned[1]) == (Reason.TIME_TYPE, Reason.TIME_MISSING)


@settings(max_examples=400)
@given(st.sampled_from(sorted(SCHEMAS)), st.data())
def test_any_bytes_have_the_time_and_the_key_of_the_oracle(name: str, data: st.DataObject) -> None:
    schema = SCHEMAS[name]
    tokens = [b'"page"', b'"user"', b'"at"', b'"a.b"', b":", b":", b",", b"{", b"}", b"[", b"]", b'"', b"\\", b" "]
    tokens += [b"%d" % (BAND["earliest_ms"] + 7), b'"a"', b"1", b"\xff", b"x"]
    soup = st.lists(st.sampled_from(tokens), max_size=24).map(lambda parts: b"{" + b"".join(parts))
    record = data.draw(st.one_of(soup, soup, spoiled(schema)))
    wanted = placed_by(record, rules(schema, None))
    key = PythonExtractor(JsonFormat(schema), SHAPE, keys=KeyTable()).key_of(record)
    assert repr(key) == ("None" if isinstance(wanted, Refused) else repr(wanted))
    if schema.time is not None:
        event_ms, reason = TimeReader(schema).read(read_record(JsonFormat(schema), record).time)
        assert (None if reason else event_ms) == meaning(record, rules(schema, None)).event_ms
