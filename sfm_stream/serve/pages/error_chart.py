"""How far off a number is by its size: a curve for each level that is published, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfm_stream.planning.level import KNOWN, Level
from sfm_stream.serve.pages.scales import LogScale, Tick, short_number
from sfm_stream.serve.pages.trend_chart import Box, Size

LEAST_SHARE, MOST_SHARE = 0.001, 3.0
"""Relative errors of the axis: from 0.1 % to 300 %."""
_PER_DECADE = 12
_ROOM, _LINE = 100, 15
"""Right of the plot, for names to stand there; and between two of them."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One level. number: from 1 on, of its line style. path: "" where all of it is noise."""

    number: int
    path: str
    end_x: float
    end_y: float


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a curve, beside its end."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class ErrorChart:
    """Coordinates of the curves. known_y: where an error is 20 %."""

    size: Size
    plot: Box
    curves: tuple[Curve, ...]
    labels: tuple[Label, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    known_y: float


def error_chart(levels: Sequence[tuple[str, Level]], largest: int, size: Size) -> ErrorChart:
    """The chart of these levels, each with its name, for 1 to `largest` items, a power of ten."""
    right, bottom = size.width - size.right, size.height - size.bottom
    x = LogScale(1, largest, size.left, right)
    y = LogScale(LEAST_SHARE, MOST_SHARE, bottom, size.top)
    powers = range(len(str(largest)))
    shares = ((0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %"))
    every = 1 if size.width > 500 else 2
    curves = [_curve(number, level, largest, x, y) for number, (_, level) in enumerate(levels, 1)]
    return ErrorChart(
        size=size,
        plot=Box("plot", size.left, size.top, right - size.left, bottom - size.top),
        curves=tuple(curves),
        labels=tuple(_labels(curves, [name for name, _ in levels], size)),
        x_ticks=tuple(Tick(x.at(10.0**power), short_number(10.0**power)) for power in powers[::every]),
        y_ticks=tuple(Tick(y.at(share), label) for share, label in shares),
        known_y=y.at(KNOWN),
    )


def _curve(number: int, level: Level, largest: int, x: LogScale, y: LogScale) -> Curve:
    most = min(float(largest), level.shape.capacity)
    items = np.geomspace(1.0, most, max(2, int(_PER_DECADE * np.log10(most))))
    shares = level.standard_errors(items) / items
    points = [(x.at(n), y.at(share)) for n, share in zip(items, shares, strict=True) if share <= MOST_SHARE]
    path = "M" + "L".join(f"{px:g} {py:g}" for px, py in points) if len(points) > 1 else ""
    end_x, end_y = points[-1] if points else (x.start, y.end)
    return Curve(number, path, end_x, end_y)


def _labels(curves: Sequence[Curve], names: Sequence[str], size: Size) -> Iterator[Label]:
    """Names beside the ends of curves, moved apart; without room at the right only numbers, above the ends."""
    is_wide = size.right > _ROOM
    low = 0.0
    for curve in sorted((each for each in curves if each.path), key=lambda each: each.end_y):
        low = y = max(curve.end_y + 4 if is_wide else curve.end_y - 4, low + _LINE)
        text = f"{curve.number}. {names[curve.number - 1]}" if is_wide else str(curve.number)
        yield Label(curve.end_x + 8 if is_wide else curve.end_x - 10, y, text)
