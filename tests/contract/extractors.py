"""Every extractor that there is: the tests of the extractor run with each of them, and must find the same rows.

A compiled kernel joins as a PlainReader, as PartialReader does here; a whole extractor of another kind by a line of its
own.
"""

from __future__ import annotations

from collections.abc import Callable

from support.plain_readers import NothingReader, PartialReader

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.extract import Extractor, PythonExtractor
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.events.key_table import KeyTable
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.sketch.shape import SketchShape

MakeExtractor = Callable[[EventSchema, SketchShape, ItemHash, KeyTable], Extractor]


def python(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    return PythonExtractor(JsonFormat(schema), shape, item_hash, keys=keys)


def after_other_times(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    """It has seen a time that is no integer, and takes such ones for plain."""
    form = JsonFormat(schema)
    form._fast.learn(0.5)
    return PythonExtractor(form, shape, item_hash, keys=keys)


def one_by_one(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    return PythonExtractor(JsonFormat(schema), shape, item_hash, keys=keys, plain_reader=NothingReader())


def partial_kernel(schema: EventSchema, shape: SketchShape, item_hash: ItemHash, keys: KeyTable) -> Extractor:
    kernel = PartialReader(schema, item_hash)
    return PythonExtractor(JsonFormat(schema), shape, item_hash, keys=keys, plain_reader=kernel)


EXTRACTORS: dict[str, MakeExtractor] = {
    "python": python,
    "python, after other times": after_other_times,
    "python, one by one": one_by_one,
    "partial kernel": partial_kernel,
}
