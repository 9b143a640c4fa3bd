"""The curves as one picture, with the text as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from benchmarks.curves.curves import CURVES
from benchmarks.curves.tables import PARTITIONS

COLOURS = {"python": "C0", "native": "C1"}


def draw(said: Mapping[str, Any], path: Path) -> None:
    """One panel for each curve that was measured, both kernels in each; the bars go from the least to the most."""
    linear = {curve.name for curve in CURVES if curve.linear}
    axes_of = {curve.name: (curve.title, curve.x, curve.unit) for curve in CURVES}
    axes_of[PARTITIONS[0]] = (PARTITIONS[1], "partitions", PARTITIONS[2])
    there = [name for name in axes_of if name in said["curves"]]
    settings = {"svg.fonttype": "none", "svg.hashsalt": "curves", "font.size": 8}
    with pyplot.rc_context(settings):
        rows = -(-len(there) // 2)
        figure, panels = pyplot.subplots(rows, 2, figsize=(8, 2.4 * rows), squeeze=False)
        for panel in panels.flat[len(there) :]:
            panel.set_axis_off()
        for name, panel in zip(there, panels.flat, strict=False):
            _panel(panel, said["curves"][name], axes_of[name], name in linear)
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)


def _panel(
    panel: Any, points: Mapping[str, Mapping[str, list[float]]], names: tuple[str, str, str], linear: bool
) -> None:
    title, x, unit = names
    places = list(points)
    for kernel in next(iter(points.values())):
        middle, least, most = (
            [points[at][kernel][column] for at in places if kernel in points[at]] for column in range(3)
        )
        bars = [[a - b for a, b in zip(middle, least, strict=True)], [a - b for a, b in zip(most, middle, strict=True)]]
        panel.errorbar(range(len(middle)), middle, bars, fmt="o-", ms=3, lw=1, color=COLOURS.get(kernel), label=kernel)
        if linear:
            sizes = [int(at.replace(",", "")) for at in places]
            slope = middle[-1] / sizes[-1]
            panel.plot(range(len(places)), [slope * size for size in sizes], ":", lw=0.8, color=COLOURS.get(kernel))
    if linear:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    panel.set_xticks(range(len(places)), places)
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(x)
    panel.set_ylabel(unit)
    panel.legend(fontsize=7)
