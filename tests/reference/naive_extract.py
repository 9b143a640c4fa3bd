"""What a record means, record by record and as plainly as possible: the oracle of extraction.

Shares no code with the package: the standard library's json and datetime, and msgpack for the length of a key.
Reasons are given by name, so that the numbers stay the package's own affair.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor, isfinite
from zoneinfo import ZoneInfo

import msgpack
from reference.naive_scan import naive_scan

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
    naive_zone: str | None = None
    float_items: bool = False
    max_key_bytes: int = 1024
    max_record_bytes: int = 1 << 20
    declared: frozenset[object] | None = None
    elsewhere: frozenset[object] = frozenset()
    """Declared keys of other partitions."""


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


def placed_by(value: bytes | None, rules: Rules) -> object:
    """The counting key of a record, counted or not; a Refused where it has none."""
    reason, document = read_document(value, rules)
    if document is not None:
        parts = [look_up(document, path) for path in rules.key]
    elif reason == "TOMBSTONE":
        parts = [Refused("MISSING")] * len(rules.key)
    else:
        assert value is not None
        found = naive_scan(value[5:] if reason == "FRAMED" else value, list(rules.key))
        parts = [flat_value(raw) for raw in found]
    for part in parts:
        if not isinstance(part, str | int) or (isinstance(part, int) and part not in INT64):
            return Refused("UNUSABLE")
    return key_of(parts)


def meaning(value: bytes | None, rules: Rules, arrival_ms: int = -1) -> Meaning:
    reason, document = read_document(value, rules)
    fields = {}
    for path in [rules.item, *([rules.time] if rules.time else []), *rules.key]:
        fields[path] = Refused("MISSING") if document is None else look_up(document, path)
    if document is None and reason != "TOMBSTONE":
        assert value is not None
        paths = [path for path in fields if path != rules.item]
        found = naive_scan(value[5:] if reason == "FRAMED" else value, paths)
        fields |= {path: flat_value(raw) for path, raw in zip(paths, found, strict=True)}
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
    value = without_mark(value)
    if value is None or value == b"":
        return "TOMBSTONE", None
    if len(value) > rules.max_record_bytes:
        return "RECORD_TOO_LONG", None
    if len(value) >= 5 and value.startswith(b"\x00"):
        return "FRAMED", None
    text = value.decode("utf-8", "surrogateescape")
    if depth(text) > 256:
        return "MALFORMED", None
    try:
        document = loaded(text)
    except ValueError:
        document = None
    if isinstance(document, Pairs):
        return None, document
    return "NOT_UTF8" if escaped_bytes(text) else "MALFORMED", None


def without_mark(value: bytes | None) -> bytes | None:
    return value[3:] if value is not None and value[:3] == b"\xef\xbb\xbf" else value


def escaped_bytes(text: str) -> bool:
    """Whether some of its bytes were not UTF-8."""
    return any("\udc80" <= char <= "\udcff" for char in text)


def broken(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def loaded(text: str) -> object:
    """Raises ValueError for what is no JSON; NaN and the infinities are taken."""

    def constant(name: str) -> object:
        return Decimal(name)

    def integer(digits: str) -> int:
        return int(digits) if len(digits) < 4000 else int(digits[:4000])

    document = json.loads(
        text, object_pairs_hook=Pairs, parse_constant=constant, parse_float=Decimal, parse_int=integer
    )
    return document


def flat_value(raw: bytes | None) -> object:
    """What the bytes of a text, number or word mean as a field."""
    try:
        value = None if raw is None else loaded(raw.decode("utf-8", "surrogateescape"))
    except ValueError:
        value = None
    if value is None:
        return Refused("MISSING")
    return judged(value)


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
    return judged(node)


def judged(value: object) -> object:
    """A field's value, unless it is of a type that no field may have, or no Unicode."""
    if isinstance(value, str) and broken(value):
        return Refused("NOT_UNICODE")
    return Refused("TYPE") if isinstance(value, bool | list) else value


def read_time(value: object, unit: str, rules: Rules) -> tuple[int | None, str | None]:
    if value == Refused("NOT_UNICODE"):
        return None, "TIME_TYPE" if unit in UNITS else "TIME_UNREADABLE"
    if isinstance(value, Refused):
        return None, f"TIME_{value.why}"
    if unit in UNITS:
        return read_number(value, unit, rules)
    if not isinstance(value, str):
        return None, "TIME_TYPE"
    try:
        moment = pattern_moment(value, unit) if "%" in unit else iso_moment(value)
    except (ValueError, OverflowError):
        return None, "TIME_UNREADABLE"
    if moment.tzinfo is None:
        if rules.naive_zone is None:
            return None, "TIME_NAIVE"
        moment = local_moment(moment, ZoneInfo(rules.naive_zone))
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    ms = floor(Fraction(since // timedelta(microseconds=1), 1000))
    return (ms, None) if rules.earliest_ms <= ms <= rules.latest_ms else (None, "TIME_IMPLAUSIBLE")


def pattern_moment(text: str, pattern: str) -> datetime:
    """A %Z at the end is UTC or GMT."""
    if not pattern.endswith("%Z"):
        return datetime.strptime(text, pattern)  # noqa: DTZ007 -- the caller gives it a zone, or refuses
    if text[-3:].upper() not in ("UTC", "GMT"):
        raise ValueError(text)
    return datetime.strptime(text[:-3], pattern[:-2]).replace(tzinfo=UTC)


def iso_moment(text: str) -> datetime:
    """By the pieces of the usual spelling; other spellings are fromisoformat's."""
    usual = re.fullmatch(
        r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?(\[[^\[\]]+\])?", text, re.ASCII
    )
    if usual is None or (usual[7] and not usual[6]):
        return datetime.fromisoformat(text)
    day, hour, minute, second, fraction, offset, _ = usual.groups()
    if (hour == "24" and (minute != "00" or second != "00" or (fraction or ".0").strip(".0"))) or int(hour) > 24:
        raise ValueError(text)
    if int(minute) > 59 or int(second) > 60:
        raise ValueError(text)
    zone = "" if offset is None else "+00:00" if offset in "Zz" else offset
    midnight = datetime.fromisoformat(f"{day}T00:00:00{zone}")
    micros = int((fraction or ".0")[1:7].ljust(6, "0"))
    return midnight + timedelta(hours=int(hour), minutes=int(minute), seconds=int(second), microseconds=micros)


def local_moment(moment: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks of the zone show this; one they leave out: by the offset of the day before."""
    naive = moment.replace(tzinfo=UTC)
    offsets = [(naive + timedelta(days=days)).astimezone(zone).utcoffset() for days in (-1, 1)]
    instants = [naive - offset for offset in offsets if offset is not None]
    shown = [instant for instant in instants if instant.astimezone(zone).replace(tzinfo=UTC) == naive]
    return min(shown) if shown else instants[0]


def read_number(value: object, unit: str, rules: Rules) -> tuple[int | None, str | None]:
    if isinstance(value, str):
        digits = value.removeprefix("-").replace(".", "", 1)
        whole, _, fraction = value.removeprefix("-").partition(".")
        fits = 0 < len(whole) <= 40 and len(fraction) <= 40 and (fraction or not value.endswith("."))
        if not digits.isascii() or not digits.isdigit() or not fits:
            return None, "TIME_TYPE"
        value = Decimal(value) if "." in value else int(value)
    assert isinstance(value, int | Decimal)
    if isinstance(value, Decimal) and not isfinite(float(value)):
        return None, "TIME_UNREADABLE"
    if isinstance(value, Decimal) and unit in ("us", "ns"):
        if not float(value).is_integer():
            return None, "TIME_TYPE"
        value = int(float(value))
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
    if Refused("NOT_UNICODE") in parts:
        return "KEY_NOT_UNICODE"
    if any(not isinstance(part, str | int) for part in parts):
        return "KEY_TYPE"
    if any(isinstance(part, int) and part not in INT64 for part in parts):
        return "KEY_RANGE"
    if rules.declared is not None and key in rules.declared:
        return None
    if len(msgpack.packb(tuple(parts))) > rules.max_key_bytes:
        return "KEY_TOO_LONG"
    if rules.declared is None:
        return None
    return "KEY_MISPLACED" if key in rules.elsewhere else "KEY_NOT_DECLARED"


def item_problem(item: object, rules: Rules) -> str | None:
    if isinstance(item, Refused):
        return f"ITEM_{item.why}"
    if isinstance(item, Decimal) and not isfinite(float(item)):
        return "ITEM_NOT_FINITE"
    if isinstance(item, Decimal) and rules.float_items:
        return None
    if not isinstance(item, str | int):
        return "ITEM_TYPE"
    return "ITEM_RANGE" if isinstance(item, int) and item not in INT64 else None
