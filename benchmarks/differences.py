"""Differences of two estimates, and ranks of many: `python -m benchmarks.differences --trials 400`.

Seeded. Half of the smaller set is in the larger one too: both have the same items in the same cells, as two days of a
page do, and noise of their own. docs/accuracy.md has the tables.
"""

from __future__ import annotations

from itertools import product

import click
import numpy as np

from benchmarks.union_patterns import tally
from sfm_stream.estimation.difference import difference
from sfm_stream.estimation.estimate import estimate
from sfm_stream.estimation.ranks import rank_ranges
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

SHAPE, EPSILONS, RETURNS = SketchShape(4096, 24), (1.0, 2.0, 4.0), 0.4
SIZES = ((0, 0), (0, 1000), (1000, 1000), (1000, 20_000), (20_000, 20_000), (20_000, 22_000), (100_000, 80_000))
KEYS = 30
RANKED = {
    "all equal": np.full(KEYS, 5000),
    "falling": np.round(50_000 * 0.8 ** np.arange(KEYS)).astype(int),
    "two groups": np.repeat([20_000, 2000], KEYS // 2),
}


def released(rng: np.random.Generator, cell: np.ndarray, items: np.ndarray, windows: int, epsilon: float) -> Tally:
    """The releases of a set in so many windows, each item in each with probability RETURNS, in one at least."""
    there = rng.random((len(items), windows)) < RETURNS
    there[np.arange(len(items)), rng.integers(0, windows, len(items))] = True
    lit = np.zeros((windows, SHAPE.cells), bool)
    for window in range(windows):
        lit[window, cell[items[there[:, window]]]] = True
    return tally(rng, SHAPE, lit, epsilon, 0.0)


def cells(rng: np.random.Generator, n: int) -> np.ndarray:
    """Shape (n,): the cell of each item."""
    level = rng.choice(SHAPE.levels, size=n, p=SHAPE.rho * SHAPE.buckets)
    return level * SHAPE.buckets + rng.integers(0, SHAPE.buckets, n)


def covered(sizes: tuple[int, int], windows: int, epsilon: float, trials: int) -> tuple[float, float, float]:
    """(coverage, share of signs that are said, share of them that are wrong), in %."""
    first, second = sizes
    rng = np.random.default_rng([11, first, second, windows, round(1000 * epsilon)])
    holds = said = wrong = 0
    for _ in range(trials):
        cell = cells(rng, first + second)
        begin = first - min(first, second) // 2
        one = estimate(released(rng, cell, np.arange(first), windows, epsilon))
        other = estimate(released(rng, cell, np.arange(begin, begin + second), windows, epsilon))
        found = difference(one, other)
        holds += found.low <= second - first <= found.high
        said += found.sign is not None
        wrong += found.sign is not None and found.sign != np.sign(second - first)
    return 100 * holds / trials, 100 * said / trials, 100 * wrong / trials


def ranked(sizes: np.ndarray, epsilon: float, trials: int) -> tuple[float, float]:
    """(share of trials in which every range of ranks holds, in %; median number of ranks that are open)."""
    rng = np.random.default_rng([12, int(sizes.sum()), round(1000 * epsilon)])
    above = (sizes[None, :] > sizes[:, None]).sum(axis=1)
    same_or_above = (sizes[None, :] >= sizes[:, None]).sum(axis=1)
    holds, open_ranks = 0, list[int]()
    for _ in range(trials):
        found = rank_ranges([estimate(released(rng, cells(rng, n), np.arange(n), 1, epsilon)) for n in sizes.tolist()])
        ranges = zip(found, above.tolist(), same_or_above.tolist(), strict=True)
        holds += all(each.low <= more + 1 and each.high >= most for each, more, most in ranges)
        open_ranks += [each.high - each.low + 1 for each in found]
    return 100 * holds / trials, float(np.median(open_ranks))


@click.command()
@click.option("--trials", default=400, show_default=True, help="Differences a cell; a quarter of it for ranks.")
def main(trials: int) -> None:
    """Print the tables of docs/accuracy.md."""
    heads = [f"epsilon {epsilon:g}" for epsilon in EPSILONS]
    click.echo("| first, second | windows | " + " | ".join(heads) + " |\n|---|---|" + "---|" * len(heads))
    for (sizes, windows), texts in ((case, []) for case in product(SIZES, (1, 7))):
        for epsilon in EPSILONS:
            holds, said, wrong = covered(sizes, windows, epsilon, trials if windows == 1 else trials // 4)
            texts.append(f"{holds:.1f}; {said:.0f}, {wrong:.1f}")
        click.echo(f"| {sizes[0]:,}, {sizes[1]:,} | {windows} | " + " | ".join(texts) + " |")
    click.echo("\n| sizes | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for name, of_keys in RANKED.items():
        pairs = (ranked(of_keys, epsilon, trials // 4) for epsilon in EPSILONS)
        click.echo(f"| {name} | " + " | ".join(f"{holds:.0f}; {median:g}" for holds, median in pairs) + " |")


if __name__ == "__main__":
    main()
