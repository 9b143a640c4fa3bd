"""Which fields of an input look like the time, the item and the key, from its first records. No content is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from sfm_stream.clock import now_ms
from sfm_stream.errors import UsageError
from sfm_stream.events.event_schema import ISO8601, NUMERIC_UNITS, EventSchema, parse_path
from sfm_stream.events.event_time import TimeReader
from sfm_stream.transport.files.lines import LineInput
from sfm_stream.types import InputEnd, Reason
from sfm_stream.units import DAY_MS

RECORDS = 2000
"""Records that are looked at."""
_EARLIEST_MS = 631_152_000_000
_UNITS = (*NUMERIC_UNITS, ISO8601)
_MOST = 0.9
"""The share of the records that a field has to be in, and to be of one kind in."""
_TIMES = ["at", "time", "ts", "timestamp", "event_time", "datetime", "date", "created", "created_at"]
_ITEMS = [
    "user",
    "user_id",
    "userid",
    "uid",
    "visitor",
    "visitor_id",
    "client",
    "client_id",
    "device",
    "customer",
    "ip",
]
_KEYS = ["page", "url", "path", "campaign", "country", "product", "category", "channel", "site", "host", "event"]
_NAMES = {"time": _TIMES, "item": _ITEMS, "key": _KEYS}
"""Names that fields of each role often have, the most telling first."""


@dataclass(frozen=True, slots=True)
class SeenField:
    """One field of the records that were looked at. records: how many have it. distinct: how many values it has.

    unit: the event.time_unit in which nearly all of its values are plausible times; "" for none. is_naive: these times
    have no offset. is_value: it is text or an integer. is_integer: all of its values are integers.
    """

    path: str
    records: int
    distinct: int
    unit: str
    is_naive: bool
    is_value: bool
    is_integer: bool


@dataclass(frozen=True, slots=True)
class FieldGuess:
    """What was seen, and what it looks like; None where nothing fits. records: that were read, objects or not.

    fields: those that a configuration can name.
    """

    records: int
    fields: tuple[SeenField, ...]
    time: SeenField | None
    item: SeenField | None
    key: SeenField | None


@dataclass(slots=True)
class _Column:
    """The values of one field, while the sample is looked at."""

    values: list[object] = field(default_factory=list)

    def seen(self, path: str) -> SeenField:
        unit, is_naive = _unit_of(self.values)
        kinds = [isinstance(value, str | int) and not isinstance(value, bool) for value in self.values]
        distinct = len({json.dumps(value) for value in self.values})
        is_integer = all(type(value) is int for value in self.values)
        return SeenField(path, len(kinds), distinct, unit, is_naive, sum(kinds) >= _MOST * len(kinds), is_integer)


def guess_fields(path: str) -> FieldGuess:
    """What the first records of an input file look like. Raises as LineInput where it cannot be read."""
    columns: dict[str, _Column] = {}
    records = 0
    for value in islice(_records(path), RECORDS):
        records += 1
        try:
            record = json.loads(value)
            found = list(_flat(record, "")) if isinstance(record, dict) else []
        except (ValueError, RecursionError):
            continue
        for name, content in found:
            columns.setdefault(name, _Column()).values.append(content)
    fields = tuple(column.seen(name) for name, column in columns.items() if _can_be_named(name))
    there = [each for each in fields if each.records >= _MOST * records]
    time = _best("time", [each for each in there if each.unit])
    values = [each for each in there if each.is_value and each is not time and each.distinct > 1]
    # A number of ten digits may be a time or not: what is one comes last.
    item = _best("item", sorted(values, key=lambda each: (bool(each.unit), -each.distinct)))
    grouping = [each for each in values if each is not item]
    key = _best("key", sorted(grouping, key=lambda each: (bool(each.unit), each.distinct)))
    return FieldGuess(records, fields, time, item, key)


def _records(path: str) -> Iterator[bytes]:
    lines = LineInput(path, complete=True)
    try:
        while not isinstance(batch := lines.read(0), InputEnd):
            if batch is not None:
                yield from (value for value in batch.values() if value is not None)
    finally:
        lines.close()


def _flat(record: dict[str, object], before: str) -> Iterator[tuple[str, object]]:
    """(path, value) of every field; those of objects inside by their dotted paths. Lists are left out."""
    for name, value in record.items():
        if "\\" in name:  # before a dot it would be one path with that of another name
            continue
        path = before + name.replace(".", "\\.")
        if isinstance(value, dict):
            yield from _flat(value, f"{path}.")
        elif not isinstance(value, list) and value is not None:
            yield path, value


def _can_be_named(path: str) -> bool:
    """Whether a configuration can have this path: no empty name, no quote, no control character."""
    try:
        parse_path(path)
    except UsageError:
        return False
    return True


def _unit_of(values: list[object]) -> tuple[str, bool]:
    """(the unit in which nearly all of these are plausible times, or "", whether they have no offset)."""
    for unit in _UNITS:
        schema = EventSchema(
            key=(), item="item", time="time", time_unit=unit, earliest_ms=_EARLIEST_MS, latest_ms=now_ms() + DAY_MS
        )
        reader = TimeReader(schema)
        reasons = [reader.read(value)[1] for value in values if not isinstance(value, bool)]
        for reason, is_naive in ((Reason.OK, False), (Reason.TIME_NAIVE, True)):
            if reasons and reasons.count(reason) >= _MOST * len(values):
                return unit, is_naive
    return "", False


def _best(role: str, candidates: list[SeenField]) -> SeenField | None:
    """The first whose last name is one of those of the role, in their order; else the first of all."""
    by_name = {each.path.rpartition(".")[2].lower(): each for each in reversed(candidates)}
    named = (by_name[name] for name in _NAMES[role] if name in by_name)
    return next(chain(named, candidates), None)
