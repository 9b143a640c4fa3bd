"""Two ways to read records beside the package's own: a format that answers for nothing, and a small kernel.

The kernel stands for the compiled one where that is not installed: it knows one narrow shape of record, answers for
those, and leaves all others to Python. It shares no code with the package but for how batches are taken apart.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor

import numpy as np
from support.wire_batches import handed_on

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import FieldColumns
from sfm_stream.events.formats.json_format import JsonFormat
from sfm_stream.kernels import ColumnsOfRecords, KeyIndex
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.transport.kafka.kafka_python.batches import KafkaBatch
from sfm_stream.types import NO_TIME, KeyValue

_VALUE = rb'"[ !#-\[\]-~]*"|-?(?:0|[1-9][0-9]{0,16})'
_MEMBER = re.compile(rb'"([ !#-\[\]-~]*)": ?(%b)' % _VALUE)
_RECORD = re.compile(rb"\{(?:%b)(?:, ?(?:%b))*\}" % (_MEMBER.pattern, _MEMBER.pattern))
_IN_A_MS = {"s": Fraction(1, 1000), "ms": Fraction(1), "us": Fraction(1000), "ns": Fraction(10**6)}


class OneByOne(JsonFormat):
    """Answers for no record by columns, so that every one is read alone."""

    __slots__ = ()

    def columns(self, values: Sequence[bytes | None]) -> FieldColumns:
        return FieldColumns([], None if self.schema.time is None else [], [], list(range(len(values))))


class PartialKernel:
    """Implements kernels.PlainRecords. It answers for flat objects of ASCII texts without escapes and of small
    integers, whose time is a plausible number.

    answered: how many records it has answered for.
    """

    def __init__(self, schema: EventSchema, shape: SketchShape, item_hash: ItemHash) -> None:
        self._schema, self._shape, self._hash = schema, shape, item_hash
        self._flat = all(len(path) == 1 for path in schema.paths())
        self._names = [path[0].encode() for path in schema.paths()]
        self.answered = 0

    def batches(
        self, batches: Sequence[bytes], firsts: Sequence[int], most_bytes: int, index: KeyIndex
    ) -> ColumnsOfRecords:
        opened = [handed_on(raw, first=first) for raw, first in zip(batches, firsts, strict=True)]
        arrivals = np.concatenate([batch.arrivals() for batch in opened])
        return self._columns(opened, arrivals, index)

    def lines(
        self, texts: Sequence[bytes], firsts: Sequence[int], most_bytes: int, index: KeyIndex
    ) -> ColumnsOfRecords:
        cut = [LineBatch(text, first, 1 << 62, most_bytes) for text, first in zip(texts, firsts, strict=True)]
        return self._columns(cut, np.empty(0, np.int64), index)

    def _columns(
        self, batches: Iterable[KafkaBatch | LineBatch], arrivals: np.ndarray, index: KeyIndex
    ) -> ColumnsOfRecords:
        offsets = np.concatenate([batch.offsets() for batch in batches])
        values = [value for batch in batches for value in batch.values()]
        times, hashes = np.full(len(values), NO_TIME), np.zeros(len(values), np.uint64)
        key_ids, first_rows, odd = np.full(len(values), -1, np.int32), [], []
        keys: dict[tuple[str, KeyValue], int] = {}
        for at, value in enumerate(values):
            row = self._row(value, int(arrivals[at]) if len(arrivals) else NO_TIME)
            if row is None:
                odd.append(at)
                continue
            times[at], hashes[at], key = row
            if (known := index.id_of(key)) >= 0:
                key_ids[at] = known
                continue
            if (repr(key), key) not in keys:
                first_rows.append(at)
            key_ids[at] = -1 - keys.setdefault((repr(key), key), len(keys))
        self.answered += len(values) - len(odd)
        first_column, odd_column = np.array(first_rows, np.int32), np.array(odd, np.int32)
        return (
            bytearray(offsets),
            bytearray(arrivals),
            bytearray(times),
            bytearray(self._shape.cells_of(hashes)),
            bytearray(key_ids),
            [key for _, key in keys],
            bytearray(first_column),
            bytearray(odd_column),
            [values[at] for at in odd],
        )

    def _row(self, value: bytes | None, arrival_ms: int) -> tuple[int, int, KeyValue] | None:
        """Event time, hash and key, if the record is of the narrow shape."""
        if not self._flat or value is None or len(value) > self._schema.max_record_bytes:
            return None
        if not _RECORD.fullmatch(value):
            return None
        members = _MEMBER.findall(value)
        by_name = dict(members)
        if len(by_name) < len(members) or not set(self._names) <= set(by_name):
            return None
        item, *key = (self._plain(by_name[name]) for name in self._names)
        event_ms = arrival_ms
        if self._schema.time is not None:
            time = key.pop(0)
            if self._schema.time_unit not in _IN_A_MS or not isinstance(time, int):
                return None
            event_ms = floor(time / _IN_A_MS[self._schema.time_unit])
        if not self._schema.earliest_ms <= event_ms <= self._schema.latest_ms:
            return None
        encoded = struct.pack("<q", item) if isinstance(item, int) else item.encode()
        return event_ms, self._hash.digest(encoded), key[0] if len(key) == 1 else tuple(key)

    @staticmethod
    def _plain(spelled: bytes) -> str | int:
        return spelled[1:-1].decode() if spelled.startswith(b'"') else int(spelled)
