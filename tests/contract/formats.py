"""What the contract of formats has to know of each of them; a format joins by a case in CASES."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from support.json_records import BAND, NOW_S, SCHEMAS, documents, good, spoiled

from sfm_stream.events.event_schema import EventSchema, parse_path
from sfm_stream.events.formats.format import Format
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.types import Reason


@dataclass(frozen=True)
class FormatCase:
    """A format and its records, for some schemas.

    record: one that counts, by its number; its item is "u<number>". with_item: that record with other bytes in place
    of the item. hostile: records of all kinds. hostile_items: bytes that end no field. refused: records that have a
    reason as a whole, for the schema "plain".
    """

    make: Callable[[EventSchema], Format]
    schemas: Mapping[str, EventSchema]
    record: Callable[[EventSchema, int], bytes]
    with_item: Callable[[EventSchema, int, bytes], bytes]
    hostile: Callable[[EventSchema], st.SearchStrategy[bytes | None]]
    hostile_items: list[bytes]
    refused: Mapping[str, tuple[Reason, bytes]]


# JSON


def _json_with_item(schema: EventSchema, number: int, item: bytes) -> bytes:
    return good(schema, number).replace(b'"u%d"' % number, item)


JSON = FormatCase(
    make=JsonFormat,
    schemas=SCHEMAS,
    record=good,
    with_item=_json_with_item,
    hostile=lambda schema: st.one_of(
        spoiled(schema), documents.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=30)
    ),
    hostile_items=[
        b'"Ann \\ud83d"',
        b'"\xff\xfe"',
        b"\xc3(",
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"[" * 300 + b"]" * 300,
        b'{"at":' * 300 + b"1" + b"}" * 300,
        b"'Ann'",
        b"",
        b'"' + b"x" * 5000 + b'"',
        b'"\\q"',
        b"9" * 5000,
        b'{"at":1}',
    ],
    refused={
        "no object": (Reason.MALFORMED, b"[1]"),
        "not UTF-8": (Reason.NOT_UTF8, b"\xff\xfe{}"),
        "truncated": (Reason.MALFORMED, b'{"page":"p","user":"u","at":1'),
        "257 deep": (Reason.MALFORMED, b'{"x":' * 257 + b"1" + b"}" * 257),
        "item twice": (Reason.DUPLICATE_FIELD, b'{"page":"p","user":"u","at":1700000000000,"user":"u"}'),
        "key twice": (Reason.DUPLICATE_FIELD, b'{"page":"p","user":"u","at":1700000000000,"page":"p"}'),
        "time twice": (Reason.DUPLICATE_FIELD, b'{"page":"p","user":"u","at":1,"at":1700000000000}'),
    },
)


# The example of docs/extending.md


def example() -> type[Any]:
    """The format of the page, from its first block of code."""
    page = (Path(__file__).parents[2] / "docs/extending.md").read_text("utf-8")
    names: dict[str, Any] = {}
    code = re.findall(r"```python\n(.*?)```", page, re.S)[0]
    exec(compile(code, "docs/extending.md", "exec"), names)  # noqa: S102 -- the page's own code
    return names["LtsvFormat"]  # type: ignore[no-any-return]


def _ltsv_with_item(schema: EventSchema, number: int, item: bytes) -> bytes:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6}
    time = [] if schema.time is None else [(schema.time, b"%d" % (NOW_S * per_second[schema.time_unit] + number))]
    values = [*time, ("ballast", b"x" * (number % 7)), (schema.item, item), *((key, b"k") for key in schema.key)]
    return b"\t".join(b"%b:%b" % (parse_path(dotted)[0].encode(), value) for dotted, value in values)


@st.composite
def _ltsv_spoiled(draw: st.DrawFn, schema: EventSchema) -> bytes | None:
    """A record with bytes exchanged, or members of names that matter."""
    record = _ltsv_with_item(schema, draw(st.integers(0, 99)), b"u")
    labels = [*(parse_path(path)[0] for path in (schema.item, *schema.key, schema.time or "x")), "other", ""]
    member = st.tuples(st.sampled_from(labels), st.sampled_from([b":", b"", b"::"]), st.binary(max_size=5))
    change = draw(st.integers(0, 3))
    if change == 0:
        at = draw(st.integers(0, len(record)))
        return record[:at] + draw(st.binary(max_size=4)) + record[at + draw(st.integers(0, 3)) :]
    if change == 1:
        return draw(st.sampled_from([None, b"", b"\t", b":", b"\x00abcd" + record, b"\xef\xbb\xbf" + record]))
    more = [label.encode() + colon + text for label, colon, text in draw(st.lists(member, max_size=4))]
    return b"\t".join([record, *more] if change == 2 else more)


LTSV = FormatCase(
    make=example(),
    schemas={
        "plain": SCHEMAS["plain"],
        "no key": EventSchema(key=(), item="user", time="at", time_unit="us", **BAND),
        "two parts": EventSchema(key=("page", "né"), item=r"a\.b", time=None, time_unit="ms", **BAND),
    },
    record=lambda schema, number: _ltsv_with_item(schema, number, b"u%d" % number),
    with_item=_ltsv_with_item,
    hostile=_ltsv_spoiled,
    hostile_items=[b"", b"\xff\xfe", b"\xed\xa0\xbd", b"x" * 5000, b"NaN", b":", b"at:1", b"\x00", b'"', b"[" * 300],
    refused={
        "no colon": (Reason.MALFORMED, b"at:1700000000000\tpage:p\tuser"),
        "item twice": (Reason.DUPLICATE_FIELD, b"at:1700000000000\tpage:p\tuser:u\tuser:u"),
        "time twice": (Reason.DUPLICATE_FIELD, b"at:1700000000000\tpage:p\tuser:u\tat:1"),
    },
)

CASES = {"json": JSON, "ltsv": LTSV}
"""By registered name; ltsv is the example, which is not registered."""
EXAMPLES = {"ltsv"}
