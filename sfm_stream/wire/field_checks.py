"""Checks of single fields of a record. Each raises FormatError, naming the field."""

from __future__ import annotations

import re
from functools import lru_cache

from sfm_stream.errors import FormatError
from sfm_stream.readable import duration
from sfm_stream.types import Window
from sfm_stream.units import (
    CALENDAR_UNITS,
    DAY_MS,
    HOUR_MS,
    INT31_MAX,
    INT64_MAX,
    LONGEST_DAY_MS,
    QUARTER_MS,
    SHORTEST_DAY_MS,
)

SPANS_MS = {
    "quarter": (QUARTER_MS, QUARTER_MS),
    "hour": (HOUR_MS, HOUR_MS),
    "day": (SHORTEST_DAY_MS, LONGEST_DAY_MS),
    "week": (6 * DAY_MS - 2 * HOUR_MS, 7 * DAY_MS + 2 * HOUR_MS),
    "month": (27 * DAY_MS - 2 * HOUR_MS, 31 * DAY_MS + 2 * HOUR_MS),
}
"""Shortest and longest span of each grain. A zone that crossed the date line has left out a day."""
CALENDAR_SPANS = ("hour", *CALENDAR_UNITS)
"""The names of released spans that are no lengths of time."""

PIPELINE = re.compile(r"[a-z0-9._-]{1,64}")
HASH = re.compile(r"[a-z0-9._:-]{1,64}")
FINGERPRINT = re.compile(r"[0-9a-f]{1,64}")
SPAN = re.compile(r"[1-9][0-9]{0,9}(ms|s|m|h)|hour|day|week|month")
ZONE = re.compile(r"(?=.{1,64}\Z)[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")


def check_source(pipeline: str, epoch: int, partition: int, partitions: int) -> None:
    check_text("pipeline", pipeline, PIPELINE)
    check_int("epoch", epoch, 1, INT31_MAX)
    check_int("partitions", partitions, 1, INT31_MAX)
    check_int("partition", partition, 0, partitions - 1)


def check_window(window: Window) -> None:
    check_int("start_ms", window.start_ms, 0, INT64_MAX - 1)
    check_int("end_ms", window.end_ms, window.start_ms + 1, INT64_MAX)


def check_grain(grain: str, window: Window, grains: tuple[str, ...]) -> None:
    """The window must be one of this grain. grains: those of the version."""
    check_window(window)
    check_choice("grain", grain, grains)
    _check_length("end_ms", grain, window.end_ms - window.start_ms)
    _check_quarters(window)


def check_span(span: object, window: Window) -> None:
    """The name of a released span, one window of which is `window`."""
    length_ms = window.end_ms - window.start_ms
    if type(span) is not str:
        raise FormatError("span", f"expected text, got {type(span).__name__}")
    if span in CALENDAR_SPANS:
        _check_length("span", span, length_ms)
        _check_quarters(window)
    elif span != _fixed_span(length_ms):
        raise FormatError("span", f"not the name of the span of a window of {duration(length_ms)}")


@lru_cache(maxsize=64)
def _fixed_span(length_ms: int) -> str | None:
    """The name of a span of a fixed length; None where it does not divide an hour."""
    return None if HOUR_MS % length_ms else duration(length_ms)


def check_spans(spans: object, among_them: str | None) -> None:
    """The names of all released spans of an epoch, one of which a record is of; none where that one has no name."""
    if type(spans) is not tuple:
        raise FormatError("spans", f"expected a tuple, got {type(spans).__name__}")
    for span in spans:
        check_text("spans", span, SPAN)
    if len(set(spans)) < len(spans):
        raise FormatError("spans", "a span is named twice")
    if spans and among_them is None:
        raise FormatError("spans", "version 1 has no field for them: name the span of the record too")
    if among_them is not None and among_them not in spans:
        raise FormatError("spans", f"{among_them} is not among them")


def check_noise(field: str, flip_threshold: int, high: int) -> None:
    # 2^63 is pure noise: only a merge of very many sketches may have it.
    check_int(field, flip_threshold, 1, high)


def check_int(field: str, value: object, low: int, high: int) -> None:
    if type(value) is not int:
        raise FormatError(field, f"expected an integer, got {type(value).__name__}")
    if not low <= value <= high:
        raise FormatError(field, f"{value} is outside {low}..{high}")


def check_text(field: str, value: object, allowed: re.Pattern[str]) -> None:
    if type(value) is not str:
        raise FormatError(field, f"expected text, got {type(value).__name__}")
    if not allowed.fullmatch(value):
        raise FormatError(field, f"does not match {allowed.pattern}")


def check_choice(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise FormatError(field, f"not one of {', '.join(allowed)}")


def _check_length(field: str, grain: str, length_ms: int) -> None:
    shortest, longest = SPANS_MS[grain]
    if not shortest <= length_ms <= longest:
        raise FormatError(field, f"a span of {duration(length_ms)} is not one {grain}")


def _check_quarters(window: Window) -> None:
    for name, border in (("start_ms", window.start_ms), ("end_ms", window.end_ms)):
        if border % QUARTER_MS:
            raise FormatError(name, "not on a border of 15 minutes")
