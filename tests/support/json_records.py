"""JSON records that count, and all kinds that do not: schemas and strategies."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from sfm_stream.events.event_schema import EventSchema, parse_path

BAND: dict[str, Any] = {"earliest_ms": 1_600_000_000_000, "latest_ms": 1_800_000_000_000}
NOW_S = 1_700_000_000
SHORT: dict[str, Any] = {"max_key_bytes": 12, "max_record_bytes": 2000}
SCHEMAS = {
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


def good(schema: EventSchema, number: int) -> bytes:
    """A record of the format that is counted."""
    document: dict[str, Any] = {"ballast": "x" * (number % 7)}
    time: Any = NOW_S * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(schema.time_unit, 1) + number
    if schema.time_unit == "iso8601":
        time = "2023-11-14T22:13:20" + ("" if schema.naive_zone else "+00:00")
    elif "%" in schema.time_unit:
        time = "14/11/2023:22:13:20 " + ("+0100" if "%z" in schema.time_unit else "UTC")
    values = [
        *([(schema.time, time)] if schema.time else []),
        (schema.item, f"u{number}"),
        *((key, 1) for key in schema.key),
    ]
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
    """An object in which names of the schemas turn up often, sometimes twice, sometimes in disguise."""
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
def spoiled(draw: st.DrawFn, schema: EventSchema) -> bytes | None:
    """A good record with one value exchanged, members added, or bytes changed."""
    record = good(schema, draw(st.integers(0, 99)))
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
