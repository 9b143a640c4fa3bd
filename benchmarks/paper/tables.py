"""Markdown tables of the figures, made from the rows of their CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from benchmarks.paper.baselines.pagh_stausholm import READINGS
from benchmarks.paper.cells import HLL, LOOSE, PRIVATE, TIGHT
from benchmarks.paper.methods import reading_method
from benchmarks.paper.summary import Row


def markdown(header: Sequence[object], body: Sequence[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (header, *body)]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines) + "\n"


def measured(row: Row) -> str:
    """RRMSE and its Monte-Carlo standard error in %, as in 2.74 ± 0.06."""
    return plus_minus(100 * row.rrmse, 100 * row.rrmse_error)


def plus_minus(value: float, error: float) -> str:
    """Both with as many decimals as leave the value three digits, two decimals at most."""
    decimals = max(0, min(2, 2 - math.floor(math.log10(value)))) if value > 0 else 2
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def beside_theory(row: Row) -> str:
    """measured / the paper's standard error / the sandwich, in %."""
    return f"{measured(row)} / {percent(row.paper)} / {percent(row.sandwich)}"


def percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.2f}"


def ratio(row: Row) -> str:
    """Relative efficiency and its Monte-Carlo standard error."""
    return plus_minus(row.efficiency, row.efficiency_error)


def three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def count(n: int) -> str:
    return f"{n:,}"


def table1(rows: list[Row]) -> str:
    return _grid(rows, "n", lambda row: count(row.n), lambda row: row.method, measured)


def table2(rows: list[Row]) -> str:
    def column(row: Row) -> str:
        return "no noise" if math.isinf(row.epsilon) else f"epsilon {row.epsilon:g}"

    return _grid(rows, "n", lambda row: count(row.n), column, beside_theory)


def table3(rows: list[Row]) -> str:
    return _grid(rows, "sketches", lambda row: row.sketches, lambda row: f"epsilon {row.epsilon:g}", beside_theory)


def table4(rows: list[Row]) -> str:
    """Relative efficiency of SFM (sym) against the others, then relative errors."""

    def cell(row: Row) -> str:
        return measured(row) if math.isnan(row.paper) else beside_theory(row)

    main = [row for row in rows if row.method in PRIVATE]
    others = [row for row in main if row.method != PRIVATE[0]]
    efficiencies = _grid(others, "epsilon", lambda row: f"{row.epsilon:g}", lambda row: f"against {row.method}", ratio)
    return efficiencies + "\n" + _grid(main, "epsilon", lambda row: f"{row.epsilon:g}", lambda row: row.method, cell)


def table5(rows: list[Row]) -> str:
    def cell(row: Row) -> str:
        known = percent(row.paper) if math.isnan(row.sandwich) else f"{percent(row.paper)} / {percent(row.sandwich)}"
        return f"{measured(row)} / {known}"

    names = {HLL: "HLL (composite)"}
    return _grid(rows, "buckets", lambda row: count(row.buckets), lambda row: names.get(row.method, row.method), cell)


def readings_table(rows: list[Row]) -> str:
    """From figure 4: the efficiency of SFM (sym) against PS, for each reading of its interval."""
    epsilons = sorted({row.epsilon for row in rows})
    by = {(row.method, row.epsilon): row for row in rows}
    body = []
    for method in (TIGHT, LOOSE):
        for reading in READINGS:
            here = [by[reading_method(method, reading), epsilon] for epsilon in epsilons]
            body.append([method, reading.name, *(three_digits(row.efficiency) for row in here)])
    return markdown(["sketch", "tolerance", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], body)


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "figure1": table1,
    "figure2": table2,
    "figure3": table3,
    "figure4": table4,
    "figure5": table5,
}


def _grid(
    rows: list[Row],
    corner: str,
    line: Callable[[Row], object],
    column: Callable[[Row], str],
    cell: Callable[[Row], str],
) -> str:
    """A table with one line and one column for each value, in the order of the rows."""
    lines, columns = list(dict.fromkeys(map(line, rows))), list(dict.fromkeys(map(column, rows)))
    shown = {(line(row), column(row)): cell(row) for row in rows}
    return markdown([corner, *columns], [[at, *(shown.get((at, name), "") for name in columns)] for at in lines])
