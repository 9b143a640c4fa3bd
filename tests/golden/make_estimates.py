"""Makes tests/golden/estimates.json: small tallies of many kinds, and what is estimated from each.

Whoever makes estimation faster keeps what is in the file. Whoever makes it better makes the file again, with
python tests/golden/make_estimates.py from the root of the repository, and says in docs/accuracy.md what is better.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np

from sfm_stream.estimation.estimate import estimate
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

TARGET = Path(__file__).parent / "estimates.json"
SHAPE = SketchShape(64, 12)
PATTERNS = ("disjoint", "same", "half", "one")


def tally(rng: np.random.Generator, releases: int, epsilon: str, items: int, pattern: str, counted: bool) -> Tally:
    """`items` items in windows that share them as the pattern says."""
    threshold = flip_threshold_of(Decimal(epsilon))
    level = np.minimum(rng.geometric(0.5, items) - 1, SHAPE.levels - 1)
    cell = level * SHAPE.buckets + rng.integers(0, SHAPE.buckets, items)
    inside = np.zeros((releases, items), np.bool_)
    inside[0 if pattern == "one" else rng.integers(0, releases, items), np.arange(items)] = True
    inside[:, : {"same": items, "half": items // 2}.get(pattern, 0)] = True
    parts = []
    for window in inside:
        cells = np.zeros(SHAPE.cells, np.bool_)
        cells[cell[window]] = True
        count = NoisyCount(int(cells.sum()) + int(rng.integers(-9, 9)), Decimal("0.25")) if counted else None
        noisy = np.packbits(cells ^ (rng.random(SHAPE.cells) < threshold / GRID), bitorder="little")
        parts.append(SfmSketch(SHAPE, threshold, "xxh64", noisy.tobytes(), count))
    return Tally.of(parts)


def main() -> None:
    rng, rows = np.random.default_rng(1), []
    for number, items in enumerate([0, 5, 40, 300, 3000, 400_000] * 4):
        releases, epsilon = (2, 3, 5, 10, 30, 70)[(number * 5 + number // 6) % 6], ("0.5", "2", "4", "7")[number // 6]
        of = tally(rng, releases, epsilon, items, PATTERNS[number % 4], counted=number % 3 == 0)
        sizes = of.sizes if number % 4 < 3 and releases < 30 else None
        found = estimate(Tally(of.shape, of.flip_threshold, of.hash, of.releases, of.counts, sizes=sizes))
        figures = (found.value, found.standard_error, found.low, found.high, found.unclamped)
        rows.append(
            {
                "epsilon": epsilon,
                "releases": releases,
                "cells": of.histogram().tolist(),
                "ones": None if sizes is None else sizes.ones.tolist(),
                "counts": [] if sizes is None else [None if c is None else c.value for c in sizes.counts],
                "figures": [None if math.isinf(figure) else figure for figure in figures],
                "status": str(found.status),
            }
        )
    TARGET.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
