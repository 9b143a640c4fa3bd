"""What two unions share, by the paper's merge of each: `python -m benchmarks.pairs_of_unions --trials 100`.

Two sets of 20,000 items, half of them in both, each in so many windows. docs/accuracy.md has the table.
"""

from __future__ import annotations

from itertools import product

import click
import numpy as np

from benchmarks.differences import SHAPE, cells
from benchmarks.union_patterns import tally
from sfm_stream.estimation.estimate import Status
from sfm_stream.estimation.pair import estimate_pair
from sfm_stream.sketch.merge import merge_tally
from sfm_stream.sketch.sfm import SfmSketch

ITEMS, SHARED, RETURNS = 20_000, 10_000, 0.4
WINDOWS, EPSILONS = (1, 2, 3, 7), (1.0, 2.0, 4.0)


def merged(rng: np.random.Generator, cell: np.ndarray, items: np.ndarray, windows: int, epsilon: float) -> SfmSketch:
    """The merge of the releases of a set, each item in each window with probability RETURNS, in one at least."""
    there = rng.random((len(items), windows)) < RETURNS
    there[np.arange(len(items)), rng.integers(0, windows, len(items))] = True
    lit = np.zeros((windows, SHAPE.cells), bool)
    for window in range(windows):
        lit[window, cell[items[there[:, window]]]] = True
    return merge_tally(tally(rng, SHAPE, lit, epsilon, 0.0))


def run(windows: int, epsilon: float, trials: int) -> tuple[float, float, float]:
    """(root mean square error of what both have in items, coverage in %, answers that say nothing in %)."""
    rng = np.random.default_rng([13, windows, round(1000 * epsilon)])
    errors, holds, nothing = [], 0, 0
    for _ in range(trials):
        cell = cells(rng, 2 * ITEMS - SHARED)
        sets = np.arange(ITEMS), np.arange(ITEMS - SHARED, 2 * ITEMS - SHARED)
        both = estimate_pair(*(merged(rng, cell, items, windows, epsilon) for items in sets)).both
        holds += both.low <= SHARED <= both.high
        nothing += both.status is Status.UNINFORMATIVE
        if both.status is not Status.UNINFORMATIVE:
            errors.append(both.value - SHARED)
    error = float(np.sqrt(np.mean(np.square(errors)))) if errors else np.inf
    return error, 100 * holds / trials, 100 * nothing / trials


@click.command()
@click.option("--trials", default=100, show_default=True)
def main(trials: int) -> None:
    """Print the table."""
    click.echo("| windows of each | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    click.echo("|---|" + "---|" * len(EPSILONS))
    found = {case: run(*case, trials) for case in product(WINDOWS, EPSILONS)}
    for windows in WINDOWS:
        texts = ("{:,.0f}, {:.0f}, {:.0f}".format(*found[windows, epsilon]) for epsilon in EPSILONS)
        click.echo(f"| {windows} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
