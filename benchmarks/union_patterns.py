"""Unions whose windows share items in ways that nobody tuned to: `python -m benchmarks.union_patterns --trials 100`.

Every line is an independent seeded run of one pattern, number of windows and epsilon; more trials continue the run.
Each trial simulates every window's cells, flips them, and asks for the union: by the moment alone, by the mixture
alone, and by `estimate` of a tally without the sizes of its windows, with them, and with noisy counts (a tenth of
epsilon).
One trial of 24 windows takes about 0.15 s of one core. docs/accuracy.md has the tables.
"""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from itertools import product

import click
import numpy as np

from sfm_stream.estimation.estimate import channel_of, estimate
from sfm_stream.estimation.union import mixture_estimate
from sfm_stream.estimation.union.overlap_hypotheses import overlap_hypotheses
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import GRID, NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally
from sfm_stream.sketch.window_sizes import WindowSizes

RELEASES, EPSILONS, COUNT_SHARE = (8, 12, 24, 28), (1.0, 2.0, 4.0), 0.1
METHODS = ("moment", "mixture", "no sizes", "sizes", "counts")


def independent(rng, n, windows):
    """Each item in each window with probability 0.3, in one at least."""
    return often(rng, np.full((n, windows), 0.3))


def disjoint(rng, n, windows):
    """Each item in one window."""
    return np.arange(n), rng.integers(0, windows, n)


def identical(rng, n, windows):
    """Each item in every window."""
    return np.repeat(np.arange(n), windows), np.tile(np.arange(windows), n)


def huge(rng, n, windows):
    """Nine tenths of the items in the first window, each other item in one of the others."""
    large = n * 9 // 10
    return np.arange(n), np.concatenate([np.zeros(large, int), rng.integers(1, windows, n - large)])


def day_and_night(rng, n, windows):
    """Half of the items in every window of the first half, the others in every window of the second half."""
    half = windows // 2
    return often(rng, ((np.arange(n) % 2)[:, None] == (np.arange(windows) >= half)).astype(float))


def weekly(rng, n, windows):
    """Seven cohorts, each in every seventh window."""
    cohorts = min(7, windows)
    return often(rng, ((np.arange(n) % cohorts)[:, None] == np.arange(windows) % cohorts).astype(float))


def two(rng, n, windows):
    """Each item in exactly two windows."""
    first = rng.integers(0, windows, n)
    second = (first + rng.integers(1, windows, n)) % windows
    return np.concatenate([np.arange(n), np.arange(n)]), np.concatenate([first, second])


def growth(rng, n, windows):
    """Items join, one and a half times as many in each window, and are in each later window with probability 0.5."""
    weights = 1.5 ** np.arange(min(windows, 16))
    weights = np.concatenate([np.full(windows - len(weights), weights[0]), weights])
    age = ages(rng.choice(windows, n, p=weights / weights.sum()), windows)
    return often(rng, np.where(age == 0, 1.0, np.where(age > 0, 0.5, 0.0)))


def nested(rng, n, windows):
    """Each window holds four fifths of the window before it; the first holds all items."""
    return often(rng, (np.arange(n)[:, None] < n * 0.8 ** np.arange(windows)).astype(float))


def retention(rng, n, windows):
    """Items join evenly and come back a windows later with probability 0.4 a^-0.7."""
    age = ages(rng.integers(0, windows, n), windows)
    return often(rng, np.where(age == 0, 1.0, np.where(age > 0, 0.4 * np.maximum(age, 1) ** -0.7, 0.0)))


def power_law(rng, n, windows):
    """Each item in each window with a probability of its own, Pareto distributed; most are in one or two."""
    return often(rng, np.minimum(1.0, (rng.pareto(1.0, n) + 0.5) / windows)[:, None] * np.ones(windows))


def bots(rng, n, windows):
    """One item in a hundred in every window, the others in one."""
    robots = n // 100
    window = np.concatenate([np.tile(np.arange(windows), robots), rng.integers(0, windows, n - robots)])
    return np.concatenate([np.repeat(np.arange(robots), windows), np.arange(robots, n)]), window


PATTERNS = {
    each.__name__: each
    for each in (independent, disjoint, identical, huge, day_and_night, weekly, two, growth, nested, retention)
} | {"power_law": power_law, "bots": bots}


def often(rng, chance):
    """(item, window) pairs, each with its chance, of shape (n, windows); an item in no window is put into one."""
    present = rng.random(chance.shape, np.float32) < chance
    never = np.flatnonzero(~present.any(axis=1))
    present[never, rng.integers(0, chance.shape[1], len(never))] = True
    return np.nonzero(present)


def ages(joined, windows):
    """Shape (n, windows): windows since the item joined; negative before."""
    return np.arange(windows) - joined[:, None]


def lit(rng, shape, pattern, n, windows):
    """Shape (windows, levels * buckets): the raw cells of each window."""
    chances = np.array([2.0 ** -min(j, shape.levels - 1) for j in range(1, shape.levels + 1)])
    cell = rng.choice(shape.levels, n, p=chances) * shape.buckets + rng.integers(0, shape.buckets, n)
    item, window = PATTERNS[pattern](rng, n, windows)
    cells = np.zeros((windows, shape.cells), bool)
    cells[window, cell[item]] = True
    return cells


def tally(rng, shape, cells, epsilon, count_share):
    """The tally of the flipped windows, with the sizes that they tell."""
    threshold = flip_threshold_of(epsilon * (1 - count_share))
    noisy = cells ^ (rng.random(cells.shape, np.float32) < threshold / GRID)
    ones = noisy.reshape(-1, shape.levels, shape.buckets).sum(axis=2)
    counts = [None] * len(cells)
    if count_share:
        each = Decimal(str(epsilon * count_share))
        a = math.exp(-float(each))
        noise = rng.geometric(1 - a, len(cells)) - rng.geometric(1 - a, len(cells))
        counts = [NoisyCount(int(lit + extra), each) for lit, extra in zip(cells.sum(axis=1), noise, strict=True)]
    total = noisy.sum(axis=0, dtype=np.int32).reshape(shape.levels, -1)
    return Tally(shape, threshold, "h", len(cells), total, sizes=WindowSizes(ones, tuple(counts)))


def without_sizes(tally):
    return Tally(tally.shape, tally.flip_threshold, tally.hash, tally.releases, tally.counts)


def run(pattern, releases, epsilon, n, trials, buckets, levels, confidence):
    """Shape (trials, methods, 3): value, low and high; NaN where a method has none."""
    names = sorted(PATTERNS)
    rng = np.random.default_rng([5, releases, round(1000 * epsilon), n, names.index(pattern), buckets])
    shape, found = SketchShape(buckets, levels), []
    for _ in range(trials):
        cells = lit(rng, shape, pattern, n, releases)
        plain, counted = tally(rng, shape, cells, epsilon, 0.0), tally(rng, shape, cells, epsilon, COUNT_SHARE)
        bare = estimate(without_sizes(plain), confidence=confidence)
        hypotheses = overlap_hypotheses(channel_of(plain.flip_threshold), releases)
        mixture = mixture_estimate.fit(shape, hypotheses, plain.histogram(), max(bare.value, 1.0)).n
        answers = [bare, *(estimate(each, confidence=confidence) for each in (plain, counted))]
        moment = max(bare.unclamped, 0.0) if math.isfinite(bare.standard_error) else math.nan
        rows = [(moment, math.nan, math.nan), (mixture, math.nan, math.nan)]
        found.append(rows + [(each.value, each.low, each.high) for each in answers])
    return np.array(found)


def cells_of(found, n):
    """The cells of a line of the table."""
    value, low, high = np.moveaxis(found, 2, 0)
    errors = 100 * np.sqrt(np.mean((value / n - 1) ** 2, axis=0))
    biases = 100 * np.mean(value / n - 1, axis=0)
    covered = 100 * np.mean((low <= n) & (n <= high), axis=0)
    width = 100 * np.median(high - low, axis=0) / n
    for method in range(len(METHODS)):
        if np.isnan(value[:, method]).any():
            yield "-"
        elif method < 2:
            yield f"{errors[method]:.1f} ({biases[method]:+.1f})"
        else:
            yield f"{errors[method]:.1f} ({biases[method]:+.1f}), {covered[method]:.0f}, {width[method]:.0f}"


@click.command()
@click.option("--trials", default=100, show_default=True, help="Tallies a line.")
@click.option("--processes", default=1, show_default=True)
@click.option("--items", default=100_000, show_default=True, help="Distinct items of the union.")
@click.option("--pattern", "patterns", type=click.Choice(list(PATTERNS)), multiple=True, help="Default: all.")
@click.option("--releases", type=int, multiple=True, help=f"Default: {RELEASES}.")
@click.option("--epsilon", "epsilons", type=float, multiple=True, help=f"Of a release. Default: {EPSILONS}.")
@click.option("--shape", nargs=2, default=(4096, 24), show_default=True, help="Buckets and levels.")
@click.option("--confidence", default=0.95, show_default=True)
def main(trials, processes, items, patterns, releases, epsilons, shape, confidence) -> None:
    """Measure the estimates of unions and print the tables of docs/accuracy.md."""
    each = product(patterns or PATTERNS, releases or RELEASES, epsilons or EPSILONS)
    cases = [(*case, items, trials, *shape, confidence) for case in each]
    bound = 196 * math.sqrt(confidence * (1 - confidence) / trials)
    click.echo(f"{items} items, {shape[0]}x{shape[1]}, {trials} trials, in %. Moment and mixture: RMSE (bias).")
    click.echo(
        f"Estimates: RMSE (bias), coverage ({100 * confidence:g} +-{bound:.1f}), median width of the interval.\n"
    )
    click.echo("| pattern | releases, eps | " + " | ".join(METHODS) + " |\n" + "|---" * (2 + len(METHODS)) + "|")
    with ProcessPoolExecutor(processes) as pool:
        for (pattern, k, epsilon, *_), found in zip(cases, pool.map(run, *zip(*cases, strict=True)), strict=True):
            click.echo(f"| {pattern} | {k}, {epsilon:g} | " + " | ".join(cells_of(found, items)) + " |")


if __name__ == "__main__":
    main()
