"""The figures as PNGs of some 20 kB."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from PIL import Image

from benchmarks.paper.cells import FM85, HLL, LOOSE, PRIVATE, SYM, TIGHT, XOR
from benchmarks.paper.summary import Row

COLOURS = {SYM: "C0", XOR: "C1", TIGHT: "C2", LOOSE: "C3", FM85: "C4", HLL: "C5"}
Key = Callable[[Row], float]


def plot1(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for method in PRIVATE:
        _line(axes, [row for row in rows if row.method == method], lambda row: row.n, method, COLOURS[method])
    _finish(axes, "distinct items n", "RRMSE", "RRMSE against n, epsilon 1")
    _save(figure, path)


def plot2(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for index, (epsilon, here) in enumerate(_by_epsilon(rows)):
        label = "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        _line(axes, here, lambda row: row.n, label, f"C{index}")
        _theory(axes, here, lambda row: row.n, f"C{index}")
    _finish(axes, "distinct items n", "RRMSE", "SFM (sym): RRMSE, dashed: estimated error")
    _save(figure, path)


def plot3(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for index, (epsilon, here) in enumerate(_by_epsilon(rows)):
        _line(axes, here, lambda row: row.sketches, f"epsilon {epsilon:g}", f"C{index}")
        _theory(axes, here, lambda row: row.sketches, f"C{index}")
    _finish(axes, "merged sketches", "RRMSE", "SFM (sym) merged, n = 10^6, dashed: estimated error")
    _powers_of_two(axes, sorted({row.sketches for row in rows}))
    _save(figure, path)


def plot4(rows: list[Row], path: Path) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2))
    for method in PRIVATE:
        here = [row for row in rows if row.method == method]
        if method != SYM:
            bars = [2 * row.efficiency_error for row in here]
            left.errorbar(
                [row.epsilon for row in here],
                [row.efficiency for row in here],
                bars,
                fmt="o-",
                ms=3,
                color=COLOURS[method],
                label=f"against {method}",
            )
        _line(right, here, lambda row: row.epsilon, method, COLOURS[method])
        _theory(right, here, lambda row: row.epsilon, COLOURS[method])
    for level in (4, 10, 100):
        left.axhline(level, color="grey", lw=0.6, ls=":")
    n = f"n = {rows[0].n:,}"
    _finish(left, "epsilon", "MSE over MSE of SFM (sym)", f"Relative efficiency, {n}", linear_x=True)
    _finish(right, "epsilon", "RRMSE", f"RRMSE, {n}, dashed: estimated error", linear_x=True)
    _save(figure, path)


def plot5(rows: list[Row], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 4.2))
    for method, label in ((SYM, "SFM (sym), epsilon 2"), (FM85, FM85), (HLL, HLL)):
        here = [row for row in rows if row.method == method]
        _line(axes, here, lambda row: row.buckets, label, COLOURS[method])
        _theory(axes, here, lambda row: row.buckets, COLOURS[method])
    _finish(axes, "buckets B", "RRMSE", "RRMSE against B, n = 10^6, dashed: theory")
    _powers_of_two(axes, sorted({row.buckets for row in rows}))
    _save(figure, path)


PLOTS: dict[str, Callable[[list[Row], Path], None]] = {
    "figure1": plot1,
    "figure2": plot2,
    "figure3": plot3,
    "figure4": plot4,
    "figure5": plot5,
}


def _by_epsilon(rows: list[Row]) -> list[tuple[float, list[Row]]]:
    ordered = sorted(rows, key=lambda row: row.epsilon)
    return [(epsilon, list(group)) for epsilon, group in groupby(ordered, lambda row: row.epsilon)]


def _line(axes: Axes, rows: list[Row], x: Key, label: str, colour: str) -> None:
    """RRMSE with two Monte-Carlo standard errors."""
    bars = [2 * row.rrmse_error for row in rows]
    axes.errorbar(
        [x(row) for row in rows], [row.rrmse for row in rows], bars, fmt="o-", ms=3, color=colour, label=label
    )


def _theory(axes: Axes, rows: list[Row], x: Key, colour: str) -> None:
    axes.plot([x(row) for row in rows], [row.paper for row in rows], "--", color=colour, lw=1.2)


def _finish(axes: Axes, x: str, y: str, title: str, linear_x: bool = False) -> None:
    if not linear_x:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _powers_of_two(axes: Axes, ticks: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


def _save(figure: pyplot.Figure, path: Path) -> None:
    """With 64 colours, which nobody sees and which makes the file a third as large."""
    figure.tight_layout()
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    pyplot.close(figure)
    Image.open(drawn).convert("RGB").quantize(64).save(path, "PNG", optimize=True)
