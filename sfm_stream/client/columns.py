"""The columns of rows as tables: what each is made of, and its type. docs/client.md describes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from sfm_stream.answers.key_notation import key_text
from sfm_stream.client.source import AnswerTerms, JsonObject

RowColumnType: TypeAlias = Literal["text", "texts", "time", "number", "count", "flag"]
"""A time is given in milliseconds since 1970 UTC. A number that nothing limits is infinite."""
RowColumns: TypeAlias = dict[str, tuple[RowColumnType, Callable[[JsonObject], Any]]]
"""Name -> type and what it is of a row."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESTIMATE: dict[str, RowColumnType] = {
    "estimate": "number",
    "standard_error": "number",
    "low": "number",
    "high": "number",
    "confidence": "number",
    "status": "text",
}
_ROW: dict[str, RowColumnType] = _ESTIMATE | {
    "epsilon": "number",
    "origin": "text",
    "releases": "text",
    "released": "count",
    "windows": "count",
    "complete": "flag",
    "missing_ms": "count",
    "missing": "text",
    "epoch": "count",
}
_RANK: dict[str, RowColumnType] = {
    "rank_low": "count",
    "rank_high": "count",
    "tied": "flag",
    "published": "count",
    "others_withheld": "flag",
}


def estimate_columns(terms: AnswerTerms) -> RowColumns:
    """Of rows of estimates."""
    return _key_columns(terms) | _row_columns()


def ranked_columns(terms: AnswerTerms) -> RowColumns:
    """Of rows with ranks: those of estimates, and the ranks."""
    return estimate_columns(terms) | {name: (kind, _field(name)) for name, kind in _RANK.items()}


def compared_columns(terms: AnswerTerms) -> RowColumns:
    """Of rows of two spans side by side: the key, each row with a prefix, and their difference."""
    columns = _key_columns(terms)
    for side in ("first", "second"):
        of_side = _row_columns()
        columns |= {f"{side}_{name}": (kind, _in(side, make)) for name, (kind, make) in of_side.items()}
    found: dict[str, RowColumnType] = {"value": "number", "standard_error": "number", "low": "number", "high": "number"}
    for name, kind in found.items():
        infinite = {"value": None, "low": -math.inf}.get(name, math.inf)
        columns["difference" if name == "value" else f"difference_{name}"] = (
            kind,
            _in("difference", _field(name, infinite)),
        )
    columns["difference_sign"] = ("count", _in("difference", _field("sign")))
    columns["change"] = ("number", _field("change"))
    return columns


def part_columns(terms: AnswerTerms) -> RowColumns:
    """Of the parts of a pair: which part it is, and its estimate."""
    columns: RowColumns = {"part": ("text", _field("part"))}
    for name, kind in _ESTIMATE.items():
        columns[name] = (kind, _field(name, math.inf if kind == "number" else None))
    return columns


def _key_columns(terms: AnswerTerms) -> RowColumns:
    columns: RowColumns = {"pipeline": ("text", lambda row: terms.pipeline), "key": ("text", _shown_key)}
    for place, name in enumerate(terms.key_fields):
        columns[f"key_{name}"] = ("text", _key_field(place))
    columns["keys"] = ("texts", lambda row: [_shown(key) for key in row.get("keys", ())])
    return columns


def _row_columns() -> RowColumns:
    columns: RowColumns = {
        "grain": ("text", _field("grain")),
        "window_start": ("time", lambda row: _time_ms(row["from"])),
        "window_end": ("time", lambda row: _time_ms(row["to"])),
    }
    for name, kind in _ROW.items():
        if name in ("releases", "missing"):
            columns[name] = (kind, _as_json(name))
        else:
            columns[name] = (kind, _field(name, math.inf if kind == "number" else None))
    return columns


def _field(name: str, otherwise: Any = None) -> Callable[[JsonObject], Any]:
    return lambda row: otherwise if row[name] is None else row[name]


def _as_json(name: str) -> Callable[[JsonObject], Any]:
    return lambda row: None if row[name] is None else json.dumps(row[name], separators=(",", ":"))


def _in(side: str, make: Callable[[JsonObject], Any]) -> Callable[[JsonObject], Any]:
    return lambda row: None if row[side] is None else make(row[side])


def _key_field(place: int) -> Callable[[JsonObject], str | None]:
    return lambda row: str(row["key"][place]) if row["key"] else None


def _shown_key(row: JsonObject) -> str | None:
    return None if row.get("keys") else _shown(row["key"])


def _shown(key: Sequence[str | int]) -> str:
    return key_text(tuple(key))


def _time_ms(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)


def values_of(columns: RowColumns, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Column -> its values, in the order of the rows; None for an empty place."""
    return {name: [make(row) for row in rows] for name, (_, make) in columns.items()}
