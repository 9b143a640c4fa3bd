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
CASES = [(pattern, (1, 0.5)) for pattern in ("nested", "disjoint")]
CASES += [(pattern, (2, 1)) for pattern in ("nested", "disjoint", "half", "recurring", "epochs")]
CASES += [(pattern, (4, 2)) for pattern in ("nested", "half", "recurring", "epochs")]


def parts(pattern: str, items: np.ndarray, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Items of the windows of each epsilon. items: distinct."""
    if pattern == "epochs":
        windows = [items[number * 4000 : number * 4000 + 8000] for number in range(12)]
        return windows[:6], windows[6:]
    if pattern == "recurring":  # an activity of its own for each item, an eighth of it in hours
        often = np.minimum(1.0, (rng.pareto(1.0, 60_000) + 0.1) / 6)
        rare = [items[:60_000][rng.random(60_000) < chance] for chance in [often] * 6 + [often / 8] * 6]
        return rare[:6], rare[6:]
    if pattern in ("nested", "half"):
        core, new = items[:6000], 400 if pattern == "half" else 0
        days = [np.concatenate([core, items[10_000 + n * 3000 : 13_000 + n * 3000]]) for n in range(6)]
        known = [core[n * 500 : n * 500 + 800 - new] for n in range(6)]
        return days, [
            np.append(part, items[100_000 + n * new : 100_000 + (n + 1) * new]) for n, part in enumerate(known)
        ]
    days = [items[number * 8000 : number * 8000 + 8000] for number in range(6)]
    return days, [items[100_000 + number * 800 : 100_800 + number * 800] for number in range(6)]


def tally(windows: list[np.ndarray], epsilon: float, coins: SeededCoins) -> Tally:
    return Tally.of(flip(PcsaSketch(SHAPE).add(w.tolist()), epsilon, coins, count_share=0.1) for w in windows)


def main() -> None:
    """Print the table."""
    for pattern, epsilons in CASES:
        rows = []
        for seed in range(TRIALS):
            coins = SeededCoins(seed)
            rng = np.random.default_rng(seed)
            groups = parts(pattern, rng.permutation(1 << 18), rng)
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
