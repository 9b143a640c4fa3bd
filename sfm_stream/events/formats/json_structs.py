"""Struct types for msgspec that follow the paths of a schema, and decoders of records into them."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import msgspec

from sfm_stream.events.event_schema import NUMERIC_UNITS, EventSchema
from sfm_stream.types import KeyValue
from sfm_stream.units import INT64_MAX, INT64_MIN

_Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
_PathTree: TypeAlias = "dict[str, _PathTree | str]"
"""Field names from the outside in; at the end of a path its role: item, time, key, or key0, key1 and so on."""


class EventStructs:
    """The struct types of one schema, and how the values of each role are taken out of a decoded record.

    names: every field name on a path, and how many times it occurs in a plain record.
    """

    def __init__(self, schema: EventSchema) -> None:
        self.numeric_time = schema.time is not None and schema.time_unit in NUMERIC_UNITS
        self._key_parts, self._float_items = len(schema.key), schema.float_items
        key_roles = ["key"] if self._key_parts == 1 else [f"key{part}" for part in range(self._key_parts)]
        roles = ["item", *([] if schema.time is None else ["time"]), *key_roles]
        self._tree: _PathTree = {}
        for role, path in zip(roles, schema.paths(), strict=True):
            node = self._tree
            for name in path[:-1]:
                node = node.setdefault(name, {})  # type: ignore[assignment]
            node[path[-1]] = role
        self.names = Counter[str]()
        attributes: dict[str, str] = {}
        """Role to the dotted attribute of a decoded record."""
        self._collect(self._tree, "", attributes)
        self._parents = {
            role: attrgetter(attribute.rpartition(".")[0]) if "." in attribute else None
            for role, attribute in attributes.items()
        }
        self._key_tuple = attrgetter(*(attributes[role] for role in key_roles)) if len(key_roles) > 1 else None

    def decoder(self, mixed_times: bool) -> msgspec.json.Decoder[Any]:
        """A decoder of records that have every field, each of a plain type.

        mixed_times: whether floats and texts are plain times in a numeric unit, beside integers.
        """
        types: dict[str, Any] = {"item": str | _Int64, "key": str | _Int64, "time": str}
        if self._float_items:
            types["item"] = str | _Int64 | float
        if self.numeric_time:
            types["time"] = _Int64 | float | str if mixed_times else _Int64
        return msgspec.json.Decoder(self._struct(self._tree, types))

    def parents(self, rows: list[Any], role: str) -> list[Any]:
        """Of each decoded record the struct that has the field of this role, as an attribute of the role's name."""
        parent = self._parents[role]
        return list(map(parent, rows)) if parent else rows

    def keys(self, rows: list[Any]) -> list[KeyValue]:
        """The counting key of each decoded record."""
        if self._key_parts == 0:
            return [()] * len(rows)
        if self._key_tuple is None:
            return [parent.key for parent in self.parents(rows, "key")]
        return list(map(self._key_tuple, rows))

    def _collect(self, tree: _PathTree, prefix: str, attributes: dict[str, str]) -> None:
        for index, (name, below) in enumerate(tree.items()):
            self.names[name] += 1
            if isinstance(below, str):
                attributes[below] = prefix + below
            else:
                self._collect(below, f"{prefix}n{index}.", attributes)

    def _struct(self, tree: _PathTree, types: dict[str, Any]) -> type[msgspec.Struct]:
        fields: list[tuple[str, Any]] = []
        renamed: dict[str, str] = {}
        for index, (name, below) in enumerate(tree.items()):
            if isinstance(below, str):
                attribute, kind = below, types["key" if below.startswith("key") else below]
            else:
                attribute, kind = f"n{index}", self._struct(below, types)
            fields.append((attribute, kind))
            renamed[attribute] = name
        return msgspec.defstruct("Event", fields, rename=renamed, gc=False)
