"""How much a union leaves out where small keys are withheld: `python benchmarks/selection.py`.

The table of docs/accuracy.md, "Unions with withheld windows": seeded, about a minute.
"""

import math
import sys
from pathlib import Path

import click
import numpy as np

from sfm_stream.estimation.union import union
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.selected import chances, selected_union

SHAPE = (4096, 24)
EPSILON, EPSILON_SELECTION, DELTA = 2, 1, 1e-9
CASES = (
    (60, 4, "disjoint"),
    (80, 4, "disjoint"),
    (100, 4, "disjoint"),
    (100, 4, "half"),
    (565, 96, "disjoint"),
    (565, 96, "day"),
    (565, 28, "disjoint"),
    (565, 24, "disjoint"),
    (565, 20, "disjoint"),
    (565, 4, "disjoint"),
    (2000, 96, "disjoint"),
    (2000, 96, "day"),
    (10_000, 96, "day"),
    (100_000, 96, "day"),
)
"""Items, windows of 15 minutes (an hour, a day), when they come (docs/accuracy.md)."""


@click.command()
@click.option("--trials", default=100, show_default=True)
def main(trials):
    """One row for each case."""
    click.echo(
        "| truth | windows, pattern | released | value: mean, bias | finite intervals that would hold | low holds |"
    )
    click.echo("|---|---|---|---|---|---|")
    chance, q = chances(EPSILON_SELECTION, DELTA), 1 / (math.exp(EPSILON) + 1)
    for n, windows, pattern in CASES:
        rng = np.random.default_rng([5, n, windows, len(pattern)])
        found = [selected_union(rng, SHAPE, n, windows, pattern, q, chance) for _ in range(trials)]
        answers = [
            union.solve(SketchShape(*SHAPE), Channel(q, q, 1 - 2 * q), counts, 0.95)
            for _, counts in found
            if counts is not None
        ]
        if not answers:
            click.echo(f"| {n:,} | {windows}, {pattern} | 0 | nothing is published | | |")
            continue
        released, value = np.mean([count for count, _ in found]), np.mean([each.value for each in answers])
        held = np.mean([each.low <= n <= each.high for each in answers])
        low = np.mean([each.low <= n for each in answers])
        bias = value / n - 1
        click.echo(
            f"| {n:,} | {windows}, {pattern} | {released:.1f} | {value:,.0f}, {bias:+.0%} | {held:.0%} | {low:.0%} |"
        )


if __name__ == "__main__":
    main()
