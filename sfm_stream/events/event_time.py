"""Event times: one value, or a column of them, to milliseconds since 1970 UTC or to the reason why not.

`TimeReader.read` is the definition. The readers of columns give the same answers
(tests/properties/test_extract_paths.py). They hand every value outside the plausible band back to `read`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import ISO8601, NUMERIC_UNITS, EventSchema
from sfm_stream.events.formats.format import NOT_UNICODE
from sfm_stream.events.time_text import from_iso, from_pattern, number_in
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.units import INT64_MAX, INT64_MIN

TimeColumn: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Shape (n,) each: milliseconds or NO_TIME, and a Reason."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PER_SECOND = dict(zip(NUMERIC_UNITS, (1, 10**3, 10**6, 10**9), strict=True))
_LOOKS_LIKE = dict(zip(NUMERIC_UNITS, range(Reason.TIME_LOOKS_LIKE_SECONDS, Reason.TIME_IMPLAUSIBLE), strict=True))


def epoch_ms(value: int | float, unit: str) -> int:
    """Milliseconds of a finite number in a unit, rounded down.

    A fraction is first rounded to whole microseconds in binary floating point: 1700000000.123 s lies just below its
    decimal value as a double, and is still .123. Any decimal with up to six digits of a second comes out exact.
    """
    if isinstance(value, float) and not value.is_integer() and unit in ("s", "ms"):
        return round(value * (1_000_000 // _PER_SECOND[unit])) // 1000
    return math.floor(value) * 1000 // _PER_SECOND[unit]


class TimeReader:
    """Reads the time field of one schema, or the arrival time where the schema has none."""

    def __init__(self, schema: EventSchema) -> None:
        self._unit = schema.time_unit if schema.time is not None else "ms"
        self._naive_zone = ZoneInfo(schema.naive_zone) if schema.naive_zone else None
        self._low_ms, self._high_ms = schema.earliest_ms, schema.latest_ms
        per_second = _PER_SECOND.get(self._unit, 1000)
        # The band in the field's own unit, so that a column is compared before it is multiplied and could overflow.
        self._low = -(-self._low_ms * per_second // 1000)
        self._high = min(INT64_MAX, ((self._high_ms + 1) * per_second - 1) // 1000)
        self._parse = from_iso if self._unit == ISO8601 else from_pattern(self._unit)
        self._numeric = self._unit in NUMERIC_UNITS
        self._fractions = self._unit in ("s", "ms")

    def read(self, value: object) -> tuple[int, Reason]:
        """Milliseconds and OK, or NO_TIME and the reason. None stands for a missing field too."""
        if value is None:
            return NO_TIME, Reason.TIME_MISSING
        return self._read_number(value) if self._numeric else self._read_text(value)

    def column(self, values: NDArray[np.int64] | list[Any]) -> TimeColumn:
        """A column of int64, or a list of values of any type."""
        if isinstance(values, np.ndarray):
            return self._integers(values)
        if not self._numeric:
            return self._each(values)
        types = set(map(type, values))
        if str in types:
            values = [int(value) if _is_short_digits(value) else value for value in values]
            types = set(map(type, values))
        try:
            if types <= {int}:
                return self._integers(np.fromiter(values, np.int64, len(values)))
            if types <= {int, float} and self._fractions:
                return self._numbers(values)
        except OverflowError:  # an integer beyond int64, or beyond all doubles
            pass
        return self._each(values)

    def arrivals(self, column: NDArray[np.int64]) -> TimeColumn:
        """Record timestamps as event times; NO_TIME is a missing one."""
        plausible = (column >= self._low_ms) & (column <= self._high_ms)
        refused = [None if value == NO_TIME else value for value in column[~plausible].tolist()]
        return self._completed(column, plausible, refused)

    def _integers(self, column: NDArray[np.int64]) -> TimeColumn:
        """Of a numeric unit."""
        if column.size and int(column.min()) >= self._low and int(column.max()) <= self._high:
            return self._scaled(column), np.zeros(column.size, np.uint8)
        plausible = (column >= self._low) & (column <= self._high)
        return self._completed(self._scaled(np.where(plausible, column, 0)), plausible, column[~plausible].tolist())

    def _numbers(self, values: Sequence[int | float]) -> TimeColumn:
        """Integers and floats, in s or ms. Raises OverflowError for an integer beyond all doubles."""
        column = np.fromiter(values, np.float64, len(values))
        # The band ends far below 2^53, so an integer that a double cannot hold is outside on either side of rounding.
        near = (column >= self._low - 1) & (column <= self._high + 1)
        column = np.where(near, column, 0.0)
        per_second = _PER_SECOND[self._unit]
        floored = np.rint(column * (1_000_000 // per_second)).astype(np.int64) // 1000
        ms = np.where(column == np.floor(column), column.astype(np.int64) * (1000 // per_second), floored)
        plausible = near & (ms >= self._low_ms) & (ms <= self._high_ms)
        return self._completed(ms, plausible, [values[index] for index in np.flatnonzero(~plausible).tolist()])

    def _each(self, values: Sequence[object]) -> TimeColumn:
        """Values of any type, one by one."""
        ms, reasons = np.full(len(values), NO_TIME, np.int64), np.zeros(len(values), np.uint8)
        for index, value in enumerate(values):
            ms[index], reasons[index] = self.read(value)
        return ms, reasons

    def _completed(self, ms: NDArray[np.int64], plausible: NDArray[np.bool_], refused: Iterable[object]) -> TimeColumn:
        """The column, with the reasons of the values that are not plausible."""
        ms, reasons = np.where(plausible, ms, NO_TIME), np.zeros(len(ms), np.uint8)
        reasons[~plausible] = [self.read(value)[1] for value in refused]
        return ms, reasons

    def _scaled(self, column: NDArray[np.int64]) -> NDArray[np.int64]:
        per_second = _PER_SECOND[self._unit]
        if per_second == 1000:
            return column
        return column * 1000 if per_second == 1 else column // (per_second // 1000)

    def _read_number(self, value: object) -> tuple[int, Reason]:
        if isinstance(value, str) and (number := number_in(value)) is not None:
            value = number
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NO_TIME, Reason.TIME_TYPE
        if isinstance(value, float) and not math.isfinite(value):
            return NO_TIME, Reason.TIME_UNREADABLE
        if isinstance(value, float) and not self._fractions and not value.is_integer():
            return NO_TIME, Reason.TIME_TYPE
        if not INT64_MIN <= value <= INT64_MAX:
            return NO_TIME, Reason.TIME_IMPLAUSIBLE
        ms = epoch_ms(value, self._unit)
        if self._low_ms <= ms <= self._high_ms:
            return ms, Reason.OK
        for unit in NUMERIC_UNITS:
            if self._low_ms <= epoch_ms(value, unit) <= self._high_ms:
                return NO_TIME, Reason(_LOOKS_LIKE[unit])
        return NO_TIME, Reason.TIME_IMPLAUSIBLE

    def _read_text(self, value: object) -> tuple[int, Reason]:
        if value is NOT_UNICODE:
            return NO_TIME, Reason.TIME_UNREADABLE
        if not isinstance(value, str):
            return NO_TIME, Reason.TIME_TYPE
        try:
            moment = self._parse(value)
        except (ValueError, OverflowError):
            return NO_TIME, Reason.TIME_UNREADABLE
        if moment.tzinfo is None:
            if self._naive_zone is None:
                return NO_TIME, Reason.TIME_NAIVE
            moment = moment.replace(tzinfo=self._naive_zone)
        ms = (moment - _EPOCH) // _MILLISECOND
        return (ms, Reason.OK) if self._low_ms <= ms <= self._high_ms else (NO_TIME, Reason.TIME_IMPLAUSIBLE)


def _is_short_digits(value: object) -> bool:
    """Whether this is text of at most 18 decimal digits."""
    return type(value) is str and len(value) <= 18 and value.isascii() and value.isdigit()
