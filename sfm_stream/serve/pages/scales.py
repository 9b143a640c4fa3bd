"""Scales of a chart: where a value lies on a line of the drawing, and which values are named on it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """A named place on an axis. at: its coordinate in the drawing. is_strong: a border that weighs more, a day's."""

    at: float
    label: str
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` on the coordinates from `start` to `end`; low < high."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The coordinate of a value, rounded to a tenth; of one beyond the scale that of its nearest end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


@dataclass(frozen=True, slots=True)
class LogScale:
    """The same by ratios; 0 < low < high."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        logs = Scale(math.log10(self.low), math.log10(self.high), self.start, self.end)
        return logs.at(math.log10(min(max(value, self.low), self.high)))


def nice_steps(high: float, most: int) -> list[float]:
    """Values from 0 up to the first one at or above `high`, in steps of 1, 2 or 5 times a power of ten, at least 1.

    high: above 0. most: the most steps, at least 1.
    """
    step = 10.0 ** max(0, math.floor(math.log10(max(high / most, 1.0))))
    for factor in (1, 2, 5, 10):
        if factor * step * most >= high:
            step *= factor
            break
    return [number * step for number in range(math.ceil(high / step) + 1)]


def short_number(value: float) -> str:
    """A round number for an axis: 500, 20,000, 3 million."""
    for size, name in ((1e9, " billion"), (1e6, " million")):
        if value >= size and value % (size / 10) == 0:
            return f"{value / size:g}{name}"
    return f"{value:,.0f}"
