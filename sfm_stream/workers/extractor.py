"""Chooses the extractor of a pipeline from its configuration."""

from __future__ import annotations

from sfm_stream.config.config import Config
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.registry import format_of
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.native_extractor import NativeExtractor, plain_records


def extractor_of(config: Config, keys: KeyTable, latest_ms: int = MAX_TIME_MS) -> Extractor:
    """An extractor of the records of one partition, with the kernel in use (kernels.py).

    latest_ms: upper end of plausible event times.
    """
    schema = config.event_schema(latest_ms)
    python = PythonExtractor(format_of(schema), config.cells, config.item_hash, keys=keys)
    plain = plain_records(schema, config.cells, config.item_hash)
    return python if plain is None else NativeExtractor(plain, python)
