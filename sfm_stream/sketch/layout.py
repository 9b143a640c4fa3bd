"""Which cells an item lights, and how likely each is: all that privatizing, merging and estimating ask of a bitmap.

The sketch of this package is SketchShape (shape.py); methods/layouts.py has the paper's other examples of bitmaps.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BitmapLayout(Protocol):
    """Cells in groups of equal probability, and the cells that an item lights. Hashable and immutable.

    sizes: shape (groups,), cells of each group, which lie one after another. rho: shape (groups,), the probability
    that one throw hits a given cell of the group; sizes @ rho = 1. throws: how many independent throws one item makes,
    so at most as many cells change with it (its sensitivity). capacity: the number of throws beyond which no more can
    be told apart.
    """

    def __hash__(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def sizes(self) -> Array: ...
    @property
    def rho(self) -> Array: ...
    @property
    def throws(self) -> int: ...
    @property
    def capacity(self) -> float: ...

    def cells_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Cells lit by items with these hashes, each below `cells`."""
        ...
