"""What will be asked: a span of time, or a union of several, with the numbers of items to be expected in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfm_stream.errors import UsageError
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.privacy.released_span import windows_per_day
from sfm_stream.readable import duration
from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from sfm_stream.windows.grid import fixed_size_ms

NAMED_MS = {"hour": HOUR_MS, "day": DAY_MS, "week": 7 * DAY_MS, "month": 31 * DAY_MS}
"""Spans that have a name, with the longest that they usually are."""
_UNITS = {"s": SECOND_MS, "m": MINUTE_MS, "h": "hour", "d": "day", "w": "week"}
_WRITTEN = re.compile(r"(?:([0-9]{1,6})\s*)?(s|m|h|d|w|hour|day|week|month)s?")


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """The number of items of a key in a span, or in the union of `times` spans that follow each other.

    span: "5m" for a fixed length that divides an hour, or a name in NAMED_MS. typical, large: items of a key in it, at
    least 1, as somebody expects them who has not counted; None: not said.
    """

    span: str
    times: int = 1
    typical: int | None = None
    large: int | None = None

    @property
    def title(self) -> str:
        """As people read it: day, 7 days."""
        return self.span if self.times == 1 else f"{self.times} x {self.span}" + ("s" if self.span in NAMED_MS else "")


def planned_question(written: str, typical: int, large: int) -> PlannedQuestion:
    """The question of a span as it is written: day, 15m, 7d, "3 months". Raises UsageError naming the span."""
    match = _WRITTEN.fullmatch(written.strip())
    count = int(match[1] or 1) if match else 0
    unit = _UNITS.get(match[2], match[2]) if match else ""
    if isinstance(unit, int) and match and match[1]:
        span_ms = count * unit
        unit, count = ("hour", span_ms // HOUR_MS) if span_ms and span_ms % HOUR_MS == 0 else (_fixed(span_ms), 1)
    if not count or not isinstance(unit, str) or not unit:
        raise UsageError(
            f"{written!r} is no span that can be asked for. Write a length that divides an hour (5m), hour, day, week "
            "or month, or several hours, days, weeks or months (7d)"
        )
    if not 1 <= typical <= large:
        raise UsageError(f"{written}: {typical} typical and {large} large items: both at least 1, the large one larger")
    return PlannedQuestion(unit, count, typical, large)


def _fixed(span_ms: int) -> str:
    return duration(span_ms) if span_ms and HOUR_MS % span_ms == 0 else ""


def length_ms(span: str) -> int:
    """The longest that a span usually is. span: as in PlannedQuestion."""
    return fixed_size_ms(span) or NAMED_MS[span]


def fits(inner: str, outer: str, days: Calendar) -> bool:
    """Whether every span `outer` is a union of whole spans `inner`."""
    if inner == outer:
        return True
    if inner in ("week", "month"):
        return False
    if inner == "day":
        return outer in ("week", "month")
    whole_ms = length_ms(outer) if outer not in NAMED_MS or outer == "hour" else days.base_ms
    return whole_ms % length_ms(inner) == 0


def windows_in(inner: str, outer: str) -> int:
    """How many spans `inner` a usual span `outer` is made of, of a month the longest."""
    return length_ms(outer) // length_ms(inner)


def windows_a_day(span: str, days: Calendar) -> int:
    """The most windows of this span that the longest day touches."""
    return windows_per_day(fixed_size_ms(span), days.longest_day_ms, days.day_step_ms)
