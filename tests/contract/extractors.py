"""Every extractor that there is: the tests of the extractor run with each of them, and must find the same rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from reference.memory_batch import MemoryBatch
from support.partial_kernel import OneByOne, PartialKernel
from support.wire_batches import batch_of, handed_on, record

from sfm_stream import kernels
from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.native_extractor import NativeExtractor, plain_records
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.types import EventColumns, KeyValue

MakeExtractor = Callable[[EventSchema, SketchShape, ItemHash, KeyTable], Extractor]


def python(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> PythonExtractor:
    return PythonExtractor(JsonFormat(schema), shape, item_hash, keys=keys)


def after_other_times(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    """It has seen a time that is no integer, and takes such ones for plain."""
    form = JsonFormat(schema)
    form._fast.learn(0.5)
    return PythonExtractor(form, shape, item_hash, keys=keys)


def one_by_one(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    return PythonExtractor(OneByOne(schema), shape, item_hash, keys=keys)


def partial_kernel(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    if item_hash.name != "xxh64":
        return python(schema, shape, item_hash, keys)
    return FromMemory(NativeExtractor(PartialKernel(schema, shape, item_hash), python(schema, shape, item_hash, keys)))


def native(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    plain = plain_records(schema, shape, item_hash)
    if plain is None:
        assert item_hash.name != "xxh64" or "%" in schema.time_unit, kernels.why_not()
        return python(schema, shape, item_hash, keys)
    return FromMemory(NativeExtractor(plain, python(schema, shape, item_hash, keys)))


@dataclass
class FromMemory:
    """An extractor that is given records in memory, and gets them as the bytes that a transport would have."""

    extractor: NativeExtractor

    def columns(self, batches: Sequence[MemoryBatch]) -> EventColumns:  # type: ignore[override]
        lacking = self.extractor._python.arrival_is_event_time and any(batch.arrival_ms is None for batch in batches)
        stored = [None if lacking else _stored(batch) for batch in batches]
        if any(batch is None for batch in stored) or len({type(batch) for batch in stored}) != 1:
            return self.extractor.columns(batches)
        columns = self.extractor.columns(stored)  # type: ignore[arg-type]
        if isinstance(stored[0], LineBatch):
            offsets = np.concatenate([batch.offsets() for batch in batches])
            return replace(columns, offsets=offsets, next_offset=batches[-1].next_offset)
        return columns if batches[0].arrival_ms is not None else replace(columns, arrival_ms=columns.event_ms)

    def key_of(self, value: bytes | None) -> KeyValue | None:
        return self.extractor.key_of(value)


def _stored(memory: MemoryBatch) -> KafkaBatch | LineBatch | None:
    """Lines where the records have no time stamps and are lines, else a batch of Kafka; None where neither holds them.

    A Kafka batch has time stamps for its arrivals. Where the records have none, the caller leaves them out of account.
    """
    records, stamps = memory.records, memory.arrival_ms
    lines = [each for each in records if each and b"\n" not in each and not each.endswith(b"\r")]
    if stamps is None and len(lines) == len(records):
        return LineBatch(b"".join(line + b"\n" for line in lines), 0, 1 << 40)
    if not records:
        return None
    encoded = [record(at, stamps[at] if stamps else 0, value) for at, value in enumerate(records)]
    raw = batch_of(encoded, memory.first)
    return handed_on(raw, partition=memory.partition, first=memory.first, next_offset=memory.next_offset)


EXTRACTORS: dict[str, MakeExtractor] = {
    "python": python,
    "python, after other times": after_other_times,
    "python, one by one": one_by_one,
    "partial kernel": partial_kernel,
}
if not kernels.why_not() or os.environ.get("CI"):
    EXTRACTORS["native"] = native
