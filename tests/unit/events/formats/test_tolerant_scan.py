"""What the scan reads of single records, and of very long and deep ones."""

from __future__ import annotations

import pytest

from sfm_stream.events.formats.tolerant_scan import TolerantScan

WIDE: dict[str, bytes] = {
    "a text of 16 MiB": b'"' + b"x" * (16 << 20) + b'"',
    "escapes": b'"' + b"\\n" * (1 << 20) + b'"',
    "300,000 deep": b"[" * 300_000 + b"]" * 300_000,
    "300,000 objects deep": b'{"at":' * 300_000 + b"}" * 300_000,
    "commas in brackets": b"[" + b"," * (1 << 20) + b"]",
    "pairs of brackets": b"[]" * (1 << 18),
    "members": b"{" + b'"a":1,' * (1 << 17) + b"}",
    "half a megabyte of no UTF-8": b'"' + b"\xff" * (1 << 19) + b'"',
}


@pytest.mark.parametrize("what", WIDE)
def test_an_item_of_any_length_and_depth(what: str) -> None:
    scan = TolerantScan([("t",), ("k", "a"), ("k", "b")])
    record = b'{"k": {"a": "x", "i": %b, "b": 7}, "i": %b, "t": 5 }' % (WIDE[what], WIDE[what])
    assert scan.values(record) == [b"5", b'"x"', b"7"]


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (b'{"t":1}', b"1"),
        (b'  {"t" : 1 , "u":2}', b"1"),
        (b'x{"\\u0074":1}', b"1"),
        (b'{"t":1,"\\u0074":2}', None),
        (b'{"t":1,"t":1}', None),
        (b'{"a":{"t":1,"t":2},"t":3}', b"3"),
        (b'[{"t":1}]', None),
        (b'{"t":[1]}', None),
        (b'{"t":1[2]}', None),
        (b'{"t":{}}', None),
        (b'{"t":1}{"t":2}', b"1"),
        (b'{"t":1,"i":"open', b"1"),
        (b'{"t":1,"i":[[[', b"1"),
        (b'{"i":1,"t":12', None),
        (b'{"i":"Ann,"t":1}', None),
        (b'{"i":]"t":1}', None),
        (b'{"i":{]"t":1}', None),
        (b'{"i":{],"t":1}', b"1"),
        (b'{"i":[}}', None),
        (b'{:1,"t"2,:,"t":3}', b"3"),
        (b'{"x" "t":1}', None),
        (b'{"x":"t":1}', None),
        (b"{,,}", None),
        (b"}", None),
        (b"", None),
        (b'"{"t":1}', None),
    ],
)
def test_what_is_found_of_a_member(record: bytes, value: bytes | None) -> None:
    assert TolerantScan([("t",)]).values(record) == [value]


def test_nothing_is_looked_for_where_there_is_no_path() -> None:
    assert TolerantScan([]).values(b'{"t":1}') == []
