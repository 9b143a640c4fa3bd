"""Coverage of the 95 % intervals of one sketch, with and without a noisy count: `python benchmarks/coverage.py`.

Rows of docs/accuracy.md: of each shape and number of items, for each epsilon, the coverage by share of the count. Lit
cells are simulated once for a shape and a number of items and used for all epsilons and shares, so cells of a row are
not independent. With --widths the mean width of the intervals takes the place of their coverage. 4,000 trials where the
law of few items is used, 1,000 elsewhere.
"""

import math
import sys
from pathlib import Path

import click
import numpy as np

from sfm_stream.estimation import one_sketch, with_count
from sfm_stream.estimation.score import Solution
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.occupancy import lit_cells, noisy_ones

SHAPES = ((64, 16), (256, 24), (4096, 24), (16384, 32))
COUNTS = (0, 1, 3, 10, 30, 100, 300, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
EPSILONS, SHARES = (0.25, 0.5, 1, 2, 4, 6, 8), (0, 0.05, 0.1, 0.2, 0.5)
FEW_TRIALS, TRIALS, CONFIDENCE = 4000, 1000, 0.95


def lit_of_many(rng, buckets, levels, n, trials):
    """Shape (trials, levels)."""
    if n > 1000:
        return np.array([lit_cells(rng, buckets, levels, n) for _ in range(trials)])
    found = np.zeros((trials, levels), np.int64)
    for trial in range(0, trials, 100):
        level = np.minimum(rng.geometric(0.5, (100, n)) - 1, levels - 1)
        cell = (np.arange(100)[:, None] * levels + level) * buckets + rng.integers(0, buckets, (100, n))
        found[trial : trial + 100] = np.bincount(np.unique(cell) // buckets, minlength=100 * levels).reshape(100, -1)
    return found


def intervals(rng, shape, epsilon, share, n, lit):
    """(low, high) of each trial, from the tables that `estimate` uses."""
    for_count = epsilon * share
    q = 1 / (math.exp(epsilon - for_count) + 1)
    channel, ratio = Channel(q, q, 1 - 2 * q), math.exp(-for_count)
    sums = one_sketch.level_sums(shape, channel, noisy_ones(rng, lit, shape.buckets, q))
    if for_count:
        noise = rng.geometric(1 - ratio, len(lit)) - rng.geometric(1 - ratio, len(lit))
        sums = with_count.with_rest(shape, sums, lit.sum(axis=1) + noise)
        scores, accepted = with_count.table(shape, channel, for_count, CONFIDENCE)
        few = with_count.few(shape, channel, for_count, CONFIDENCE)
    else:
        scores, accepted = one_sketch.table(shape, channel, CONFIDENCE)
        few = one_sketch.few(shape, channel, CONFIDENCE)
    value, low, high = inverted(scores, accepted, sums)
    if few is not None and n <= few.scores.n[-1]:
        for trial in np.flatnonzero(low <= few.scores.n[-1]):
            refined = few.refined(Solution(value[trial], 0.0, 0.0, low[trial], high[trial]), sums[trial])
            low[trial], high[trial] = refined.low, refined.high
    return low, high


def inverted(scores, accepted, sums):
    """(value, low, high) of many sketches, as score.invert has them for one, but interpolated linearly."""
    found = []
    for some in np.array_split(sums, max(1, len(sums) // 500)):
        score = some @ scores.weights.T - scores.offset
        below, above = accepted.beyond(score)
        first = np.where((below <= 0).any(axis=1), (below <= 0).argmax(axis=1), len(scores.n) - 1)
        last = len(scores.n) - 1 - (above[:, ::-1] >= 0).argmax(axis=1)
        low = np.where(first > 0, zero(scores.n, below, np.maximum(first - 1, 0)), 0.0)
        inside, root = np.minimum(last, len(scores.n) - 2), (score <= 0).argmax(axis=1)
        value = np.where(root > 0, zero(scores.n, score, np.maximum(root - 1, 0)), 0.0)
        found.append((value, low, np.where(last > inside, math.inf, zero(scores.n, above, inside))))
    return np.concatenate(found, axis=1)


def zero(n, values, left):
    rows = np.arange(len(values))
    before, after = values[rows, left], values[rows, left + 1]
    return n[left] + (n[left + 1] - n[left]) * before / np.where(before != after, before - after, 1.0)


def known_to_two(shape, epsilon, share, n):
    """Whether n is one of those that the law of few items is for."""
    for_count = epsilon * share
    q = 1 / (math.exp(epsilon - for_count) + 1)
    channel = Channel(q, q, 1 - 2 * q)
    few = with_count.few(shape, channel, for_count, CONFIDENCE) if share else one_sketch.few(shape, channel, CONFIDENCE)
    return few is not None and n <= few.scores.n[-1]


@click.command()
@click.option("--shape", type=click.Choice([f"{b}x{p}" for b, p in SHAPES]), multiple=True, help="Default: all.")
@click.option("--most", default=COUNTS[-1], help="Largest number of items.")
@click.option("--widths", is_flag=True)
def main(shape: tuple[str, ...], most: int, widths: bool) -> None:
    for buckets, levels in SHAPES:
        of = SketchShape(buckets, levels)
        if shape and str(of) not in shape:
            continue
        for n in COUNTS:
            if n > most:
                continue
            rng = np.random.default_rng([buckets, levels, n])
            lit = lit_of_many(rng, buckets, levels, n, FEW_TRIALS if n <= 1000 else TRIALS)
            cells = []
            for epsilon in EPSILONS:
                found = []
                for share in SHARES:
                    some = lit if known_to_two(of, epsilon, share, n) else lit[:TRIALS]
                    low, high = intervals(rng, of, epsilon, share, n, some)
                    covered = 100 * np.mean((low <= n) & (n <= high))
                    found.append(f"{np.mean(high - low):.2f}" if widths else f"{covered:.1f}")
                cells.append(" ".join(found))
            click.echo(f"| {of} | {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
