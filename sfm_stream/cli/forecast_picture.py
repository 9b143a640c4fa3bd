"""A picture of a forecast: the error of each answer over the number of items."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from sfm_stream.errors import UsageError
from sfm_stream.planning.forecast import Forecast
from sfm_stream.planning.level import KNOWN

_POINTS = 120
ENDINGS = (".png", ".svg", ".pdf")


def draw(expected: Forecast, path: Path) -> None:
    """Write the picture. Raises UsageError naming the remedy where matplotlib is not installed, or for a bad name."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"--plot: the ending of {path} says what is written: one of {', '.join(ENDINGS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is not installed: pip install 'sfm-stream[plot]', or leave --plot out"
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for answer in expected.answers:
        if answer.span is None:
            continue
        asked, level = answer.question, answer.span.level(answer.releases)
        n = np.geomspace(1.0, max(10.0 * (asked.large or 1e6), 100.0), _POINTS)
        n = n[n <= level.shape.capacity]
        label = f"{asked.title}, from {answer.releases:,} x {answer.span.name} at epsilon {answer.span.epsilon}"
        (line,) = axes.plot(n, 100.0 * level.standard_errors(n) / n, label=label)
        marked = [
            (items, 100.0 * error)
            for items, error in ((asked.typical, answer.typical_error), (asked.large, answer.large_error))
            if items is not None and error is not None and math.isfinite(error)
        ]
        axes.plot(*zip(*marked, strict=True) if marked else ((), ()), "o", color=line.get_color())
    axes.axhline(100.0 * KNOWN, color="grey", linestyle=":", label="20 %")
    axes.set(xscale="log", yscale="log", ylim=(0.3, 300), xlabel="items of a key", ylabel="standard error in %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    try:
        figure.savefig(path)
    except OSError as error:
        raise UsageError(f"--plot: {path}: {error.strerror or error}") from None
