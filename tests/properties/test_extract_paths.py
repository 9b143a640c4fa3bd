"""Three ways to the same rows: the extractor as it is, the extractor with every record on its slow path, the oracle."""

from __future__ import annotations

import json
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.memory_batch import MemoryBatch
from reference.naive_extract import Meaning, Rules, meaning

from sfm_stream.events.event_schema import parse_path
from sfm_stream.events.extract import EventSchema, PythonExtractor
from sfm_stream.events.formats.json_fast import PlainRows
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.hashing import hash_items
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, EventColumns, Reason

SHAPE = SketchShape(4096, 24)
BAND = {"earliest_ms": 1_600_000_000_000, "latest_ms": 1_800_000_000_000}
NOW_S = 1_700_000_000
SHORT: dict[str, Any] = {"max_key_bytes": 12, "max_record_bytes": 2000}
FORMATS = {
    "plain": EventSchema(key=("page",), item="user", time="at", time_unit="ms", **BAND, **SHORT),
    "seconds": EventSchema(key=("page",), item="user", time="at", time_unit="s", float_items=True, **BAND),
    "micros": EventSchema(key=(), item="user", time="at", time_unit="us", **BAND),
    "nanos": EventSchema(key=(), item="user", time="at", time_unit="ns", **BAND),
    "iso": EventSchema(key=("page",), item="user", time="at", time_unit="iso8601", **BAND),
    "naive": EventSchema(key=("page",), item="user", time="at", time_unit="iso8601", naive_zone="UTC", **BAND),
    "local": EventSchema(
        key=("page",), item="user", time="at", time_unit="iso8601", naive_zone="Europe/Berlin", **BAND
    ),
    "zone names": EventSchema(key=("page",), item="user", time="at", time_unit="%d/%m/%Y:%H:%M:%S %Z", **BAND),
    "pattern": EventSchema(key=("page",), item="user", time="at", time_unit="%d/%m/%Y:%H:%M:%S %z", **BAND),
    "nested": EventSchema(key=("page", "user.page"), item="user.user.id", time="user.at", time_unit="ms", **BAND),
    "record time": EventSchema(key=("page", "at"), item="user", time=None, time_unit="ms", **BAND),
    "odd names": EventSchema(key=(r"a\.b",), item="né", time="a/b", time_unit="ms", **BAND),
}
NAMES = ["page", "user", "at", "id", "a.b", "né", "a/b", "a", "b", ""]
HOSTILE_INTS = [0, -1, 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, 10**400]
TIMES = [NOW_S, NOW_S * 10**3 + 7, NOW_S * 10**6 + 123_999, NOW_S * 10**9 + 5, *BAND.values(), BAND["latest_ms"] + 1]
RAW = ["1.0", "1e3", "-0", "-0.0", "1e400", "NaN", "-Infinity", "01", "1.", "9" * 4500, '"\\ud800"', '"\\udc00\\ud83d"']
RAW += ['"\\ud83d\\ude00"', '"\\u0000"', '"\x01"', '"\\q"', "[" * 300 + "]" * 300, "{}", "[]", "tru", '{"user":1}']
RAW += [f"{NOW_S}.5", f"{NOW_S}.123", f"{NOW_S}.000999", f"{NOW_S * 1000}.75", f"{NOW_S}e3", f"{NOW_S * 1000}.0"]
TEXT_TIMES = ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123999+05:30", "2023-11-14", "2023-11-14 22:13:20", ""]
TEXT_TIMES += ["2023-11-14T22:13:60Z", "20231114T221320Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"]
TEXT_TIMES += ["2023-11-14T24:00:00Z", "2023-11-14T24:00:01Z", "2023-11-14t22:13:20z", "2023-11-14T22:13:20Z[UTC]"]
TEXT_TIMES += ["2023-11-14T22:13:20+01:00[Europe/Paris]", "2023-11-14T22:13:20[UTC]", "2022-12-31T23:59:60.5+00:00"]
TEXT_TIMES += ["2023-10-29T02:30:00", "2023-03-26T02:30:00", "2023-11-14T24:00:00", "2023-11-14T23:59:61Z"]
TEXT_TIMES += [
    "14/11/2023:22:13:20 UTC",
    "14/11/2023:22:13:20 gmt",
    "14/11/2023:22:13:20 EST",
    "14/11/2023:22:13:20 CET",
]
TEXT_TIMES += [*map(str, TIMES), f"{NOW_S}.25", f"{NOW_S * 1000}.75", f"{NOW_S * 10**6}.0", f"-{NOW_S}", f"{NOW_S}e3"]
TEXT_TIMES += [f"{NOW_S}.", f".{NOW_S}", "00" + str(NOW_S), "9" * 41, "9" * 5000, f" {NOW_S}", "\u0661\u0662"]
TEXT_TIMES += ["0001-01-01T00:00:00+23:59", "14/11/2023:22:13:20 +0100", "14/11/2023:22:13:61 +0100", "x"]


def good(form: EventSchema, number: int) -> bytes:
    """A record of the format that is counted."""
    document: dict[str, Any] = {"ballast": "x" * (number % 7)}
    time: Any = NOW_S * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(form.time_unit, 1) + number
    if form.time_unit == "iso8601":
        time = "2023-11-14T22:13:20" + ("" if form.naive_zone else "+00:00")
    elif "%" in form.time_unit:
        time = "14/11/2023:22:13:20 " + ("+0100" if "%z" in form.time_unit else "UTC")
    values = [*([(form.time, time)] if form.time else []), (form.item, f"u{number}"), *((key, 1) for key in form.key)]
    for dotted, value in values:
        *outer, last = parse_path(dotted)
        node = document
        for name in outer:
            node = node.setdefault(name, {})
        node[last] = value
    return json.dumps(document, ensure_ascii=False).encode()


scalars = st.one_of(
    st.sampled_from(RAW),
    st.sampled_from([*HOSTILE_INTS, *TIMES]).map(str),
    st.sampled_from(["true", "false", "null", '""', '"a"']),
    st.sampled_from(TEXT_TIMES).map(json.dumps),
    st.integers().map(str),
    st.decimals(0, 2 * NOW_S, places=6).map(str),
    st.text(st.characters(exclude_categories=["Cs"])).map(json.dumps),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: json.dumps(text, ensure_ascii=False)),
)


def _array(values: list[str]) -> str:
    return "[" + ",".join(values) + "]"


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """An object in which names of the formats turn up often, sometimes twice, sometimes in disguise."""
    members = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=6)):
        spelled = json.dumps(name, ensure_ascii=draw(st.booleans()))
        if name and draw(st.integers(0, 9)) == 0:
            spelled = f'"\\u{ord(name[0]):04x}{name[1:]}"'
        if draw(st.integers(0, 9)) == 0:
            spelled = spelled.replace("/", "\\/")
        space = draw(st.sampled_from(["", "", "", " ", "\n", "\t", "\r"]))
        members.append(f"{spelled}{space}:{draw(inner)}{space}")
    return "{" + ",".join(members) + "}"


documents = st.recursive(scalars, lambda inner: st.one_of(objects(inner), st.lists(inner, max_size=3).map(_array)))


@st.composite
def spoiled(draw: st.DrawFn, form: EventSchema) -> bytes | None:
    """A good record with one value exchanged, members added, or bytes changed."""
    record = good(form, draw(st.integers(0, 99)))
    change = draw(st.integers(0, 6))
    if change == 0:
        at = draw(st.integers(0, len(record)))
        return record[:at] + draw(st.binary(max_size=4)) + record[at + draw(st.integers(0, 3)) :]
    if change == 1:
        return record + draw(st.sampled_from([b" ", b"\n", b"\r", record, b"\n" + record, b"\x00", b","]))
    if change == 2:
        extra = draw(objects(scalars))[1:].encode()
        return record[:-1] + b"," + extra if extra != b"}" else record
    if change == 3:
        return draw(st.sampled_from([None, b"", b" ", b"{}", b"\x00" + record, b"\x00{}", b"\xef\xbb\xbf" + record]))
    if change == 4:
        nested = draw(st.integers(250, 260))
        return record[:-1] + b',"deep":' + b"[" * nested + b'"' + b'[\\"{' * 9 + b'"' + b"]" * nested + b"}"
    document = json.loads(record)
    node = document
    while True:
        name = draw(st.sampled_from(sorted(node)))
        if not isinstance(node[name], dict) or draw(st.integers(0, 3)) == 0:
            break
        node = node[name]
    node[name] = "\x1a"
    return json.dumps(document).replace('"\\u001a"', draw(documents)).encode("utf-8", "surrogatepass")


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[bytes | None], list[int], bool]:
    name = draw(st.sampled_from(sorted(FORMATS)))
    form = FORMATS[name]
    records: list[bytes | None] = [good(form, number) for number in range(draw(st.integers(0, 5)))]
    hostile = st.one_of(spoiled(form), spoiled(form), documents.map(lambda text: text.encode("utf-8", "surrogatepass")))
    for record in draw(st.lists(hostile, max_size=5)):
        records.insert(draw(st.integers(0, len(records))), record)
    arrivals = draw(st.lists(st.sampled_from([-1, NOW_S, *TIMES]), min_size=len(records), max_size=len(records)))
    return name, records, arrivals, draw(st.booleans())


ELSEWHERE: frozenset[object] = frozenset([7, "b", ""])
"""Keys that another partition holds where keys are declared."""


def rules(form: EventSchema, declared: frozenset[object] | None) -> Rules:
    plain = {field.name: getattr(form, field.name) for field in fields_of(form)}
    plain |= {"key": tuple(parse_path(path) for path in form.key), "item": parse_path(form.item)}
    time = None if form.time is None else parse_path(form.time)
    return Rules(**plain | {"time": time}, declared=declared, elsewhere=ELSEWHERE)


def run(form: EventSchema, batch: MemoryBatch, declared: frozenset[object] | None, way: str) -> list[Meaning]:
    """The rows of an extractor that has seen plain records before, in the terms of the oracle, invariants checked."""
    table = KeyTable(declared, ELSEWHERE)  # type: ignore[arg-type]
    extractor = PythonExtractor(form, SHAPE, keys=table)
    if way == "mixed times":
        extractor._lines.mix_times()
    if way == "slow":
        lines = extractor._lines
        lines.read = lambda values: PlainRows(lines._layout, [], list(range(len(values))), False)  # type: ignore[method-assign]
    columns = extractor.columns([batch])
    check_invariants(columns, batch, table, declared)
    rows = []
    for index, reason in enumerate(columns.reasons.tolist()):
        event_ms = columns.event_ms[index]
        key = table[int(columns.key_ids[index])] if reason == Reason.OK else None
        rows.append(
            Meaning(Reason(reason).name, None if event_ms == NO_TIME else int(event_ms), key, columns.cells[index])
        )
    return rows


def check_invariants(columns: EventColumns, batch: MemoryBatch, table: KeyTable, declared: object) -> None:
    counted = columns.reasons == Reason.OK
    assert len(columns.reasons) == batch.count
    assert columns.next_offset == batch.next_offset
    assert (columns.key_ids[~counted] == -1).all()
    assert (columns.cells[~counted] == 0).all()
    assert (columns.event_ms[counted] != NO_TIME).all()
    assert (columns.key_ids[counted] >= 0).all()
    if declared is None:  # no row that is not OK brought a key
        assert sorted(columns.new_keys) == sorted(set(columns.key_ids[counted].tolist())) == list(range(len(table)))
    arrivals = batch.arrivals()
    assert np.array_equal(
        columns.arrival_ms, columns.event_ms if arrivals is None else np.where(arrivals < 0, -1, arrivals)
    )
    dtypes = (columns.event_ms.dtype, columns.key_ids.dtype, columns.cells.dtype, columns.reasons.dtype)
    assert dtypes == (np.int64, np.int32, np.uint32, np.uint8)


def expected(form: EventSchema, batch: MemoryBatch, declared: frozenset[object] | None) -> list[Meaning]:
    rows = []
    for record, arrival_ms in zip(batch.records, batch.arrival_ms or [-1] * batch.count, strict=True):
        row = meaning(record, rules(form, declared), arrival_ms)
        cell = SHAPE.place(hash_items([row.item]))[0] if row.reason == "OK" else 0
        rows.append(Meaning(row.reason, row.event_ms, row.key, cell))
    return rows


def typed(rows: list[Meaning]) -> list[tuple[object, ...]]:
    return [(row.reason, row.event_ms, repr(row.key), int(row.item)) for row in rows]  # type: ignore[call-overload]


@settings(max_examples=400, deadline=None)
@given(batches(), st.booleans())
def test_fast_and_slow_paths_and_the_oracle_agree(
    drawn: tuple[str, list[bytes | None], list[int], bool], fixed: bool
) -> None:
    name, records, arrivals, with_arrivals = drawn
    form = FORMATS[name]
    batch = MemoryBatch(records, arrivals if with_arrivals or form.time is None else None, first=7)
    declared: frozenset[object] | None = frozenset([1, "a", "a very long declared key"]) if fixed else None
    want = typed(expected(form, batch, declared))
    for way in ("slow", "fast", "mixed times"):
        assert typed(run(form, batch, declared, way)) == want, way


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_plain_records_take_the_fast_path(name: str) -> None:
    form = FORMATS[name]
    records: list[bytes | None] = [good(form, number) for number in range(50)]
    batch = MemoryBatch(records, [NOW_S * 1000] * len(records))
    assert {row.reason for row in run(form, batch, None, "fast")} == {"OK"}
    plain = PythonExtractor(form, SHAPE, keys=KeyTable())._lines.read(records)
    assert len(plain) == 50


def test_fractions_become_plain_once_seen() -> None:
    form = FORMATS["seconds"]
    records: list[bytes | None] = [b'{"page":1,"user":"u","at":%d.123}' % (NOW_S + at) for at in range(3000)]
    extractor = PythonExtractor(form, SHAPE, keys=KeyTable())
    columns = extractor.columns([MemoryBatch(records)])
    assert columns.event_ms.tolist() == [(NOW_S + at) * 1000 + 123 for at in range(3000)]
    assert not extractor._lines.read(records).odd


@pytest.mark.parametrize("name", ["plain", "seconds", "micros", "nanos"])
@pytest.mark.parametrize("spelled", ['"%d"', "%d.0"])
def test_numbers_in_quotes_and_whole_floats_become_plain_once_seen(name: str, spelled: str) -> None:
    form = FORMATS[name]
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[form.time_unit]
    at = [spelled % ((NOW_S + second) * scale) for second in range(3000)]
    records: list[bytes | None] = [f'{{"page":1,"user":"u","at":{text}}}'.encode() for text in at]
    extractor = PythonExtractor(form, SHAPE, keys=KeyTable())
    columns = extractor.columns([MemoryBatch(records)])
    assert not columns.reasons.any()
    assert columns.event_ms.tolist() == [(NOW_S + second) * 1000 for second in range(3000)]
    assert not extractor._lines.read(records).odd
