"""Every extractor, and the oracle, give the same rows: in Python by columns or one by one, or with a kernel."""

from __future__ import annotations

from dataclasses import fields as fields_of

import numpy as np
import pytest
from contract.extractors import EXTRACTORS, FromMemory, MakeExtractor
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.memory_batch import MemoryBatch
from reference.naive_extract import Meaning, Rules, meaning
from support.json_records import NOW_S, SCHEMAS, TIMES, documents, good, spoiled
from support.partial_kernel import PartialKernel

from sfm_stream.events.event_schema import EventSchema, parse_path
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.native_extractor import NativeExtractor
from sfm_stream.sketch.hashing import XXH64, hash_items
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, EventColumns, Reason

SHAPE = SketchShape(4096, 24)


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[bytes | None], list[int], bool]:
    name = draw(st.sampled_from(sorted(SCHEMAS)))
    schema = SCHEMAS[name]
    records: list[bytes | None] = [good(schema, number) for number in range(draw(st.integers(0, 5)))]
    hostile = st.one_of(
        spoiled(schema), spoiled(schema), documents.map(lambda text: text.encode("utf-8", "surrogatepass"))
    )
    for record in draw(st.lists(hostile, max_size=5)):
        records.insert(draw(st.integers(0, len(records))), record)
    arrivals = draw(st.lists(st.sampled_from([-1, NOW_S, *TIMES]), min_size=len(records), max_size=len(records)))
    return name, records, arrivals, draw(st.booleans())


ELSEWHERE: frozenset[object] = frozenset([7, "b", ""])
"""Keys that another partition holds where keys are declared."""


def rules(schema: EventSchema, declared: frozenset[object] | None) -> Rules:
    plain = {field.name: getattr(schema, field.name) for field in fields_of(schema)}
    plain |= {"key": tuple(parse_path(path) for path in schema.key), "item": parse_path(schema.item)}
    time = None if schema.time is None else parse_path(schema.time)
    return Rules(**plain | {"time": time}, declared=declared, elsewhere=ELSEWHERE)


def run(
    schema: EventSchema, batch: MemoryBatch, declared: frozenset[object] | None, make: MakeExtractor
) -> list[Meaning]:
    """The rows of an extractor in the terms of the oracle, invariants checked."""
    table = KeyTable(declared, ELSEWHERE)  # type: ignore[arg-type]
    extractor = make(schema, SHAPE, XXH64, table)
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


def expected(schema: EventSchema, batch: MemoryBatch, declared: frozenset[object] | None) -> list[Meaning]:
    rows = []
    for record, arrival_ms in zip(batch.records, batch.arrival_ms or [-1] * batch.count, strict=True):
        row = meaning(record, rules(schema, declared), arrival_ms)
        cell = SHAPE.cells_of(hash_items([row.item]))[0] if row.reason == "OK" else 0
        rows.append(Meaning(row.reason, row.event_ms, row.key, cell))
    return rows


def typed(rows: list[Meaning]) -> list[tuple[object, ...]]:
    return [(row.reason, row.event_ms, repr(row.key), int(row.item)) for row in rows]  # type: ignore[call-overload]


@settings(max_examples=400)
@given(batches(), st.booleans())
def test_fast_and_slow_paths_and_the_oracle_agree(
    drawn: tuple[str, list[bytes | None], list[int], bool], fixed: bool
) -> None:
    name, records, arrivals, with_arrivals = drawn
    schema = SCHEMAS[name]
    batch = MemoryBatch(records, arrivals if with_arrivals or schema.time is None else None, first=7)
    declared: frozenset[object] | None = frozenset([1, "a", "a very long declared key"]) if fixed else None
    want = typed(expected(schema, batch, declared))
    for way, make in EXTRACTORS.items():
        assert typed(run(schema, batch, declared, make)) == want, way


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_plain_records_take_the_fast_path(name: str) -> None:
    schema = SCHEMAS[name]
    records: list[bytes | None] = [good(schema, number) for number in range(50)]
    batch = MemoryBatch(records, [NOW_S * 1000] * len(records))
    assert {row.reason for row in run(schema, batch, None, EXTRACTORS["python"])} == {"OK"}
    assert JsonFormat(schema).columns(records).odd == []


def of_kernel(schema: EventSchema, kernel: PartialKernel, keys: KeyTable) -> Extractor:
    return FromMemory(NativeExtractor(kernel, PythonExtractor(JsonFormat(schema), SHAPE, keys=keys)))


@pytest.mark.parametrize("stamped", [True, False])
def test_the_partial_kernel_does_answer(stamped: bool) -> None:
    """And not for everything: rows of both kinds lie in one batch."""
    for name, answered in (("plain", 50), ("micros", 50), ("record time", 50), ("iso", 0), ("nested", 0)):
        schema = SCHEMAS[name]
        kernel = PartialKernel(schema, SHAPE, XXH64)
        records: list[bytes | None] = [good(schema, number) for number in range(50)]
        records.insert(7, records[0][:-1] + b',"x":1e3}')  # type: ignore[index]
        batch = MemoryBatch(records, [NOW_S * 1000] * len(records) if stamped or schema.time is None else None)
        assert not of_kernel(schema, kernel, KeyTable()).columns([batch]).reasons.any()
        assert kernel.answered == answered, name


class CarelessKernel(PartialKernel):
    """Takes a record for plain whatever stands behind a first good one."""

    def _row(self, value: bytes | None, arrival_ms: int):  # type: ignore[no-untyped-def]
        return super()._row(value if value is None else value.partition(b"}")[0] + b"}", arrival_ms)


def test_a_kernel_that_answers_for_an_odd_record_is_caught() -> None:
    schema = SCHEMAS["plain"]
    batch = MemoryBatch([good(schema, 1), good(schema, 2) + b"}", good(schema, 3)])
    want = typed(expected(schema, batch, None))

    def careless(schema, shape, item_hash, keys):  # type: ignore[no-untyped-def]
        return of_kernel(schema, CarelessKernel(schema, shape, item_hash), keys)

    assert typed(run(schema, batch, None, EXTRACTORS["partial kernel"])) == want
    assert typed(run(schema, batch, None, careless)) != want


def test_fractions_become_plain_once_seen() -> None:
    form = JsonFormat(SCHEMAS["seconds"])
    records: list[bytes | None] = [b'{"page":1,"user":"u","at":%d.123}' % (NOW_S + at) for at in range(3000)]
    columns = PythonExtractor(form, SHAPE, keys=KeyTable()).columns([MemoryBatch(records)])
    assert columns.event_ms.tolist() == [(NOW_S + at) * 1000 + 123 for at in range(3000)]
    assert not form.columns(records).odd


@pytest.mark.parametrize("name", ["plain", "seconds", "micros", "nanos"])
@pytest.mark.parametrize("spelled", ['"%d"', "%d.0"])
def test_numbers_in_quotes_and_whole_floats_become_plain_once_seen(name: str, spelled: str) -> None:
    schema = SCHEMAS[name]
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[schema.time_unit]
    at = [spelled % ((NOW_S + second) * scale) for second in range(3000)]
    records: list[bytes | None] = [f'{{"page":1,"user":"u","at":{text}}}'.encode() for text in at]
    form = JsonFormat(schema)
    columns = PythonExtractor(form, SHAPE, keys=KeyTable()).columns([MemoryBatch(records)])
    assert not columns.reasons.any()
    assert columns.event_ms.tolist() == [(NOW_S + second) * 1000 for second in range(3000)]
    assert not form.columns(records).odd
