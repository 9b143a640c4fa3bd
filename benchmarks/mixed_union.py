"""Unions of releases of two epsilons: `python benchmarks/mixed_union.py`.

The table of docs/accuracy.md, "Unions of several epsilons": seeded, a few minutes.
"""

import sys
from pathlib import Path

import click
import numpy as np

from sfm_stream import PcsaSketch, SketchShape, Tally, estimate, flip
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.sketch.merge import merge_tallies

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.seeded_coins import SeededCoins

SHAPE = SketchShape(4096, 24)
TRIALS = 60


def parts(pattern: str, items: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Items of the windows of each epsilon. items: distinct."""
    if pattern == "epochs":
        windows = [items[number * 4000 : number * 4000 + 8000] for number in range(12)]
        return windows[:6], windows[6:]
    if pattern == "nested":
        core = items[:6000]
        days = [np.concatenate([core, items[10_000 + n * 3000 : 13_000 + n * 3000]]) for n in range(6)]
        return days, [core[n * 500 : n * 500 + 800] for n in range(6)]
    days = [items[number * 8000 : number * 8000 + 8000] for number in range(6)]
    return days, [items[100_000 + number * 800 : 100_800 + number * 800] for number in range(6)]


def tally(windows: list[np.ndarray], epsilon: float, coins: SeededCoins) -> Tally:
    return Tally.of(flip(PcsaSketch(SHAPE).add(w.tolist()), epsilon, coins, count_share=0.1) for w in windows)


def main() -> None:
    """Print the table."""
    for pattern, epsilons in (("nested", (1, 0.5)), ("disjoint", (1, 0.5)), ("nested", (2, 1)), ("epochs", (4, 2))):
        rows = []
        for seed in range(TRIALS):
            coins = SeededCoins(seed)
            groups = parts(pattern, np.random.default_rng(seed).permutation(1 << 18))
            truth = len(np.unique(np.concatenate([*groups[0], *groups[1]])))
            tallies = [tally(windows, epsilon, coins) for windows, epsilon in zip(groups, epsilons, strict=True)]
            found, merged = estimate_union(tallies), estimate(merge_tallies(tallies))
            rows.append(
                (
                    found.value / truth - 1,
                    merged.value / truth - 1,
                    estimate(tallies[0]).value / truth - 1,
                    found.low <= truth <= found.high,
                    (found.high - found.low) / 2 / truth,
                )
            )
        value, merge, first, covered, width = np.array(rows).T
        rms = [f"{100 * np.sqrt(np.mean(errors**2)):.3g}" for errors in (value, merge, first)]
        numbers = [*rms, f"{100 * np.mean(covered):.0f}", f"{100 * np.median(width):.3g}"]
        click.echo(f"| {pattern} | {epsilons[0]}, {epsilons[1]} | {' | '.join(numbers)} |")


if __name__ == "__main__":
    main()
