"""JSON: one object in each record."""

from __future__ import annotations

from collections.abc import Sequence

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import FieldColumns, Fields
from sfm_stream.events.formats.json_fast import FastReader
from sfm_stream.events.formats.json_strict import StrictReader


class JsonFormat:
    """Plain records by a typed decoder, all others by the strict reader."""

    __slots__ = ("_fast", "_strict", "schema")

    def __init__(self, schema: EventSchema) -> None:
        self.schema = schema
        self._fast, self._strict = FastReader(schema), StrictReader(schema)

    def read(self, value: bytes | None) -> Fields:
        """As Format.read: strict, and tolerant of broken records as far as time and key go."""
        fields = self._strict.read(value)
        if type(fields.time) is not int:
            self._fast.learn(fields.time)
        return fields

    def columns(self, values: Sequence[bytes | None]) -> FieldColumns:
        """As Format.columns."""
        return self._fast.columns(values)
