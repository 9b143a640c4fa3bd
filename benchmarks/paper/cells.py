"""What is measured: the points of a figure, and the seeds of its trials."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.shape import SketchShape

BUCKETS, LEVELS = 4096, 24
"""The paper's default sketch."""
SEED = 20230203
RECIPE = 1
"""To be raised when a trial does something else than before, so that stored trials are not mixed with new ones."""

SYM, XOR = "SFM (sym)", "SFM (xor)"
TIGHT, LOOSE = "PS (tight)", "PS (loose)"
PCSA = "PCSA"
FM85, HLL = "FM85", "HLL"
PRIVATE = (SYM, XOR, TIGHT, LOOSE)


@dataclass(frozen=True)
class Cell:
    """One point of a figure: a method, n distinct items, epsilon of each release (infinite: no noise at all).

    sketches: into how many sketches the items are split, which are then merged.
    """

    method: str
    n: int
    epsilon: float = math.inf
    buckets: int = BUCKETS
    sketches: int = 1

    @property
    def shape(self) -> SketchShape:
        return SketchShape(self.buckets, LEVELS)

    @property
    def point(self) -> tuple[int, float, int, int]:
        """What methods are compared at: (n, epsilon, buckets, sketches)."""
        return self.n, self.epsilon, self.buckets, self.sketches

    def __str__(self) -> str:
        return f"{self.method} n={self.n} epsilon={self.epsilon:g} buckets={self.buckets} sketches={self.sketches}"


@dataclass(frozen=True)
class Plan:
    """A figure to be measured: its cells in order, and the name of its data."""

    figure: str
    cells: tuple[Cell, ...]
    data: str = "synthetic"

    def fingerprint(self) -> str:
        """Ten hex digits that differ where the trials differ."""
        told = "\n".join([self.figure, self.data, str(SEED), str(RECIPE), *map(str, self.cells)])
        return hashlib.sha256(told.encode()).hexdigest()[:10]


class Seeded:
    """A trial's randomness: numbers for its items, coins for its flips, both functions of (figure, trial) alone."""

    def __init__(self, figure: str, trial: int) -> None:
        number = int.from_bytes(figure.encode(), "big")
        items, coins = np.random.SeedSequence([SEED, number, trial]).spawn(2)
        self.items = np.random.default_rng(items)
        self.coins = SeededCoins(np.random.default_rng(coins))


class SeededCoins:
    """Coins that can be tossed again: for experiments only, never for a release."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def digits(self, count: int) -> NDArray[np.uint8]:
        """Shape (count,): uniform bytes."""
        return self._rng.integers(0, 256, count, np.uint8)
