"""The union of several keys over several windows: `python -m benchmarks.joined_keys --trials 60`.

Each line is an independent seeded run. Windows of one key share items as windows do, and keys share items by the
pattern: the releases of all keys are tallied together, as `estimate --joined` does. docs/accuracy.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import click
import numpy as np

from benchmarks.union_patterns import tally
from sfm_stream.estimation.estimate import estimate
from sfm_stream.sketch.shape import SketchShape

SHAPE, RETURNS = SketchShape(4096, 24), 0.4
SIZES, EPSILONS = ((3, 1), (10, 1), (3, 7), (10, 7)), (1.0, 2.0, 4.0)


def sections(rng: np.random.Generator, n: int, keys: int) -> np.ndarray:
    """No item is under two keys."""
    return rng.integers(0, keys, n)[:, None] == np.arange(keys)


def funnel(rng: np.random.Generator, n: int, keys: int) -> np.ndarray:
    """Each key has two fifths of the items of the key before; the first has all."""
    return np.arange(n)[:, None] < n * 0.4 ** np.arange(keys)


def one_large(rng: np.random.Generator, n: int, keys: int) -> np.ndarray:
    """Nine tenths of the items are under the first key only, each of the others under another one."""
    key = np.where(np.arange(n) < n * 9 // 10, 0, rng.integers(1, keys, n))
    return key[:, None] == np.arange(keys)


def some(rng: np.random.Generator, n: int, keys: int) -> np.ndarray:
    """Each item under each key with a probability of its own, Pareto distributed; under one at least."""
    there = rng.random((n, keys)) < np.minimum(1.0, (rng.pareto(1.0, n) + 0.5) / keys)[:, None]
    there[np.arange(n), rng.integers(0, keys, n)] = True
    return there


PATTERNS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    each.__name__: each for each in (sections, funnel, one_large, some)
}


def cells(rng: np.random.Generator, pattern: str, n: int, keys: int, windows: int) -> np.ndarray:
    """Shape (keys * windows, cells): each item is in each window with probability RETURNS, in one at least."""
    there = rng.random((n, windows)) < RETURNS
    there[np.arange(n), rng.integers(0, windows, n)] = True
    of_keys = PATTERNS[pattern](rng, n, keys)
    level = rng.choice(SHAPE.levels, size=n, p=SHAPE.rho * SHAPE.buckets)
    cell = level * SHAPE.buckets + rng.integers(0, SHAPE.buckets, n)
    lit = np.zeros((keys * windows, SHAPE.cells), bool)
    for key, window in product(range(keys), range(windows)):
        lit[key * windows + window, cell[of_keys[:, key] & there[:, window]]] = True
    return lit


def run(pattern: str, keys: int, windows: int, epsilon: float, n: int, trials: int) -> np.ndarray:
    """Shape (trials, 3): value, low and high, as parts of the truth."""
    rng = np.random.default_rng([8, keys, windows, round(1000 * epsilon), n, list(PATTERNS).index(pattern)])
    found = []
    for _ in range(trials):
        each = estimate(tally(rng, SHAPE, cells(rng, pattern, n, keys, windows), epsilon, 0.0))
        found.append((each.value, each.low, each.high))
    return np.array(found) / n


@click.command()
@click.option("--trials", default=60, show_default=True, help="Unions a cell.")
@click.option("--items", default=100_000, show_default=True, help="Distinct items of the union.")
def main(trials: int, items: int) -> None:
    """Print the table of docs/accuracy.md."""
    click.echo("| keys x windows | pattern | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    click.echo("|---|---|" + "---|" * len(EPSILONS))
    for (keys, windows), pattern in product(SIZES, PATTERNS):
        texts = []
        for epsilon in EPSILONS:
            value, low, high = run(pattern, keys, windows, epsilon, items, trials).T
            error, bias = 100 * np.sqrt(np.mean((value - 1) ** 2)), 100 * np.mean(value - 1)
            covered, width = 100 * np.mean((low <= 1) & (high >= 1)), 100 * np.median(high - low)
            texts.append(f"{error:.1f} ({bias:+.1f}), {covered:.0f}, {width:.0f}")
        click.echo(f"| {keys} x {windows} | `{pattern}` | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
