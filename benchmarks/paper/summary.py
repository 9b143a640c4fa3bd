"""From trials to a table of errors, and its CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.cells import LEVELS, SYM, Cell, Plan
from benchmarks.paper.theory import relative_errors

DIGITS = 6
"""Significant digits in the CSV; tables are made from the CSV, so that both say the same."""


@dataclass(frozen=True)
class Row:
    """One cell, measured. Errors are relative to n; NaN where there is none.

    rrmse_error: standard error of rrmse, from the spread of the squared errors (delta method). paper, sandwich: what
    theory.relative_errors says. efficiency: mean squared error of this method over that of SFM (sym) at the same
    point, the paper's RE; efficiency_error its standard error, from the same trials of both.
    """

    figure: str
    data: str
    method: str
    n: int
    epsilon: float
    buckets: int
    levels: int
    sketches: int
    trials: int
    rrmse: float
    rrmse_error: float
    bias: float
    paper: float
    sandwich: float
    efficiency: float
    efficiency_error: float

    @property
    def cell(self) -> Cell:
        return Cell(self.method, self.n, self.epsilon, self.buckets, self.sketches)


def summarise(plan: Plan, estimates: NDArray[np.float64]) -> list[Row]:
    """One row for each cell. estimates: shape (trials, cells), two trials at least."""
    truth = np.array([cell.n for cell in plan.cells])
    errors = estimates / truth - 1.0
    squares = errors**2
    trials = len(estimates)
    reference = {cell.point: column for column, cell in enumerate(plan.cells) if cell.method == SYM}
    rows = []
    for column, cell in enumerate(plan.cells):
        mean = float(squares[:, column].mean())
        rrmse = math.sqrt(mean)
        spread = float(squares[:, column].std(ddof=1)) / math.sqrt(trials)
        paper, sandwich = relative_errors(cell) or (math.nan, math.nan)
        other = reference.get(cell.point)
        ratio = efficiency(squares[:, column], squares[:, other]) if other is not None else (math.nan, math.nan)
        measured = (rrmse, spread / (2.0 * rrmse), float(errors[:, column].mean()), paper, sandwich, *ratio)
        told = (plan.figure, plan.data, cell.method, cell.n, cell.epsilon, cell.buckets, LEVELS, cell.sketches, trials)
        rows.append(Row(*told, *(float(f"{value:.{DIGITS}g}") for value in measured)))
    return rows


def efficiency(squares: NDArray[np.float64], reference: NDArray[np.float64]) -> tuple[float, float]:
    """(RE, its standard error): mean square over that of the reference, measured in the same trials."""
    ratio = float(squares.mean() / reference.mean())
    relative = squares / squares.mean() - reference / reference.mean()
    return ratio, ratio * float(relative.std(ddof=1)) / math.sqrt(len(squares))


def write_csv(rows: Iterable[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_csv(path: Path) -> list[Row]:
    kinds = {"str": str, "int": int, "float": float}
    with path.open(newline="") as file:
        return [Row(**{f.name: kinds[f.type](row[f.name]) for f in fields(Row)}) for row in csv.DictReader(file)]
