"""Coins for statistical tests."""

import numpy as np
from numpy.typing import NDArray


class SeededCoins:
    """Reproducible flips, for tests only."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def digits(self, count: int) -> NDArray[np.uint8]:
        return self._rng.integers(0, 256, count, np.uint8)
