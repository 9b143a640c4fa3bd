"""The JSON Schema of a configuration file, for editors: every value as it is written in TOML, with what it means.

Descriptions are the docstrings of the tables. It refuses what is wrong with one setting by itself, as far as a schema
can say that; what depends on several settings, on files or on zones only the loader knows. Draft 7, as editors read it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sfm_stream.config import tables
from sfm_stream.config.tables import Settings
from sfm_stream.config.values import address, duration_ms, field_paths, instant_ms, number, span_name, time_parser
from sfm_stream.events.event_schema import ISO8601, NUMERIC_UNITS
from sfm_stream.privacy.epsilon import MAX_EPSILON, MIN_EPSILON
from sfm_stream.privacy.selection import MIN_DELTA
from sfm_stream.readable import duration, instant
from sfm_stream.sketch.shape import MAX_BUCKETS, MAX_LEVELS, MIN_BUCKETS, MIN_LEVELS

DIALECT = "http://json-schema.org/draft-07/schema#"

_LENGTH = r"[0-9]+[ \t\n\r\f\v]*(ms|s|m|h|d)"
_WRITTEN: dict[object, dict[str, Any]] = {
    duration_ms: {"type": "string", "pattern": f"^{_LENGTH}$", "examples": ["500ms", "90s", "15m", "1h", "7d"]},
    span_name: {
        "type": "string",
        "pattern": f"^({_LENGTH}|hour|day|week|month)$",
        "examples": ["5m", "15m", "hour", "day", "week", "month"],
    },
    instant_ms: {
        "type": "string",
        "format": "date-time",
        "pattern": r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$",
        "examples": ["2026-01-31T00:00:00Z"],
    },
    number: {"type": "number"},
    address: {
        "type": "string",
        "pattern": r"^(([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})?$",
        "examples": ["127.0.0.1:9464", ""],
    },
    field_paths: {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string", "minLength": 1}},
        ]
    },
}
"""How the values of each parser of config/values.py are written."""

_EPSILON = {"minimum": float(MIN_EPSILON), "maximum": float(MAX_EPSILON)}
_SHARE = {"minimum": 0, "exclusiveMaximum": 1}
_BUCKETS = {"enum": [1 << bits for bits in range(MIN_BUCKETS.bit_length() - 1, MAX_BUCKETS.bit_length())]}
_LEVELS = {"minimum": MIN_LEVELS, "maximum": MAX_LEVELS}
_BOUNDS: dict[tuple[str, str], dict[str, Any]] = {
    ("EventTable", "time_unit"): {"pattern": f"^({'|'.join((*NUMERIC_UNITS, ISO8601))})$|%"},
    ("PrivacyTable", "epsilon"): _EPSILON,
    ("PrivacyTable", "epsilon_selection"): _EPSILON,
    ("PrivacyTable", "delta_selection"): {"minimum": float(MIN_DELTA), "exclusiveMaximum": 1},
    ("PrivacyTable", "count_share"): _SHARE,
    ("SpanTable", "epsilon"): _EPSILON,
    ("SpanTable", "count_share"): _SHARE,
    ("SketchTable", "buckets"): _BUCKETS,
    ("SketchTable", "levels"): _LEVELS,
    ("SpanTable", "buckets"): _BUCKETS,
    ("SpanTable", "levels"): _LEVELS,
}
"""Bounds that the loader takes from other modules than that of the tables."""


def config_schema() -> dict[str, Any]:
    """The JSON Schema of the whole file."""
    schema: dict[str, Any] = _draft_7(Settings.model_json_schema(schema_generator=_AsWritten))
    tables_there = {"anyOf": [{"required": ["input", "output"]}, {"required": ["kafka"]}]}
    return {"$schema": DIALECT, "title": "Configuration of sfm-stream", **schema, **tables_there}


class _AsWritten(GenerateJsonSchema):
    """The generator of pydantic, with values as people write them in place of those that the settings hold."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        written = _WRITTEN.get(schema["function"]["function"])
        return super().function_before_schema(schema) if written is None else dict(written)

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """TOML has no null: a setting without a value is left out."""
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made, table = super().model_schema(schema), schema["cls"]
        said = _docstrings()[table.__name__]
        made.pop("title", None)
        for name, setting in made["properties"].items():
            setting.pop("title", None)
            setting.pop("default", None)
            bounds = _BOUNDS.get((table.__name__, name), {})
            setting.update(bounds | _default(table.model_fields[name]))
            if name in said:
                setting["description"] = said[name]
        return made

    def path_schema(self) -> JsonSchemaValue:
        return {"type": "string"}


def _default(field: FieldInfo) -> dict[str, Any]:
    """The default of a setting, as it would be written; nothing where it has none, or is a table."""
    value = field.default
    if field.is_required() or value is None or isinstance(value, BaseModel) or value in ((), []):
        return {}
    parser = time_parser(field)
    if parser is duration_ms:
        return {"default": duration(value)}
    if parser is instant_ms:
        return {"default": instant(value)}
    return {"default": float(value) if isinstance(value, Decimal) else value}


def _docstrings() -> dict[str, dict[str, str]]:
    """Table, then setting, to the docstring that stands below it, on one line."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(tables)).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = dict(_of_settings(node))
    return found


def _of_settings(table: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for setting, below in zip(table.body, table.body[1:], strict=False):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(setting, ast.AnnAssign) and isinstance(setting.target, ast.Name) and is_text:
            yield setting.target.id, " ".join(str(ast.literal_eval(below.value)).split())  # type: ignore[attr-defined]


def _draft_7(schema: Any) -> Any:
    """The same schema in the words of draft 7: definitions, and a reference with its neighbours in allOf."""
    if isinstance(schema, list):
        return [_draft_7(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {("definitions" if name == "$defs" else name): _draft_7(value) for name, value in schema.items()}
    if isinstance(reference := made.pop("$ref", None), str):
        reference = reference.replace("#/$defs/", "#/definitions/")
        made = {"$ref": reference} if not made else {"allOf": [{"$ref": reference}], **made}
    return made
