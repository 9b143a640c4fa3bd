"""The geometry of a trend: spans of time from left to right, items from the zero line up, with their 95 % band.

Only coordinates are made here; the template draws them. What has no upper limit reaches the top of the plot with an
arrow; what is not known is a hatched column; what has no release is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sfm_stream.serve.pages.scales import Scale, Tick, nice_steps, short_number
from sfm_stream.serve.pages.slots import Slot
from sfm_stream.serve.pages.time_text import axis_times

_LEAST_MARK_PITCH = 6.0
"""Marks of ordinary spans are drawn where they are at least so far apart."""


@dataclass(frozen=True, slots=True)
class Size:
    """A drawing: its width and height, and how much of it lies around the plot."""

    width: int
    height: int
    left: int
    right: int
    top: int = 14
    bottom: int = 26


WIDE, NARROW = Size(960, 320, 64, 12), Size(340, 250, 52, 6)
"""For a page of a desk and for a phone: text keeps its size, so there are two drawings."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in the drawing. name: of the state that it shows."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Mark:
    """The number of one span. name: of its state. y: of the value, or of the lower limit where only that is known."""

    name: str
    is_open: bool
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class TrendChart:
    """Coordinates of a trend. band, open_band, line: paths; "" where there is nothing to draw.

    columns: spans without a number, full height. arrows: marks from which an arrow leads to the top.
    """

    size: Size
    plot: Box
    band: str
    open_band: str
    line: str
    columns: tuple[Box, ...]
    arrows: tuple[Mark, ...]
    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def trend_chart(slots: Sequence[Slot], zone: str, size: Size) -> TrendChart:
    """The chart of at least one slot, in order of time without holes between them."""
    start_ms, end_ms = slots[0].window.start_ms, slots[-1].window.end_ms
    right, bottom = size.width - size.right, size.height - size.bottom
    x = Scale(start_ms, end_ms, size.left, right)
    steps = nice_steps(_highest(slots), 5)
    y = Scale(0, steps[-1], bottom, size.top)
    pitch = (right - size.left) / len(slots)
    marks = [_mark(slot, x, y) for slot in slots if slot.row is not None and slot.state.name != "unknown"]
    # A day of 23 hours, and a February, are spans as well.
    least_ms = round(0.9 * min(slot.window.end_ms - slot.window.start_ms for slot in slots))
    times = axis_times(start_ms, end_ms, zone, (right - size.left) // 62, least_ms)
    return TrendChart(
        size=size,
        plot=Box("plot", size.left, size.top, right - size.left, bottom - size.top),
        band=_band([slot for slot in slots if not slot.is_open], x, y),
        open_band=_band([slot for slot in slots if slot.is_open], x, y),
        line=_line(slots, x, y),
        columns=tuple(_columns(slots, x, y)),
        arrows=tuple(mark for mark in marks if mark.name in ("lower", "saturated")),
        marks=tuple(mark for mark in marks if pitch >= _LEAST_MARK_PITCH or mark.name != "ok" or mark.is_open),
        x_ticks=tuple(Tick(x.at(time_ms), label, strong) for time_ms, label, strong in times),
        y_ticks=tuple(Tick(y.at(step), short_number(step)) for step in steps),
    )


def _highest(slots: Sequence[Slot]) -> float:
    """The largest number that has to fit: limits where there are any, and what is known at least."""
    numbers = [1.0]
    for slot in slots:
        if slot.row is not None and slot.state.name != "unknown":
            estimate = slot.row.estimate
            numbers.append(estimate.high if math.isfinite(estimate.high) else 1.15 * max(estimate.low, 1.0))
    return max(numbers)


def _mark(slot: Slot, x: Scale, y: Scale) -> Mark:
    assert slot.row is not None
    estimate = slot.row.estimate
    value = estimate.value if math.isfinite(estimate.high) else estimate.low
    return Mark(slot.state.name, slot.is_open, _middle(slot, x), y.at(value))


def _middle(slot: Slot, x: Scale) -> float:
    return x.at((slot.window.start_ms + slot.window.end_ms) / 2)


def _band(slots: Sequence[Slot], x: Scale, y: Scale) -> str:
    """A rectangle from the lower to the upper limit over the time of each span; to the top where there is no upper."""
    path = []
    for slot in slots:
        if slot.row is None or slot.state.name == "unknown":
            continue
        left, right = x.at(slot.window.start_ms), x.at(slot.window.end_ms)
        low, high = y.at(slot.row.estimate.low), y.at(slot.row.estimate.high)
        path.append(f"M{left:g} {high:g}H{right:g}V{low:g}H{left:g}Z")
    return "".join(path)


def _line(slots: Sequence[Slot], x: Scale, y: Scale) -> str:
    """Lines between the values of spans that follow each other; none leads over a gap or to a mere limit."""
    path = []
    for known, run in groupby(slots, key=lambda slot: slot.row is not None and slot.state.name in ("ok", "empty")):
        points = [(_middle(slot, x), y.at(slot.row.estimate.value)) for slot in run if slot.row is not None]
        if known and len(points) > 1:
            path.append("M" + "L".join(f"{px:g} {py:g}" for px, py in points))
    return "".join(path)


def _columns(slots: Sequence[Slot], x: Scale, y: Scale) -> list[Box]:
    """One box for each run of spans of the same state that have no number."""
    boxes = []
    for name, run in groupby(slots, key=lambda slot: slot.state.name):
        if name in ("ok", "empty", "lower", "saturated"):
            continue
        spans = [slot.window for slot in run]
        left, right = x.at(spans[0].start_ms), x.at(spans[-1].end_ms)
        boxes.append(Box(name, left, y.end, round(right - left, 1), y.start - y.end))
    return boxes
