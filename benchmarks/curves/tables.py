"""The tables of the curves, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.curves.curves import CURVES

PARTITIONS = ("partitions", "partitions of a topic, one process", "ns an event")


def tables(said: Mapping[str, Any]) -> str:
    """Where it was measured, and one table for each curve that was."""
    about, curves = said["about"], said["curves"]
    found = [
        f"Measured on {about['date']} at commit {about['commit']}: {about['machine']}. Medians of three, the least "
        f"and the most in brackets; memory once. Load before the run: {about['load']}.",
        "![the curves](performance/curves.svg)",
    ]
    for name, title, unit in [*((curve.name, curve.title, curve.unit) for curve in CURVES), PARTITIONS]:
        if name in curves:
            found.append(_table(title, unit, curves[name]))
    return "\n\n".join(found) + "\n"


def _table(title: str, unit: str, points: Mapping[str, Mapping[str, list[float]]]) -> str:
    kernels = list(next(iter(points.values())))
    lines = [f"| {title}: {unit} | {' | '.join(points)} |", f"|---|{'---|' * len(points)}"]
    for kernel in kernels:
        cells = [_cell(*found[kernel]) if kernel in found else "" for found in points.values()]
        lines.append(f"| {kernel} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(middle: float, least: float, most: float) -> str:
    return f"{middle:,.0f}" if least == most else f"{middle:,.0f} ({least:,.0f}-{most:,.0f})"
