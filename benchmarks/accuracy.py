"""The tables of docs/accuracy.md: `python benchmarks/accuracy.py --processes 4`.

Every cell of a table is an independent seeded run; more trials continue the same run. Without --trials each table has
the number of trials that the document shows: about an hour of one core in all.
"""

import math
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import click
import numpy as np

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.estimate import channel_of, estimate
from sfm_stream.estimation.pair import estimate_pair
from sfm_stream.estimation.union import union
from sfm_stream.methods.logic import bit_and
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.noisy_bits import NoisyBits
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.occupancy import lit_cells, lit_windows, noisy_histogram, noisy_ones
from reference.pair_oracle import noisy_pair

from benchmarks.paper.standard_errors import standard_errors

BIG = (4096, 24)
SHAPES = (BIG, (64, 16), (256, 16), (1024, 20), (16384, 24))
EPSILONS = (0.5, 1, 2, 4, 8)
COUNTS = (0, 10, 30, 100, 300, 1000, 10_000, 100_000, 1_000_000)
OVERLAPS = ("disjoint", "same", "half", "heavy", "one", "day")
RELEASES = ((2, 1), (2, 4), (4, 1), (4, 2), (8, 1), (12, 2), (12, 4), (24, 2), (24, 4), (60, 4))
TALLY_COUNTS = (300, 1000, 10_000, 100_000)
PAIR_EPSILONS, PAIR_SIZE, PAIR_SHARED = (1, 2, 4), 100_000, (50_000, 10_000, 1000)
TRIALS = {"single": 600, "pair": 600, "tally": 100, "small": 60, "long": 1000}
LONG = (
    (BIG, 8, 1, "disjoint", 100_000),
    (BIG, 8, 1, "same", 100_000),
    (BIG, 8, 1, "heavy", 100_000),
    (BIG, 8, 1, "one", 100_000),
    (BIG, 12, 4, "same", 100_000),
    (BIG, 12, 4, "heavy", 100_000),
    (BIG, 24, 4, "same", 100_000),
    (BIG, 24, 4, "heavy", 100_000),
    (BIG, 60, 4, "same", 100_000),
    (BIG, 4, 1, "one", 1000),
    (BIG, 24, 2, "half", 300),
    ((64, 16), 24, 4, "same", 500),
    ((64, 16), 24, 4, "one", 500),
    ((64, 16), 24, 6, "one", 500),
    ((256, 16), 48, 6, "heavy", 100),
    ((256, 16), 4, 1, "disjoint", 3000),
    ((256, 16), 4, 1, "same", 3000),
    ((64, 16), 4, 2, "disjoint", 300),
    ((64, 16), 4, 2, "same", 300),
    ((256, 16), 2, 4, "heavy", 1000),
)
"""Mostly the cells whose coverage came out lowest in the short runs."""


def single(shape, epsilon, n, trials):
    """(trials, 4): value, unclamped, low, high of seeded sketches of n items."""
    rng = np.random.default_rng([1, *shape, round(1000 * epsilon), n])
    q = 1 / (math.exp(epsilon) + 1)
    channel = Channel(q, q, 1 - 2 * q)
    found = []
    for _ in range(trials):
        ones = noisy_ones(rng, lit_cells(rng, *shape, n), shape[0], q)
        found.append(one_sketch.solve(SketchShape(*shape), channel, ones, 0.95))
    return np.array([(e.value, e.unclamped, e.low, e.high) for e in found])


def tally(shape, releases, epsilon, pattern, n, trials):
    """The same of seeded tallies over `releases` windows."""
    rng = np.random.default_rng([2, *shape, releases, round(1000 * epsilon), n, OVERLAPS.index(pattern)])
    q = 1 / (math.exp(epsilon) + 1)
    channel = Channel(q, q, 1 - 2 * q)
    found = []
    for _ in range(trials):
        counts = noisy_histogram(rng, lit_windows(rng, *shape, n, releases, pattern), q)
        found.append(union.solve(SketchShape(*shape), channel, counts, 0.95))
    return np.array([(e.value, e.unclamped, e.low, e.high) for e in found])


def pair(shape, epsilon, both, trials):
    """(trials, 3, 4): unclamped, standard error, low, high for both, only first, and both from the AND alone."""
    rng = np.random.default_rng([3, *shape, round(1000 * epsilon), both])
    q, k, alone = 1 / (math.exp(epsilon) + 1), flip_threshold_of(epsilon), PAIR_SIZE - both
    found = []
    for _ in range(trials):
        noisy = noisy_pair(rng, *shape, (both, alone, alone), (q, q))
        packed = [np.packbits(bits, bitorder="little").tobytes() for bits in noisy]
        first, second = (SfmSketch(SketchShape(*shape), k, "xxh64", bits) for bits in packed)
        e = estimate_pair(first, second)
        rows = [(part.unclamped, part.standard_error, part.low, part.high) for part in (e.both, e.only_first)]
        found.append([*rows, (from_and_alone(first, second), 0.0, 0.0, 0.0)])
    return np.array(found)


def from_and_alone(first, second):
    """Items in both from the randomized AND: the mean of its z is gamma^a + gamma^b - gamma^u, a and b estimated apart.

    The union u solves the weighted score; both = a + b - u, which may be negative.
    """
    merged = bit_and([NoisyBits.of(first), NoisyBits.of(second)])
    shape, channel = first.shape, merged.mechanism.channel
    sums = ((channel.p - merged.array()) / channel.gap).reshape(shape.levels, -1).sum(axis=1)
    a, b = (estimate(sketch).value for sketch in (first, second))
    log_gamma = np.log1p(-shape.rho)

    def score(u):
        mean = np.exp(a * log_gamma) + np.exp(b * log_gamma) - np.exp(u * log_gamma)
        slope = -log_gamma * np.exp(u * log_gamma)
        return float(
            slope / (channel.empty_variance + np.clip(mean * (1 - mean), 0, 1)) @ (sums - shape.buckets * mean)
        )

    low, high = 0.0, 10.0 * (a + b + 1.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if score(middle) > 0.0 else (low, middle)
    return a + b - low


def covered(found, n):
    return 100 * float(np.mean((found[:, 2] <= n) & (n <= found[:, 3])))


def bias(found, n, column=0):
    return 100 * float(np.mean(found[:, column]) / n - 1)


def rrmse(found, n, column=0):
    return 100 * float(np.sqrt(np.mean((found[:, column] / n - 1) ** 2)))


def half_width(found, n):
    return 100 * float(np.median((found[:, 3] - found[:, 2]) / 2)) / n


def row(*cells):
    click.echo("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells):
    row(*cells)
    click.echo("|" + "---|" * len(cells))


def single_tables(run, trials):
    cases = [(shape, epsilon, n, trials) for shape, epsilon, n in product(SHAPES, EPSILONS, COUNTS)]
    found = dict(zip([case[:3] for case in cases], run(single, cases), strict=True))
    click.echo(f"\n### One sketch, 4096x24: relative error in %, {trials} trials\n")
    header("n", *(f"eps {e}: bias / RMSE / sandwich / paper" for e in EPSILONS))
    for n in (n for n in COUNTS if n >= 100):
        cells = []
        for e in EPSILONS:
            q = 1 / (math.exp(e) + 1)
            paper, sandwich = standard_errors(SketchShape(*BIG), Channel(q, q, 1 - 2 * q), float(n))
            here = found[BIG, e, n]
            spread = f"{100 * sandwich / n:.2f} / {100 * paper / n:.2f}"
            cells.append(f"{bias(here, n, 1):+.2f} / {rrmse(here, n, 1):.2f} / {spread}")
        row(n, *cells)
    click.echo(f"\n### One sketch: coverage of 95 % intervals in %, {trials} trials\n")
    header("shape", "n", *(f"eps {e}" for e in EPSILONS))
    for shape, n in product(SHAPES, COUNTS):
        row(f"{shape[0]}x{shape[1]}", n, *(f"{covered(found[shape, e, n], n):.1f}" for e in EPSILONS))


def pair_table(run, trials):
    cases = [(BIG, e, both, trials) for e, both in product(PAIR_EPSILONS, PAIR_SHARED)]
    found = dict(zip([case[1:3] for case in cases], run(pair, cases), strict=True))
    title = f"Two sketches of {PAIR_SIZE} items, 4096x24: error in items, {trials} trials"
    click.echo(f"\n### {title}\n")
    part = "RMSE / stated / coverage in %"
    header("eps", "in both", "one sketch alone", f"both: {part}", f"only first: {part}", "both, from AND alone: RMSE")
    for e, both in product(PAIR_EPSILONS, PAIR_SHARED):
        _, sandwich = standard_errors(SketchShape(*BIG), channel_of(flip_threshold_of(e)), float(PAIR_SIZE))
        cells = []
        for place, truth in enumerate((both, PAIR_SIZE - both)):
            here = found[e, both][:, place]
            stated = np.median(here[:, 1])
            cells.append(f"{rrmse(here, truth) * truth / 100:.0f} / {stated:.0f} / {covered(here, truth):.1f}")
        row(e, both, f"{sandwich:.0f}", *cells, f"{rrmse(found[e, both][:, 2], both) * both / 100:.0f}")


def tally_tables(run, trials, shapes, releases, counts, title):
    cases = [(s, k, e, p, n, trials) for s, (k, e), p, n in product(shapes, releases, OVERLAPS, counts)]
    found = dict(zip([case[:5] for case in cases], run(tally, cases), strict=True))
    click.echo(f"\n### {title}, {trials} trials: bias / RMSE of the value, RMSE of the moment, in %\n")
    header("shape", "releases, eps", "n", *OVERLAPS)
    for s, (k, e), n in product(shapes, releases, counts):
        here = [found[s, k, e, p, n] for p in OVERLAPS]
        cells = (f"{bias(f, n):+.1f} / {rrmse(f, n):.1f}, {rrmse(f, n, 1):.1f}" for f in here)
        row(f"{s[0]}x{s[1]}", f"{k}, {e}", n, *cells)
    click.echo(f"\n### {title}: coverage of 95 % intervals in % (median half width in %)\n")
    header("shape", "releases, eps", "n", *OVERLAPS)
    for s, (k, e), n in product(shapes, releases, counts):
        here = [found[s, k, e, p, n] for p in OVERLAPS]
        row(f"{s[0]}x{s[1]}", f"{k}, {e}", n, *(f"{covered(f, n):.1f} ({half_width(f, n):.0f})" for f in here))


def long_table(run, trials):
    click.echo(f"\n### Long runs, {trials} trials, in %\n")
    header("shape", "releases, eps", "overlap", "n", "coverage", "too high / too low", "value: bias / RMSE", "moment")
    cases = [(*case, trials) for case in LONG]
    for (s, k, e, p, n, _), f in zip(cases, run(tally, cases), strict=True):
        missed = f"{100 * np.mean(f[:, 2] > n):.1f} / {100 * np.mean(f[:, 3] < n):.1f}"
        errors = [f"{bias(f, n, c):+.1f} / {rrmse(f, n, c):.1f}" for c in (0, 1)]
        row(f"{s[0]}x{s[1]}", f"{k}, {e}", p, n, f"{covered(f, n):.1f}", missed, *errors)


@click.command()
@click.option("--trials", type=int, help="Sketches a cell of a table. Default: as in the document.")
@click.option("--processes", default=1, show_default=True)
@click.option("--table", "tables", type=click.Choice(list(TRIALS)), multiple=True, help="Default: all.")
def main(trials: int | None, processes: int, tables: tuple[str, ...]) -> None:
    """Measure the estimators and print the tables of docs/accuracy.md."""
    wanted = {name: trials or TRIALS[name] for name in tables or TRIALS}
    with ProcessPoolExecutor(processes) as pool:

        def run(job, cases):
            return list(pool.map(job, *zip(*cases, strict=True)))

        if "single" in wanted:
            single_tables(run, wanted["single"])
        if "pair" in wanted:
            pair_table(run, wanted["pair"])
        if "tally" in wanted:
            tally_tables(run, wanted["tally"], [BIG], RELEASES, TALLY_COUNTS, "Tallies, 4096x24")
        if "small" in wanted:
            pairs = ((24, 4), (24, 6), (48, 4), (48, 6))
            tally_tables(run, wanted["small"], [(64, 16), (256, 16)], pairs, (10, 30, 100, 500), "Small tallies")
        if "long" in wanted:
            long_table(run, wanted["long"])


if __name__ == "__main__":
    main()
