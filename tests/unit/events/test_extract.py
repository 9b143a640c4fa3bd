"""Rows of the extractor: the hostile corpus, keys, batches, clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.extractors import EXTRACTORS
from reference.memory_batch import MemoryBatch

from sfm_stream.errors import UsageError
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import Extractor
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.hashing import XXH64, ItemHash, hash_items, keyed_blake2b
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import NO_TIME, EventColumns, Reason

SHAPE = SketchShape(4096, 24)
AT_MS = 1_700_000_000_000
CORPUS = Path(__file__).parents[2] / "data" / "hostile.jsonl"
LINES: list[tuple[str, Reason, int]] = [
    ("plain", Reason.OK, AT_MS),
    ("empty line", Reason.TOMBSTONE, NO_TIME),
    ("blank line", Reason.MALFORMED, NO_TIME),
    ("longer than a record may be", Reason.RECORD_TOO_LONG, AT_MS),
    ("100,000 brackets", Reason.MALFORMED, NO_TIME),
    ("100,000 brackets within a field", Reason.MALFORMED, AT_MS),
    ("257 deep", Reason.MALFORMED, AT_MS),
    ("256 deep", Reason.OK, AT_MS),
    ("brackets in a text are no depth", Reason.OK, AT_MS),
    ("framed by a schema registry", Reason.FRAMED, AT_MS),
    ("zero byte, too short for a frame", Reason.MALFORMED, NO_TIME),
    ("zero byte within a text", Reason.MALFORMED, AT_MS),
    ("byte order mark", Reason.OK, AT_MS),
    ("UTF-16", Reason.NOT_UTF8, NO_TIME),
    ("key not UTF-8", Reason.KEY_NOT_UNICODE, AT_MS),
    ("item not UTF-8", Reason.ITEM_NOT_UNICODE, AT_MS),
    ("ballast not UTF-8", Reason.OK, AT_MS),
    ("surrogates in UTF-8", Reason.ITEM_NOT_UNICODE, AT_MS),
    ("truncated", Reason.MALFORMED, NO_TIME),
    ("truncated after the last field", Reason.MALFORMED, NO_TIME),
    ("no JSON", Reason.MALFORMED, NO_TIME),
    ("single quotes", Reason.MALFORMED, NO_TIME),
    ("trailing comma", Reason.MALFORMED, AT_MS),
    ("two records", Reason.MALFORMED, AT_MS),
    ("something behind the record", Reason.MALFORMED, AT_MS),
    ("white space around the record", Reason.OK, AT_MS),
    ("array at the top", Reason.MALFORMED, NO_TIME),
    ("text at the top", Reason.MALFORMED, NO_TIME),
    ("number at the top", Reason.MALFORMED, NO_TIME),
    ("null at the top", Reason.MALFORMED, NO_TIME),
    ("NaN", Reason.OK, AT_MS),
    ("NaN as time", Reason.TIME_UNREADABLE, NO_TIME),
    ("Infinity as item", Reason.ITEM_NOT_FINITE, AT_MS),
    ("-Infinity", Reason.OK, AT_MS),
    ("leading zero", Reason.MALFORMED, AT_MS),
    ("lone high surrogate as item", Reason.ITEM_NOT_UNICODE, AT_MS),
    ("lone low surrogate in ballast", Reason.OK, AT_MS),
    ("surrogates the wrong way round", Reason.ITEM_NOT_UNICODE, AT_MS),
    ("a pair of surrogates", Reason.OK, AT_MS),
    ("an escaped backslash before ud800", Reason.OK, AT_MS),
    ("unknown escape", Reason.MALFORMED, AT_MS),
    ("control character in a text", Reason.MALFORMED, AT_MS),
    ("item twice", Reason.DUPLICATE_FIELD, AT_MS),
    ("item twice, equal", Reason.DUPLICATE_FIELD, AT_MS),
    ("item twice, once in disguise", Reason.DUPLICATE_FIELD, AT_MS),
    ("key twice", Reason.DUPLICATE_FIELD, AT_MS),
    ("time twice", Reason.DUPLICATE_FIELD, NO_TIME),
    ("item twice, white space before the colon", Reason.DUPLICATE_FIELD, AT_MS),
    ("the name of the item in another object", Reason.OK, AT_MS),
    ("the name of the item as a value", Reason.OK, AT_MS),
    ("a field twice that is not asked for", Reason.OK, AT_MS),
    ("item in disguise", Reason.OK, AT_MS),
    ("no time", Reason.TIME_MISSING, NO_TIME),
    ("null time", Reason.TIME_MISSING, NO_TIME),
    ("text time", Reason.TIME_TYPE, NO_TIME),
    ("empty text time", Reason.TIME_TYPE, NO_TIME),
    ("true as time", Reason.TIME_TYPE, NO_TIME),
    ("object as time", Reason.TIME_TYPE, NO_TIME),
    ("time too large for a float", Reason.TIME_UNREADABLE, NO_TIME),
    ("time with a fraction", Reason.OK, AT_MS),
    ("time with an exponent", Reason.OK, AT_MS),
    ("seconds for milliseconds", Reason.TIME_LOOKS_LIKE_SECONDS, NO_TIME),
    ("microseconds for milliseconds", Reason.TIME_LOOKS_LIKE_MICROSECONDS, NO_TIME),
    ("nanoseconds for milliseconds", Reason.TIME_LOOKS_LIKE_NANOSECONDS, NO_TIME),
    ("far future", Reason.TIME_IMPLAUSIBLE, NO_TIME),
    ("zero as time", Reason.TIME_IMPLAUSIBLE, NO_TIME),
    ("before 1970", Reason.TIME_IMPLAUSIBLE, NO_TIME),
    ("time beyond int64", Reason.TIME_IMPLAUSIBLE, NO_TIME),
    ("time of 5,000 digits", Reason.TIME_IMPLAUSIBLE, NO_TIME),
    ("no key", Reason.KEY_MISSING, AT_MS),
    ("null key", Reason.KEY_MISSING, AT_MS),
    ("false as key", Reason.KEY_TYPE, AT_MS),
    ("float key", Reason.KEY_TYPE, AT_MS),
    ("array as key", Reason.KEY_TYPE, AT_MS),
    ("key beyond int64", Reason.KEY_RANGE, AT_MS),
    ("key of 5,000 digits", Reason.KEY_RANGE, AT_MS),
    ("largest integer key", Reason.OK, AT_MS),
    ("key longer than allowed", Reason.KEY_TOO_LONG, AT_MS),
    ("empty key", Reason.OK, AT_MS),
    ("zero as key", Reason.OK, AT_MS),
    ("minus zero as key", Reason.OK, AT_MS),
    ("key 1", Reason.OK, AT_MS),
    ('key "1"', Reason.OK, AT_MS),
    ("no item", Reason.ITEM_MISSING, AT_MS),
    ("null item", Reason.ITEM_MISSING, AT_MS),
    ("null item under a key of its own", Reason.ITEM_MISSING, AT_MS),
    ("false as item", Reason.ITEM_TYPE, AT_MS),
    ("float item", Reason.ITEM_TYPE, AT_MS),
    ("item 1.0", Reason.ITEM_TYPE, AT_MS),
    ("object as item", Reason.ITEM_TYPE, AT_MS),
    ("array as item", Reason.ITEM_TYPE, AT_MS),
    ("item beyond int64", Reason.ITEM_RANGE, AT_MS),
    ("empty item", Reason.OK, AT_MS),
    ("zero as item", Reason.OK, AT_MS),
    ("an integer that no double holds", Reason.OK, AT_MS),
    ("null time, null key, null item", Reason.TIME_MISSING, NO_TIME),
    ("null key, null item", Reason.KEY_MISSING, AT_MS),
    ("empty object", Reason.TIME_MISSING, NO_TIME),
]
"""What each line of the corpus is, why it is not counted, and its event time."""


@pytest.fixture(autouse=True, params=EXTRACTORS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with every extractor."""
    monkeypatch.setitem(MAKE, "extractor", EXTRACTORS[request.param])


MAKE = {"extractor": EXTRACTORS["python"]}


def extractor(table: KeyTable | None = None, item_hash: ItemHash = XXH64, **more: Any) -> Extractor:
    return MAKE["extractor"](schema(**more), SHAPE, item_hash, KeyTable() if table is None else table)


def schema(**more: Any) -> EventSchema:
    settings: dict[str, Any] = {"key": ("page",), "item": "user", "time": "at", "time_unit": "ms"}
    return EventSchema(**settings | {"earliest_ms": 1_600_000_000_000, "latest_ms": 1_800_000_000_000} | more)


def columns(
    records: list[bytes | None], table: KeyTable | None = None, arrival_ms: list[int] | None = None, **more: Any
) -> EventColumns:
    return extractor(table, **more).columns([MemoryBatch(records, arrival_ms)])


def cells(*items: object) -> list[int]:
    return SHAPE.cells_of(hash_items(items)).tolist()


def record(page: object = '"/a"', user: object = '"u"', at: object = AT_MS) -> bytes:
    return f'{{"page":{page},"user":{user},"at":{at}}}'.encode()


def corpus() -> list[bytes | None]:
    return list(CORPUS.read_bytes().split(b"\n")[:-1])


@pytest.mark.parametrize("padding", [0, 1, 2000])
def test_every_hostile_line_gets_its_reason(padding: int) -> None:
    """Alone and among plain records; every line at once, since none may harm another."""
    plain: list[bytes | None] = [record()] * padding
    seen = columns(plain + corpus() + plain, max_record_bytes=140_000)
    middle = slice(padding, padding + len(LINES))
    rows = zip(LINES, seen.reasons[middle].tolist(), seen.event_ms[middle].tolist(), strict=True)
    wrong = [(what, Reason(reason).name, ms) for (what, *want), reason, ms in rows if want != [reason, ms]]
    assert wrong == []
    assert (np.delete(seen.reasons, range(padding, padding + len(LINES))) == Reason.OK).all()


def test_each_hostile_line_alone() -> None:
    for line, (what, reason, event_ms) in zip(corpus(), LINES, strict=True):
        seen = columns([line], max_record_bytes=140_000)
        assert (what, seen.reasons[0], seen.event_ms[0]) == (what, reason, event_ms)


def test_every_reason_of_extraction_is_in_the_corpus_or_here() -> None:
    elsewhere = {
        Reason.TIME_NAIVE,
        Reason.TIME_LOOKS_LIKE_MILLISECONDS,
        Reason.KEY_NOT_DECLARED,
        Reason.KEY_MISPLACED,  # of keys that are not declared by partitioners.Placement
    }
    assert {reason for _, reason, _ in LINES} | elsewhere == {reason for reason in Reason if reason < Reason.FUTURE}


def test_the_keys_of_the_corpus() -> None:
    table = KeyTable()
    seen = columns(corpus(), table, max_record_bytes=140_000)
    assert list(map(repr, table)) == ["'/a'", "9223372036854775807", "''", "0", "1", "'1'"]
    assert seen.new_keys == tuple(range(6))


def test_tombstones() -> None:
    assert columns([None, b"", record()]).reasons.tolist() == [Reason.TOMBSTONE, Reason.TOMBSTONE, Reason.OK]


def test_items_light_the_cells_of_their_canonical_bytes() -> None:
    users = ['"u"', '""', "0", "1", '"1"', 2**53 + 1, 2**63 - 1, -(2**63), '"\\u00e9"', '"é"']
    want = cells("u", "", 0, 1, "1", 2**53 + 1, 2**63 - 1, -(2**63), "é", "é")
    assert columns([record(user=user) for user in users]).cells.tolist() == want
    assert columns([record(user=7)] * 3).cells.tolist() == cells(7, 7, 7)


def test_float_items_where_they_are_allowed() -> None:
    users = ["1.0", "1", "-0.0", "0.0", "1e400", "-1e400", '"1.0"', 2**63, "true"]
    seen = columns([record(user=user) for user in users], float_items=True)
    assert seen.cells.tolist() == [*cells(1.0, 1, -0.0, 0.0), 0, 0, *cells("1.0"), 0, 0]
    refused = [Reason.ITEM_NOT_FINITE, Reason.ITEM_NOT_FINITE, Reason.OK, Reason.ITEM_RANGE, Reason.ITEM_TYPE]
    assert seen.reasons.tolist() == [Reason.OK] * 4 + refused


def test_another_hash() -> None:
    other = keyed_blake2b(bytes(16))
    for users in (["a", "b"], [1, 2], ["a", 1]):
        records: list[bytes | None] = [record(user=f'"{u}"' if isinstance(u, str) else u) for u in users]
        seen = extractor(item_hash=other).columns([MemoryBatch(records)])
        assert seen.cells.tolist() == SHAPE.cells_of(hash_items(users, other)).tolist()
        assert seen.cells.tolist() != SHAPE.cells_of(hash_items(users, XXH64)).tolist()


def test_keys_of_no_one_and_several_fields() -> None:
    line = b'{"a":{"b.c":"x","n":5},"page":7,"user":"u","at":1700000000000}'
    for key, want in (((), ()), (("page",), 7), (("page", r"a.b\.c", "a.n"), (7, "x", 5))):
        table = KeyTable()
        assert columns([line], table, key=key).reasons.tolist() == [Reason.OK]
        assert list(table) == [want]


def test_paths_through_what_is_no_object() -> None:
    lines: list[bytes | None] = [b"{%b" % line for line in (b'"user":{"id":1}}', b'"user":null}', b"}", b'"user":5}')]
    lines += [b'{"user":[{"id":1}]}', b'{"user":{}}', b'{"user":{"id":null}}', b'{"user":{"id":1,"id":1}}']
    lines += [b'{"user":{"id":1},"user":{"id":1}}', b'{"user":{"x":{"id":2},"id":1}}']
    seen = columns(lines, key=(), item="user.id", time=None, arrival_ms=[AT_MS] * len(lines))
    want = ["OK", "ITEM_MISSING", "ITEM_MISSING", "ITEM_TYPE", "ITEM_TYPE", "ITEM_MISSING", "ITEM_MISSING"]
    assert [Reason(reason).name for reason in seen.reasons] == [*want, "DUPLICATE_FIELD", "DUPLICATE_FIELD", "OK"]


def test_a_row_that_is_not_counted_brings_no_key() -> None:
    table = KeyTable()
    bad = [record('"k1"', "null"), record('"k2"', at=0), record('"k3"', "1.5"), record('"k4"')[:-1]]
    seen = columns([*bad, record('"k5"')], table)
    assert list(table) == ["k5"]
    assert seen.new_keys == (0,)
    assert seen.key_ids.tolist() == [-1, -1, -1, -1, 0]
    known = columns([record('"k5"', at=0), record('"k5"', "null"), record('"k5"')], table)
    assert known.key_ids.tolist() == [-1, -1, 0]
    assert known.cells.tolist() == [0, 0, *cells("u")]


def test_only_declared_keys() -> None:
    table = KeyTable(["/a", 1])
    seen = columns([record(), record(1), record('"1"'), record('"/b"', "null"), record('"/a"', "null")], table)
    want = [Reason.OK, Reason.OK, Reason.KEY_NOT_DECLARED, Reason.KEY_NOT_DECLARED, Reason.ITEM_MISSING]
    assert seen.reasons.tolist() == want
    assert seen.key_ids.tolist() == [0, 1, -1, -1, -1]
    assert seen.new_keys == ()
    assert len(table) == 2


def test_a_declared_key_of_another_partition_is_misplaced() -> None:
    table = KeyTable(["/a"], everywhere={"/a": 0, 1: 0, "/other": 0})
    pages = [record(), record(1), record('"1"'), record('"/other"', "null"), record('"/b"'), record()]
    seen = columns(pages, table)
    strange, misplaced = Reason.KEY_NOT_DECLARED, Reason.KEY_MISPLACED
    assert seen.reasons.tolist() == [Reason.OK, misplaced, strange, misplaced, strange, Reason.OK]
    assert seen.key_ids.tolist() == [0, -1, -1, -1, -1, 0]
    assert len(table) == 1


def test_the_length_of_a_key_is_that_of_its_canonical_bytes() -> None:
    pages = ['"' + "k" * 29 + '"', '"' + "k" * 30 + '"', '"' + "é" * 15 + '"', '"' + "é" * 14 + '"']
    reasons = columns([record(page) for page in pages], max_key_bytes=31).reasons.tolist()
    assert reasons == [Reason.OK, Reason.KEY_TOO_LONG, Reason.KEY_TOO_LONG, Reason.OK]


def test_keys_are_new_once_until_they_are_freed() -> None:
    table = KeyTable()
    reader = extractor(table)
    first = reader.columns([MemoryBatch([record(1), record(2), record(1)])])
    assert (first.key_ids.tolist(), first.new_keys) == ([0, 1, 0], (0, 1))
    assert reader.columns([MemoryBatch([record(2), record(3)])]).new_keys == (2,)
    table.retain(np.array([1], np.int32))
    again = reader.columns([MemoryBatch([record(2), record(1)])])
    assert len(again.new_keys) == 1
    assert table[again.new_keys[0]] == 1


def test_times_do_not_depend_on_keys_and_items() -> None:
    """A neighbouring input blanks an item; the clock of the partition must not notice."""
    odd = ["null", "true", "1.5", "[]", "{}", '""', 2**70, '"x"', '"\\u0000"']
    records = [record(page, user, AT_MS + 5) for page in odd for user in odd]
    assert set(columns(records).event_ms.tolist()) == {AT_MS + 5}
    assert set(columns(records).arrival_ms.tolist()) == {AT_MS + 5}


def test_arrival_times() -> None:
    records: list[bytes | None] = [record(), record(at=0), None, record()]
    assert columns(records, arrival_ms=[5, AT_MS, 7, -1]).arrival_ms.tolist() == [5, AT_MS, 7, NO_TIME]
    assert columns(records, arrival_ms=[0, 1, 2, -5]).arrival_ms.tolist() == [0, 1, 2, NO_TIME]
    assert columns(records).arrival_ms.tolist() == [AT_MS, NO_TIME, NO_TIME, AT_MS]


def test_record_timestamps_as_event_times() -> None:
    lines: list[bytes | None] = [
        b'{"page":1,"user":2}',
        b'{"page":1,"user":2}',
        None,
        b'{"page":1}',
        b'{"page":1,"user":2}',
    ]
    seen = columns(lines, arrival_ms=[AT_MS, -1, AT_MS, AT_MS, AT_MS // 1000], time=None)
    want = [Reason.OK, Reason.TIME_MISSING, Reason.TOMBSTONE, Reason.ITEM_MISSING, Reason.TIME_LOOKS_LIKE_SECONDS]
    assert seen.reasons.tolist() == want
    assert seen.event_ms.tolist() == [AT_MS, NO_TIME, AT_MS, AT_MS, NO_TIME]
    with pytest.raises(UsageError):
        columns(lines, time=None)


def test_batches_are_joined_in_order() -> None:
    batches = [
        MemoryBatch([record(1), None], [AT_MS, 2], first=10),
        MemoryBatch([], [], first=12),
        MemoryBatch([record(2)], None, first=20),
    ]
    seen = extractor().columns(batches)
    assert seen.offsets.tolist() == [10, 11, 20]
    assert seen.next_offset == 21
    assert seen.reasons.tolist() == [Reason.OK, Reason.TOMBSTONE, Reason.OK]
    assert seen.arrival_ms.tolist() == [AT_MS, 2, AT_MS]
    assert seen.new_keys == (0, 1)


def test_an_empty_batch_and_none_at_all() -> None:
    reader = extractor()
    seen = reader.columns([MemoryBatch([], first=3)])
    assert len(seen.reasons) == len(seen.offsets) == 0
    assert seen.next_offset == 3
    with pytest.raises(UsageError):
        reader.columns([])


def test_a_separator_or_a_second_record_within_a_record_shifts_no_row() -> None:
    half = record(1)[:20], record(1)[20:]
    lines: list[bytes | None] = [
        record(1) + b"\n" + record(2),
        b" ",
        record(3),
        half[0],
        half[1] + record(4),
        record(5),
    ]
    table = KeyTable()
    seen = columns(lines, table)
    assert seen.reasons.tolist() == [Reason.MALFORMED] * 2 + [Reason.OK] + [Reason.MALFORMED] * 2 + [Reason.OK]
    assert list(table) == [3, 5]


def test_pretty_printed_records_are_ordinary() -> None:
    line = b'{\r\n\t"page" : "/a" ,\n "user"\n: "u", "at": 1700000000000\n}\n'
    assert columns([line] * 3).reasons.tolist() == [Reason.OK] * 3


def test_long_records_with_many_objects_are_ordinary() -> None:
    line = record()[:-1] + b',"x":[' + b",".join([b'{"y":[]}'] * 100) + b"]}"
    assert columns([line] * 2000).reasons.tolist() == [Reason.OK] * 2000
    wide = record()[:-1] + b',"x":[' + b",".join([b"{}"] * 300) + b"]}"  # more brackets than levels: judged strictly
    assert columns([wide, line] * 5).reasons.tolist() == [Reason.OK] * 10


@pytest.mark.parametrize(
    ("item", "spelled"),
    [
        ("né", '"né"'),
        ("né", '"n\\u00e9"'),
        ("né", '"n\\u00E9"'),
        ("né", '"\\u006eé"'),
        ("a/b", '"a/b"'),
        ("a/b", '"a\\/b"'),
        ("a/b", '"a\\u002fb"'),
        (r"a\.b", '"a\\u002Eb"'),
        ("user", '"user" '),
        ("user", '"\\u0075\\u0073\\u0065\\u0072"'),
    ],
)
def test_a_second_item_is_found_however_it_is_spelled(item: str, spelled: str) -> None:
    name = item.replace("\\.", ".")
    good = f'{{"page":1,"{name}":"u","at":{AT_MS}}}'.encode()
    alone = f'{{"page":1,{spelled}:"u","at":{AT_MS}}}'.encode()
    twice = f'{{"page":1,"{name}":"u","at":{AT_MS},{spelled}:"v"}}'.encode()
    for others in ([], [good] * 5):
        seen = columns([*others, twice, alone, *others], item=item)
        want = [Reason.OK] * len(others) + [Reason.DUPLICATE_FIELD, Reason.OK] + [Reason.OK] * len(others)
        assert seen.reasons.tolist() == want


def test_a_second_item_in_one_record_is_not_hidden_by_a_missing_one_in_another() -> None:
    twice, missing = record()[:-1] + b',"user":"v"}', b'{"page":"/a","at":1700000000000}'
    want = [Reason.OK, Reason.DUPLICATE_FIELD, Reason.ITEM_MISSING, Reason.OK]
    assert columns([record(), twice, missing, record()]).reasons.tolist() == want
    value = b'{"page":"/a","at":1700000000000,"x":"user"}'  # the name is there, but not as a field
    assert columns([record(), twice, value, record()]).reasons.tolist() == want


def test_a_name_that_also_stands_elsewhere_hides_no_second_one() -> None:
    elsewhere = record()[:-1] + b',"x":{"user":1,"page":[{"at":2}]},"y":"user"}'
    twice = elsewhere[:-1] + b',"user":"v"}'
    inside = record()[:-1] + b',"x":{"user":1,"user":2}}'  # twice, but not where the item is
    huge = elsewhere[:-1] + b',"z":' + b"9" * 5000 + b',"w":1e999}'
    for others in ([], [elsewhere] * 5, [record()] * 5):
        seen = columns([*others, elsewhere, twice, inside, huge, *others])
        plain = [Reason.OK] * len(others)
        want = [*plain, Reason.OK, Reason.DUPLICATE_FIELD, Reason.OK, Reason.OK, *plain]
        assert seen.reasons.tolist() == want


def test_records_of_more_bytes_than_a_block_takes() -> None:
    long = record()[:-1] + b',"x":"' + b"y" * 900_000 + b'"}'
    twice = long[:-1] + b',"user":1}'
    seen = columns([long] * 10 + [twice] + [record()] * 10)
    assert seen.reasons.tolist() == [Reason.OK] * 10 + [Reason.DUPLICATE_FIELD] + [Reason.OK] * 10
