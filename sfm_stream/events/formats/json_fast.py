"""JSON records read fast: a typed decoder for the plain ones, and a certificate that it read them right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import EventSchema
from sfm_stream.events.formats.format import FieldColumns
from sfm_stream.events.formats.json_certificate import Certificate
from sfm_stream.events.formats.json_structs import EventStructs
from sfm_stream.events.lines import Lines
from sfm_stream.events.time_text import number_in
from sfm_stream.sketch.hashing import encode_item

_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)


class FastReader:
    """Reads the plain records of one schema.

    In a numeric unit only integers are plain times at first, since a column of integers costs least. Once an odd record
    has had another number for its time (a float, or digits in quotes), such times are plain too.
    """

    def __init__(self, schema: EventSchema) -> None:
        self._structs = EventStructs(schema)
        self._has_time = schema.time is not None
        self._certificate = Certificate(self._structs.names, schema.max_record_bytes)
        self._decoder = self._structs.decoder(mixed_times=False)
        self._integer_times = self._structs.numeric_time
        self._all_decoded = True
        """Whether each record of the last block could be decoded. If so, those of the next one are, all at once."""

    def columns(self, values: Sequence[bytes | None]) -> FieldColumns:
        """As Format.columns."""
        lines = Lines.of(values)
        rows = None if lines is None else self._decoded_at_once(lines)
        plain: Sequence[bytes | None] = values if lines is None else lines
        odd: list[int] = []
        if rows is None:
            plain = list(values)
            rows, odd = self._decoded_one_by_one(plain)
            plain = _without(plain, odd) if odd else plain
        self._all_decoded = not odd
        if rows:
            doubtful = self._certificate.doubtful(plain)  # type: ignore[arg-type]  # None is never decoded
            if doubtful:
                positions = _without(range(len(values)), odd)
                odd = sorted([*odd, *(positions[index] for index in doubtful)])
                rows = _without(rows, doubtful)
        return FieldColumns(self._structs.keys(rows), self._times(rows), self._items(rows), odd)

    def learn(self, time: object) -> None:
        """Take floats and texts as plain times from the next block on, if this time of an odd record is a number."""
        if self._integer_times and (type(time) is float or (type(time) is str and number_in(time) is not None)):
            self._decoder = self._structs.decoder(mixed_times=True)
            self._integer_times = False

    def _decoded_at_once(self, lines: Lines) -> list[Any] | None:
        """All records, each from its line; None where that does not go, or has not gone for the last block.

        The decoder takes several values of one line, and one of several lines. Behind a bracket that closes an object
        none can begin, unless the value is complete, and no text holds a newline. So where every line begins and ends
        as an object does, each has at least one value; and if there are as many as lines, each line is one value.
        """
        if not self._all_decoded or not lines.all_between(b"{", b"}"):
            return None
        try:
            rows = self._decoder.decode_lines(lines.text)
        except _UNDECODABLE:
            return None
        return rows if len(rows) == len(lines) else None

    def _decoded_one_by_one(self, values: Sequence[bytes | None]) -> tuple[list[Any], list[int]]:
        """The records that could be decoded, and the positions of the others."""
        rows: list[Any] = []
        odd: list[int] = []
        rest = iter(values)
        while True:
            try:
                rows.extend(map(self._decoder.decode, rest))  # type: ignore[arg-type]  # None raises TypeError
                return rows, odd
            except _UNDECODABLE:
                # rows holds what was decoded before the failure; the iterator goes on behind the record that failed.
                odd.append(len(rows) + len(odd))

    def _times(self, rows: list[Any]) -> NDArray[np.int64] | list[Any] | None:
        if not self._has_time:
            return None
        times = [parent.time for parent in self._structs.parents(rows, "time")]
        return np.fromiter(times, np.int64, len(times)) if self._integer_times else times

    def _items(self, rows: list[Any]) -> NDArray[np.int64] | list[bytes]:
        items = [parent.item for parent in self._structs.parents(rows, "item")]
        try:
            return list(map(str.encode, items))
        except TypeError:  # not all of them are texts
            pass
        if set(map(type, items)) == {int}:
            return np.fromiter(items, np.int64, len(items))
        return list(map(encode_item, items))


def _without(values: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    kept = np.ones(len(values), np.bool_)
    kept[positions] = False
    return [values[index] for index in np.flatnonzero(kept).tolist()]
