"""Event times: one value, or a column of them, to milliseconds since 1970 UTC or the reason why not.

`read` is the definition. The column readers give the same answers for values of the types they are typed for
(tests/properties/test_extract_paths.py) and hand every value outside the plausible band back to `read`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from sfm_stream.events.event_schema import ISO8601, NUMERIC_UNITS, EventSchema
from sfm_stream.events.formats.json_strict import NOT_UNICODE
from sfm_stream.events.time_text import from_iso, from_pattern, number_in
from sfm_stream.types import NO_TIME, Reason
from sfm_stream.units import INT64_MAX, INT64_MIN

Times: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint8]]
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


class EventTime:
    """Reads the time field of one format."""

    def __init__(self, form: EventSchema) -> None:
        self._unit = form.time_unit if form.time is not None else "ms"
        self._naive_zone = ZoneInfo(form.naive_zone) if form.naive_zone else None
        self._low_ms, self._high_ms = form.earliest_ms, form.latest_ms
        per_second = _PER_SECOND.get(self._unit, 1000)
        # The band in the field's own unit, so that a column is compared before it is multiplied and could overflow.
        self._low = -(-self._low_ms * per_second // 1000)
        self._high = min(INT64_MAX, ((self._high_ms + 1) * per_second - 1) // 1000)
        self._parse = from_iso if self._unit == ISO8601 else from_pattern(self._unit)
        self.numeric = self._unit in NUMERIC_UNITS
        self.fractions = self._unit in ("s", "ms")

    def read(self, value: object) -> tuple[int, Reason]:
        """Milliseconds and OK, or NO_TIME and the reason. None stands for a missing field too."""
        if value is None:
            return NO_TIME, Reason.TIME_MISSING
        return self._read_number(value) if self.numeric else self._read_text(value)

    def integers(self, values: Sequence[int]) -> Times:
        """A column of integers within int64."""
        column = np.fromiter(values, np.int64, len(values))
        if column.size and int(column.min()) >= self._low and int(column.max()) <= self._high:
            return self._scaled(column), np.zeros(column.size, np.uint8)
        plausible = (column >= self._low) & (column <= self._high)
        return self._complete(values, self._scaled(np.where(plausible, column, 0)), plausible)

    def mixed(self, values: Sequence[int | float | str]) -> Times:
        """A column of integers within int64, finite floats and texts, in a numeric unit."""
        kinds = set(map(type, values))
        if str in kinds:
            values = [int(value) if _plain_digits(value) else value for value in values]
            kinds = set(map(type, values))
        if kinds <= {int}:
            return self.integers(values)  # type: ignore[arg-type]
        if self.fractions and str not in kinds:
            return self.numbers(values)  # type: ignore[arg-type]
        return self.each(values)

    def numbers(self, values: Sequence[int | float]) -> Times:
        """A column of integers of any size and finite floats, in s or ms."""
        try:
            column = np.fromiter(values, np.float64, len(values))
        except OverflowError:
            return self.each(values)
        # The band ends far below 2^53, so an integer that a double cannot hold is outside on either side of rounding.
        near = (column >= self._low - 1) & (column <= self._high + 1)
        column = np.where(near, column, 0.0)
        per_second = _PER_SECOND[self._unit]
        floored = np.rint(column * (1_000_000 // per_second)).astype(np.int64) // 1000
        ms = np.where(column == np.floor(column), column.astype(np.int64) * (1000 // per_second), floored)
        return self._complete(values, ms, near & (ms >= self._low_ms) & (ms <= self._high_ms))

    def each(self, values: Sequence[object]) -> Times:
        """A column of any values, one by one."""
        ms, reasons = np.full(len(values), NO_TIME, np.int64), np.zeros(len(values), np.uint8)
        for index, value in enumerate(values):
            ms[index], reasons[index] = self.read(value)
        return ms, reasons

    def arrivals(self, column: NDArray[np.int64]) -> Times:
        """Record timestamps as event times; NO_TIME is a missing one."""
        plausible = (column >= self._low_ms) & (column <= self._high_ms)
        values = [None if value == NO_TIME else value for value in column.tolist()]
        return self._complete(values, column, plausible)

    def _complete(self, values: Sequence[object], ms: NDArray[np.int64], plausible: NDArray[np.bool_]) -> Times:
        ms, reasons = np.where(plausible, ms, NO_TIME), np.zeros(len(values), np.uint8)
        for index in np.flatnonzero(~plausible).tolist():
            reasons[index] = self.read(values[index])[1]
        return ms, reasons

    def _scaled(self, column: NDArray[np.int64]) -> NDArray[np.int64]:
        per_second = _PER_SECOND[self._unit]
        if per_second == 1000:
            return column
        return column * 1000 if per_second == 1 else column // (per_second // 1000)

    def _read_number(self, value: object) -> tuple[int, Reason]:
        if isinstance(value, str) and (found := number_in(value)) is not None:
            value = found
        if isinstance(value, bool) or not isinstance(value, int | float):
            return NO_TIME, Reason.TIME_TYPE
        if isinstance(value, float) and not math.isfinite(value):
            return NO_TIME, Reason.TIME_UNREADABLE
        if isinstance(value, float) and not self.fractions and not value.is_integer():
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


def _plain_digits(value: object) -> bool:
    """Whether this is text of at most 18 decimal digits."""
    return type(value) is str and len(value) <= 18 and value.isascii() and value.isdigit()
