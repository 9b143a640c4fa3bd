"""Records to events with the compiled kernel: it reads the records that it is certain of, and Python all others.

The kernel is given the bytes as a transport has them: whole batches of Kafka, or stretches of lines. It answers for
plain records only: valid JSON as a whole, each field once, of the right type, and a plausible time. What it says of
such a record is what Python would say. It looks up the ids of keys that the key table holds. It neither judges why a
record is not counted nor adds a key to the table: Python does both, in the order of the records. So ids, new keys and
reasons are those of a PythonExtractor.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sfm_stream import kernels
from sfm_stream.events.event_schema import EventSchema, parse_path
from sfm_stream.events.extract import PythonExtractor, blank_dropped
from sfm_stream.kernels import PlainRecords
from sfm_stream.sketch.hashing import XXH64, ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import EventColumns, KeyValue, LineTexts, RecordBatch, WireBatch
from sfm_stream.units import INT64_MIN, MAX_BATCH_BYTES


class _Answer(NamedTuple):
    """What the kernel says of the records of one call, in the order of kernels.ColumnsOfRecords.

    The first five have a row for each record; odd rows mean nothing in the last three of them. key_ids: of keys that
    the table holds; else -1 - the place in `keys`. first_rows: where each of these occurs first, ascending. odd: the
    rows that Python reads, ascending, and their records. Lines have no arrivals.
    """

    offsets: NDArray[np.int64]
    arrivals: NDArray[np.int64]
    event_ms: NDArray[np.int64]
    cells: NDArray[np.uint32]
    key_ids: NDArray[np.int32]
    keys: list[KeyValue]
    first_rows: NDArray[np.int32]
    odd: NDArray[np.int32]
    odd_records: list[bytes | None]

    @classmethod
    def of(cls, given: kernels.ColumnsOfRecords) -> _Answer:
        offsets, arrivals, event_ms, cells, key_ids, keys, first_rows, odd, odd_records = given
        return cls(
            np.frombuffer(offsets, np.int64),
            np.frombuffer(arrivals, np.int64),
            np.frombuffer(event_ms, np.int64),
            np.frombuffer(cells, np.uint32),
            np.frombuffer(key_ids, np.int32),
            keys,
            np.frombuffer(first_rows, np.int32),
            np.frombuffer(odd, np.int32),
            odd_records,
        )


class NativeExtractor:
    """Implements Extractor for JSON and xxh64. plain: of the schema and shape of `python`, which reads the rest."""

    __slots__ = ("_plain", "_python")

    def __init__(self, plain: PlainRecords, python: PythonExtractor) -> None:
        self._plain, self._python = plain, python

    def columns(self, batches: Sequence[RecordBatch]) -> EventColumns:
        """As Extractor.columns. Batches that the kernel cannot read as a whole are left to Python, errors and all."""
        given = self._asked(batches)
        if given is None:
            return self._python.columns(batches)
        answer = _Answer.of(given)
        event_ms, cells, key_ids = answer.event_ms, answer.cells, answer.key_ids
        reasons, new_keys = self._judged(answer)
        blank_dropped(reasons, cells, key_ids)
        return EventColumns(
            partition=batches[0].partition,
            next_offset=batches[-1].next_offset,
            offsets=answer.offsets,
            arrival_ms=answer.arrivals if len(answer.arrivals) else event_ms,
            event_ms=event_ms,
            key_ids=key_ids,
            cells=cells,
            reasons=reasons,
            new_keys=tuple(new_keys),
        )

    def key_of(self, value: bytes | None) -> KeyValue | None:
        """As Extractor.key_of."""
        return self._python.key_of(value)

    def _asked(self, batches: Sequence[RecordBatch]) -> kernels.ColumnsOfRecords | None:
        """What the kernel says; None where the batches are not all of one kind that it knows, or one is not plain."""
        if len({type(batch) for batch in batches}) != 1:
            return None
        index = self._python.key_ids.table.index
        if hasattr(batches[0], "raws"):
            raws, firsts = _wire(cast(Sequence[WireBatch], batches))
            return self._plain.batches(raws, firsts, MAX_BATCH_BYTES, index)
        if hasattr(batches[0], "text") and not self._python.arrival_is_event_time:
            lines = cast(Sequence[LineTexts], batches)
            texts, firsts = [batch.text for batch in lines], [batch.first for batch in lines]
            return self._plain.lines(texts, firsts, lines[0].max_line_bytes, index)
        return None

    def _judged(self, answer: _Answer) -> tuple[NDArray[np.uint8], list[int]]:
        """(reasons, ids that are new) of all rows, once the times, cells and key ids of odd rows are filled in, and the
        ids of keys that the table did not hold.
        """
        all_reasons = np.zeros(len(answer.key_ids), np.uint8)
        keys: list[KeyValue | None] = [*answer.keys]
        if not keys and not answer.odd_records:
            return all_reasons, []
        reasons = np.zeros(len(keys), np.uint8)
        if answer.odd_records:
            # Each odd row has a key of its own.
            answer.key_ids[answer.odd] = -1 - np.arange(len(keys), len(keys) + len(answer.odd))
            reasons = np.concatenate([reasons, self._read(answer, keys)])
        rows = np.flatnonzero(answer.key_ids < 0)
        numbers: NDArray[np.signedinteger[Any]] = -1 - answer.key_ids[rows]
        if answer.odd_records:  # all are put into the order of the rows in which they occur first
            order = np.argsort(np.concatenate([answer.first_rows, answer.odd]))
            keys, reasons = [keys[number] for number in order.tolist()], reasons[order]
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            numbers = place[numbers]
        key_ids = np.empty(len(keys), np.int32)
        new_keys = self._python.key_ids.fill(keys, reasons, key_ids)
        all_reasons[rows], answer.key_ids[rows] = reasons[numbers], key_ids[numbers]
        return all_reasons, new_keys

    def _read(self, answer: _Answer, keys: list[KeyValue | None]) -> NDArray[np.uint8]:
        """The reasons of the odd rows. Their times and cells are filled in, and their keys added to the others."""
        lines = not len(answer.arrivals)
        arrival_ms = answer.event_ms[answer.odd] if lines else answer.arrivals[answer.odd]
        reasons: list[NDArray[np.uint8]] = []
        for block, rows in self._python.reader.blocks(answer.odd_records, arrival_ms):
            places = answer.odd[block]
            answer.event_ms[places], answer.cells[places] = rows.event_ms, self._python.shape.cells_of(rows.hashes)
            keys += rows.keys
            reasons.append(rows.reasons)
        return np.concatenate(reasons)


def _wire(batches: Sequence[WireBatch]) -> tuple[list[bytes], list[int]]:
    """All batches of the log, and from which offset on each is wanted: only the first that is handed on may be cut."""
    raws: list[bytes] = []
    firsts: list[int] = []
    for batch in batches:
        raws += batch.raws
        firsts += [batch.first, *repeat(INT64_MIN, len(batch.raws) - 1)]
    return raws, firsts


def plain_records(schema: EventSchema, shape: SketchShape, item_hash: ItemHash) -> PlainRecords | None:
    """A reader of plain JSON records; None where there is no compiled kernel, or the schema or hash are not for it."""
    native = kernels.native()
    if native is None or item_hash is not XXH64:
        return None
    return native.PlainRecords.of(
        parse_path(schema.item),
        None if schema.time is None else parse_path(schema.time),
        [parse_path(path) for path in schema.key],
        "ms" if schema.time is None else schema.time_unit,
        schema.naive_zone == "UTC",
        (schema.earliest_ms, schema.latest_ms),
        schema.max_record_bytes,
        shape.bucket_bits,
        shape.levels,
    )
