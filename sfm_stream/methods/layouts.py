"""The paper's examples of bitmaps to which its methods apply (section "Background"), beside the PCSA sketch:
linear counting, Bloom filters and Liquid Legions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import ShapeError
from sfm_stream.sketch.hashing import hash_items
from sfm_stream.sketch.shape import constant, require_between

Array = NDArray[np.float64]
MIN_CELLS, MAX_CELLS = 64, 1 << 22
MAX_HASHES = 16
_LIKELIEST = 1 / 32
"""The variance of a level sum is computed by a series in the odds of a cell, of which four terms are kept."""


@dataclass(frozen=True)
class LinearCounting:
    """All cells have the same probability (Whang, Vander-Zanden and Taylor, 1990). cells: 64..2^22."""

    cells: int
    throws = 1

    def __post_init__(self) -> None:
        require_between(self, "cells", MIN_CELLS, MAX_CELLS)

    @property
    def nbytes(self) -> int:
        """Length of the packed bitmap in bytes."""
        return -(-self.cells // 8)

    @cached_property
    def sizes(self) -> Array:
        """Shape (1,)."""
        return constant(np.array([float(self.cells)]))

    @cached_property
    def rho(self) -> Array:
        """Shape (1,)."""
        return constant(np.array([1.0 / self.cells]))

    @property
    def capacity(self) -> float:
        """The number of throws at which half an empty cell is expected."""
        return math.log(0.5 / self.cells) / math.log1p(-1.0 / self.cells)

    def cells_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Shape (n * throws,): the cells that these items set."""
        return _scaled(hashes, self.cells)


@dataclass(frozen=True)
class BloomFilter(LinearCounting):
    """A Bloom filter: each item is thrown `hashes` times, independently (Broder and Mitzenmacher, 2004).

    A count of throws is linear counting. One item changes up to `hashes` cells, so each cell gets epsilon / hashes.
    cells: 64..2^22. hashes: 1..16.
    """

    hashes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between(self, "hashes", 1, MAX_HASHES)

    @property
    def throws(self) -> int:  # type: ignore[override]
        """How many cells an item changes at most."""
        return self.hashes

    def cells_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Shape (n * throws,): the cells that these items set."""
        thrown = [hashes]
        for _ in range(self.hashes - 1):
            thrown.append(hash_items(thrown[-1].view(np.int64)))
        return _scaled(np.concatenate(thrown), self.cells)


@dataclass(frozen=True)
class LiquidLegions:
    """Cells whose probability falls off exponentially (Kreuter, Wright, Skvortsov, Mirisola and Wang, 2020).

    Cell i of m has probability proportional to exp(-decay * i / m): small sets are told apart by the likely cells,
    large sets by the others. cells: 64..2^16. decay: 1..20, and no cell likelier than 1/32.
    """

    cells: int
    decay: float
    throws = 1

    def __post_init__(self) -> None:
        require_between(self, "cells", MIN_CELLS, 1 << 16)
        if isinstance(self.decay, np.integer | np.floating):
            object.__setattr__(self, "decay", float(self.decay))
        if type(self.decay) not in (int, float):
            raise ShapeError(f"decay: expected a number, got {type(self.decay).__name__}")
        if not 1.0 <= self.decay <= 20.0:
            raise ShapeError(f"decay: {self.decay} is outside 1..20")
        if float(self.rho[0]) > _LIKELIEST:
            raise ShapeError(f"decay: {self.decay} makes a cell of {self.cells} likelier than 1/32; take more cells")

    @property
    def nbytes(self) -> int:
        """Length of the packed bitmap in bytes."""
        return -(-self.cells // 8)

    @cached_property
    def sizes(self) -> Array:
        """Shape (cells,): each cell is a group of its own."""
        return constant(np.ones(self.cells))

    @cached_property
    def rho(self) -> Array:
        """Shape (cells,): the truncated exponential law."""
        step = self.decay / self.cells
        falling = np.exp(-step * np.arange(self.cells))
        return constant(falling * math.expm1(-step) / math.expm1(-self.decay))

    @cached_property
    def capacity(self) -> float:
        """The number of throws at which half an empty cell is expected, by bisection to one part in 10^6."""
        log_gamma = np.log1p(-self.rho)
        low, high = 1.0, math.log(2.0 * self.cells) / float(self.rho[-1])
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.sum(np.exp(middle * log_gamma)) > 0.5 else (low, middle)
        return high

    def cells_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Shape (n,): the cells that these items set, by the inverse of the distribution function."""
        uniform = (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
        at = np.log1p(uniform * math.expm1(-self.decay)) * (-self.cells / self.decay)
        return np.minimum(at, self.cells - 1).astype(np.uint32)


def _scaled(hashes: NDArray[np.uint64], cells: int) -> NDArray[np.uint32]:
    """Cell numbers by the top 32 bits of each hash. Probabilities of cells differ by at most one part in 2^10."""
    return ((hashes >> np.uint64(32)) * np.uint64(cells) >> np.uint64(32)).astype(np.uint32)
