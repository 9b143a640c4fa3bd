"""What two unions share, by the paper's merge of each: `python -m benchmarks.pairs_of_unions --trials 100`.

Two sets of 20,000 items, half of them in both, each in so many windows. docs/accuracy.md has the table.
"""

from __future__ import annotations

from itertools import product

import click
import numpy as np

from benchmarks.differences import cells, released
from sfm_stream.estimation.estimate import Status
from sfm_stream.estimation.pair import estimate_pair
from sfm_stream.sketch.merge import merge_tally

ITEMS, SHARED = 20_000, 10_000
WINDOWS, EPSILONS = (1, 2, 3, 7), (1.0, 2.0, 4.0)


def run(windows: int, epsilon: float, trials: int) -> tuple[float, float, float]:
    """(root mean square error of what both have in items, coverage in %, answers that say nothing in %)."""
    rng = np.random.default_rng([13, windows, round(1000 * epsilon)])
    errors, holds, nothing = [], 0, 0
    for _ in range(trials):
        cell = cells(rng, 2 * ITEMS - SHARED)
        sets = np.arange(ITEMS), np.arange(ITEMS - SHARED, 2 * ITEMS - SHARED)
        both = estimate_pair(*(merge_tally(released(rng, cell, items, windows, epsilon)) for items in sets)).both
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
