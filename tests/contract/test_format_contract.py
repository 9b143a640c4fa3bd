"""The contract of formats: `columns` agrees with `read`, the definition, and no content makes either of them fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from contract.formats import CASES, EXAMPLES, FormatCase
from hypothesis import given, settings
from hypothesis import strategies as st

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.event_time import TimeReader
from sfm_stream.events.formats.format import NOT_UNICODE, FieldColumns, Fields, Format
from sfm_stream.events.formats.registry import FORMATS, format_of
from sfm_stream.events.framing import read_record
from sfm_stream.sketch.hashing import encode_item
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.types import NO_TIME, Reason

RECORD_REASONS = {reason for reason in Reason if reason <= Reason.DUPLICATE_FIELD}
INT64 = range(-(2**63), 2**63)
PAIRS = [(name, schema) for name, case in CASES.items() for schema in case.schemas]


def test_every_registered_format_is_held_to_the_contract() -> None:
    assert set(CASES) - EXAMPLES == set(FORMATS)
    assert [type(format_of(CASES[name].schemas["plain"], name)) for name in FORMATS] == [
        CASES[name].make for name in FORMATS
    ]


def counts(fields: Fields, schema: EventSchema) -> bool:
    """Whether a record may be answered for by columns: all but its time and key is as it should be."""
    item = fields.item
    is_item = (type(item) is str and item is not NOT_UNICODE) or (type(item) is int and item in INT64)
    is_item = is_item or (schema.float_items and type(item) is float and np.isfinite(item))
    is_key = all(type(part) is str or (type(part) is int and part in INT64) for part in fields.key)
    return fields.reason == Reason.OK and bool(is_item) and is_key


def check(form: Format, values: Sequence[bytes | None], columns: FieldColumns) -> None:
    """Every record that the columns answer for has the fields that read() gives."""
    schema, odd = form.schema, list(columns.odd)
    assert all(a < b for a, b in pairwise(odd)), "ascending"
    assert not odd or (odd[0] >= 0 and odd[-1] < len(values))
    plain = [value for position, value in enumerate(values) if position not in set(odd)]
    assert len(columns.keys) == len(columns.items) == len(plain)
    assert (columns.times is None) == (schema.time is None)
    times = [None] * len(plain) if columns.times is None else columns.times
    assert len(times) == len(plain)
    for value, key, time, item in zip(plain, columns.keys, times, columns.items, strict=True):
        fields = form.read(value)
        assert repr(read_record(form, value)) == repr(fields), "no framed record is answered for"
        assert counts(fields, schema)
        assert repr(key) == repr(fields.key[0] if len(fields.key) == 1 else fields.key)
        assert encode_item(item) == encode_item(fields.item)
        assert repr(int(time) if isinstance(time, np.int64) else time) == repr(fields.time)


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}, {pair[1]}")
def pair(request: pytest.FixtureRequest) -> tuple[FormatCase, EventSchema]:
    name, schema = request.param
    return CASES[name], CASES[name].schemas[schema]


def test_plain_records_are_answered_for(pair: tuple[FormatCase, EventSchema]) -> None:
    case, schema = pair
    form = case.make(schema)
    records = [case.record(schema, number) for number in range(100)]
    columns = form.columns(records)
    assert columns.odd == []
    assert list(columns.items) == [b"u%d" % number for number in range(100)]
    check(form, records, columns)
    assert form.columns([]).odd == []


@settings(max_examples=300)
@given(st.data(), st.sampled_from(PAIRS))
def test_columns_are_what_read_says(data: st.DataObject, pair: tuple[str, str]) -> None:
    """In blocks one after the other, odd records being read in between: a format may learn from them."""
    case = CASES[pair[0]]
    schema = case.schemas[pair[1]]
    form, fresh = case.make(schema), case.make(schema)
    record = st.one_of(st.integers(0, 99).map(lambda number: case.record(schema, number)), case.hostile(schema))
    values: list[bytes | None] = data.draw(st.lists(record, max_size=8))
    for _ in range(3):
        columns = form.columns(values)
        check(form, values, columns)
        for value in values:
            assert repr(form.read(value)) == repr(fresh.read(value)), "read() does not learn"


@settings(max_examples=300)
@given(st.data(), st.sampled_from(PAIRS))
def test_any_bytes_have_fields_or_a_reason(data: st.DataObject, pair: tuple[str, str]) -> None:
    case = CASES[pair[0]]
    schema = case.schemas[pair[1]]
    form = case.make(schema)
    value = data.draw(st.one_of(case.hostile(schema), st.binary(max_size=60)))
    fields = form.read(value)
    assert fields.reason in RECORD_REASONS - {Reason.FRAMED}
    assert len(fields.key) == len(schema.key)
    assert fields.item is None or fields.reason in (Reason.OK, Reason.DUPLICATE_FIELD)
    check(form, [value], form.columns([value]))


@settings(max_examples=300)
@given(st.data(), st.sampled_from(PAIRS))
def test_lines_of_a_text_are_read_as_their_records(data: st.DataObject, pair: tuple[str, str]) -> None:
    """Of lines that are whole records, parts of one, two of them, white space or nothing at all."""
    case = CASES[pair[0]]
    schema = case.schemas[pair[1]]
    form = case.make(schema)
    good = st.integers(0, 99).map(lambda number: case.record(schema, number))
    parts = st.tuples(good, st.integers(1, 30)).map(lambda drawn: drawn[0][: drawn[1]] + b"\n" + drawn[0][drawn[1] :])
    two = st.tuples(good, st.sampled_from([b"", b" ", b"\r"]), good).map(b"".join)
    nested = good.map(lambda record: b'{"a":{}\n' + record + b"}" + record)
    within = good.map(lambda record: b'{"a":"}\n{",' + record[1:] + record)
    rest = st.sampled_from([b"", b" ", b"\t\r", b"{}", b"\x00", b"{ }"])
    pieces = data.draw(st.lists(good | parts | two | nested | within | rest, max_size=6))
    text = b"".join(piece + data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"])) for piece in pieces)
    for part in (text, b"\n".join(case.record(schema, number) for number in range(3))):
        lines = LineBatch(part, 0, len(part)).values()
        check(form, [*lines], form.columns(lines))


def test_empty_and_long_and_framed_records(pair: tuple[FormatCase, EventSchema]) -> None:
    case, schema = pair
    form = case.make(replace(schema, max_record_bytes=200))
    short = case.record(schema, 1)
    whole = form.read(short)
    long = case.with_item(schema, 1, b"x" * 201)
    framed = [mark + b"\x00\x00\x00\x00\x07" + short for mark in (b"", b"\xef\xbb\xbf")]
    values = [None, b"", long, *framed]
    assert form.columns(values).odd == list(range(len(values)))
    nothing = (None, None, (None,) * len(schema.key))
    assert [read_record(form, value)[1:] for value in (None, b"")] == [nothing, nothing]
    reasons = [read_record(form, value).reason for value in values]
    assert reasons == [Reason.TOMBSTONE] * 2 + [Reason.RECORD_TOO_LONG] + [Reason.FRAMED] * 2
    for value in framed:
        assert read_record(form, value)[1:] == (None, whole.time, whole.key)


def test_no_item_changes_the_time_or_the_key(pair: tuple[FormatCase, EventSchema]) -> None:
    """Of a record that is refused for its item too: other people's records wait for that time."""
    case, schema = pair
    form, time = case.make(schema), TimeReader(schema)
    whole = form.read(case.record(schema, 7))
    if schema.time is not None:
        assert time.read(whole.time)[0] != NO_TIME
    for item in case.hostile_items:
        record = case.with_item(schema, 7, item)
        fields = read_record(form, record)
        assert (fields.time, fields.key) == (whole.time, whole.key), item[:20]
        check(form, [record], form.columns([record]))


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, case in CASES.items() for what in case.refused])
def test_refused_records_have_their_reason(name: str, what: str) -> None:
    case = CASES[name]
    form = case.make(case.schemas["plain"])
    reason, record = case.refused[what]
    plain = case.record(form.schema, 1)
    assert form.read(record).reason == reason
    assert form.columns([plain, record, plain]).odd == [1]


# The contract can fail


class Trusting:
    """A format that answers for odd records by the fields of the record before."""

    def __init__(self, form: Format) -> None:
        self.form, self.schema = form, form.schema

    def read(self, value: bytes | None) -> Fields:
        return self.form.read(value)

    def columns(self, values: Sequence[bytes | None]) -> FieldColumns:
        first = values[0]
        return self.form.columns([first if self.form.columns([value]).odd else value for value in values])


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, case in CASES.items() for what in case.refused])
def test_a_format_that_answers_for_odd_records_is_caught(name: str, what: str) -> None:
    case = CASES[name]
    form = Trusting(case.make(case.schemas["plain"]))
    values = [case.record(form.schema, 1), case.refused[what][1]]
    with pytest.raises(AssertionError):
        check(form, values, form.columns(values))


def test_a_format_that_gives_wrong_fields_is_caught() -> None:
    form = format_of(CASES["json"].schemas["plain"])
    values: list[bytes | None] = [CASES["json"].record(form.schema, number) for number in range(3)]
    right = form.columns(values)
    assert right.times is not None
    check(form, values, right)
    for wrong in (
        right._replace(items=right.items[::-1]),
        right._replace(keys=["1"] * 3),
        right._replace(times=right.times + 1),
        right._replace(times=[str(time) for time in right.times]),
        right._replace(times=None),
        right._replace(odd=[1]),
        right._replace(keys=right.keys[:2], times=right.times[:2], items=right.items[:2], odd=[3]),
    ):
        with pytest.raises((AssertionError, ValueError)):
            check(form, values, wrong)
