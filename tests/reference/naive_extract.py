"""What a record means, record by record and as plainly as possible: the oracle of extraction.

Shares no code with the package: the standard library's json and datetime, and msgpack for the length of a key.
Reasons are given by name, so that the numbers stay the package's own affair.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor

import msgpack

INT64 = range(-(2**63), 2**63)
UNITS = {"s": Fraction(1000), "ms": Fraction(1), "us": Fraction(1, 1000), "ns": Fraction(1, 10**6)}
LOOKS_LIKE = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}


@dataclass(frozen=True)
class Rules:
    """A format with its paths already split."""

    key: tuple[tuple[str, ...], ...]
    item: tuple[str, ...]
    time: tuple[str, ...] | None
    time_unit: str
    earliest_ms: int
    latest_ms: int
    naive_utc: bool = False
    float_items: bool = False
    max_key_bytes: int = 1024
    max_record_bytes: int = 1 << 20
    declared: frozenset[object] | None = None


@dataclass(frozen=True)
class Meaning:
    """reason "OK": key and item are given. event_ms: None where there is none."""

    reason: str
    event_ms: int | None = None
    key: object = None
    item: object = None


class Pairs(list):  # type: ignore[type-arg]
    """A JSON object as it was written: every member, repeated ones too."""


@dataclass(frozen=True)
class Refused:
    """A field without a value, and the end of the reason."""

    why: str


def meaning(value: bytes | None, rules: Rules, arrival_ms: int = -1) -> Meaning:
    reason, document = read_document(value, rules)
    fields = {}
    for path in [rules.item, *([rules.time] if rules.time else []), *rules.key]:
        fields[path] = Refused("MISSING") if document is None else look_up(document, path)
    repeated = any(field == Refused("REPEATED") for field in fields.values())
    if reason is None and repeated:
        reason = "DUPLICATE_FIELD"
    if rules.time is None:
        event_ms, problem = read_time(Refused("MISSING") if arrival_ms < 0 else arrival_ms, "ms", rules)
    else:
        event_ms, problem = read_time(fields[rules.time], rules.time_unit, rules)
    parts = [fields[path] for path in rules.key]
    key = key_of(parts)
    reason = reason or problem or key_problem(parts, key, rules) or item_problem(fields[rules.item], rules)
    if reason is not None:
        return Meaning(reason, event_ms)
    item = fields[rules.item]
    return Meaning("OK", event_ms, key, float(item) if isinstance(item, Decimal) else item)


def read_document(value: bytes | None, rules: Rules) -> tuple[str | None, Pairs | None]:
    if value is None or value == b"":
        return "TOMBSTONE", None
    if len(value) > rules.max_record_bytes:
        return "RECORD_TOO_LONG", None
    if len(value) >= 5 and value.startswith(b"\x00"):
        return "FRAMED", None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "NOT_UTF8", None
    if depth(text) > 256:
        return "MALFORMED", None

    def constant(name: str) -> object:
        raise ValueError(name)

    def integer(digits: str) -> int:
        return int(digits) if len(digits) < 4000 else int(digits[:4000])

    try:
        document = json.loads(
            text, object_pairs_hook=Pairs, parse_constant=constant, parse_float=Decimal, parse_int=integer
        )
    except ValueError:
        return "MALFORMED", None
    if not isinstance(document, Pairs) or any(
        "\ud800" <= char <= "\udfff" for text in texts(document) for char in text
    ):
        return "MALFORMED", None
    return None, document


def depth(text: str) -> int:
    """The deepest nesting, by walking over the characters."""
    deepest = level = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            level += 1
            deepest = max(deepest, level)
        elif char in "]}":
            level -= 1
    return deepest


def texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Pairs):
        for name, value in node:
            yield name
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)


def look_up(document: object, path: tuple[str, ...]) -> object:
    node = document
    for name in path:
        if node is None:
            return Refused("MISSING")
        if not isinstance(node, Pairs):
            return Refused("TYPE")
        values = [value for own, value in node if own == name]
        if len(values) > 1:
            return Refused("REPEATED")
        node = values[0] if values else None
    if node is None:
        return Refused("MISSING")
    return Refused("TYPE") if isinstance(node, bool | list) else node


def read_time(value: object, unit: str, rules: Rules) -> tuple[int | None, str | None]:
    if isinstance(value, Refused):
        return None, f"TIME_{value.why}"
    if unit in UNITS:
        return read_number(value, unit, rules)
    if not isinstance(value, str):
        return None, "TIME_TYPE"
    try:
        moment = datetime.strptime(value, unit) if "%" in unit else datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        return None, "TIME_UNREADABLE"
    if moment.tzinfo is None:
        if not rules.naive_utc:
            return None, "TIME_NAIVE"
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    ms = floor(Fraction(since // timedelta(microseconds=1), 1000))
    return (ms, None) if rules.earliest_ms <= ms <= rules.latest_ms else (None, "TIME_IMPLAUSIBLE")


def read_number(value: object, unit: str, rules: Rules) -> tuple[int | None, str | None]:
    if isinstance(value, str) or (isinstance(value, Decimal) and unit in ("us", "ns")):
        return None, "TIME_TYPE"
    assert isinstance(value, int | Decimal)
    if abs(float(value) if isinstance(value, Decimal) else 0) == float("inf"):
        return None, "TIME_UNREADABLE"
    exact = Fraction(value)
    if not -(2**63) <= exact < 2**63:
        return None, "TIME_IMPLAUSIBLE"
    if rules.earliest_ms <= in_ms(exact, unit) <= rules.latest_ms:
        return in_ms(exact, unit), None
    for other, name in LOOKS_LIKE.items():
        if rules.earliest_ms <= in_ms(exact, other) <= rules.latest_ms:
            return None, f"TIME_LOOKS_LIKE_{name}"
    return None, "TIME_IMPLAUSIBLE"


def in_ms(exact: Fraction, unit: str) -> int:
    """To whole microseconds first, as far as the unit has fractions at all; then down to milliseconds."""
    if unit in ("us", "ns"):
        return floor(floor(exact) * UNITS[unit])
    return floor(Fraction(round(exact * UNITS[unit] * 1000), 1000))


def key_of(parts: list[object]) -> object:
    return parts[0] if len(parts) == 1 else tuple(parts)


def key_problem(parts: list[object], key: object, rules: Rules) -> str | None:
    if any(isinstance(part, Refused) and part.why in ("MISSING", "REPEATED") for part in parts):
        return "KEY_MISSING"
    if any(not isinstance(part, str | int) for part in parts):
        return "KEY_TYPE"
    if any(isinstance(part, int) and part not in INT64 for part in parts):
        return "KEY_RANGE"
    if rules.declared is not None and key in rules.declared:
        return None
    if len(msgpack.packb(tuple(parts))) > rules.max_key_bytes:
        return "KEY_TOO_LONG"
    return None if rules.declared is None else "KEY_NOT_DECLARED"


def item_problem(item: object, rules: Rules) -> str | None:
    if isinstance(item, Refused):
        return f"ITEM_{item.why}"
    if isinstance(item, Decimal) and rules.float_items:
        return "ITEM_RANGE" if abs(float(item)) == float("inf") else None
    if not isinstance(item, str | int):
        return "ITEM_TYPE"
    return "ITEM_RANGE" if isinstance(item, int) and item not in INT64 else None
