"""Coins for statistical tests."""

import numpy as np


class SeededCoins:
    """Reproducible flips, for tests only."""

    def __init__(self, *seed):
        self._rng = np.random.default_rng(seed)

    def digits(self, count):
        return self._rng.integers(0, 256, count, np.uint8)
