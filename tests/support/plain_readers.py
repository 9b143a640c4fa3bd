"""Readers of plain records beside the package's own: one that answers for nothing, and a small kernel.

The kernel shares no code with the package. It stands for a compiled one: it knows one narrow shape of record, answers
for those, and leaves all others to Python.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.plain_rows import PlainRows
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.types import KeyValue

_VALUE = rb'"[ !#-\[\]-~]*"|-?(?:0|[1-9][0-9]{0,16})'
_MEMBER = re.compile(rb'"([ !#-\[\]-~]*)": ?(%b)' % _VALUE)
_RECORD = re.compile(rb"\{(?:%b)(?:, ?(?:%b))*\}" % (_MEMBER.pattern, _MEMBER.pattern))
_IN_A_MS = {"s": Fraction(1, 1000), "ms": Fraction(1), "us": Fraction(1000), "ns": Fraction(10**6)}


class NothingReader:
    """Answers for no record, so that every one is read in Python, one by one."""

    def rows(self, values: Sequence[bytes | None], arrival_ms: NDArray[np.int64]) -> PlainRows:
        empty = np.empty(0, np.int64)
        return PlainRows(empty, empty.astype(np.uint8), empty.astype(np.uint64), [], range(len(values)))


class PartialReader:
    """Answers for flat objects of ASCII texts without escapes and of small integers, whose time is a plausible number.

    answered: how many records it has answered for.
    """

    def __init__(self, schema: EventSchema, item_hash: ItemHash) -> None:
        self._schema, self._hash = schema, item_hash
        self._flat = all(len(path) == 1 for path in schema.paths())
        self._names = [path[0].encode() for path in schema.paths()]
        self.answered = 0

    def rows(self, values: Sequence[bytes | None], arrival_ms: NDArray[np.int64]) -> PlainRows:
        times: list[int] = []
        hashes: list[int] = []
        keys: list[KeyValue] = []
        odd: list[int] = []
        for position, value in enumerate(values):
            row = self._row(value, int(arrival_ms[position]))
            if row is None:
                odd.append(position)
                continue
            times.append(row[0])
            hashes.append(row[1])
            keys.append(row[2])
        self.answered += len(keys)
        reasons = np.zeros(len(keys), np.uint8)
        return PlainRows(np.array(times, np.int64), reasons, np.array(hashes, np.uint64), keys, odd)

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
