"""The formats by name. A format is added here, and tests/contract/test_format_contract.py then covers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import Format
from sfm_stream.events.formats.json_format import JsonFormat

FORMATS: Final[Mapping[str, Callable[[EventSchema], Format]]] = {"json": JsonFormat}
"""Name to what makes the format of a schema."""


def format_of(schema: EventSchema, name: str = "json") -> Format:
    """The format of this name for records of this schema. Raises KeyError for a name that is not registered."""
    return FORMATS[name](schema)
