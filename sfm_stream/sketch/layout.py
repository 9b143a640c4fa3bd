"""What privatizing, merging and estimating need to know of a bitmap: which cells an item sets, and how likely each is.

The sketch of this package is SketchShape (shape.py); methods/layouts.py has the paper's other examples of bitmaps.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BitmapLayout(Protocol):
    """Cells in groups of equal probability, and the cells that an item sets. Hashable and immutable.

    An item makes `throws` independent throws, and each throw sets one cell; so one item changes at most `throws` cells.
    sizes: shape (groups,), the number of cells in each group; groups lie one after another. rho: shape (groups,), the
    probability that a throw hits a given cell of the group; sizes @ rho = 1. capacity: the largest number of throws
    that the bitmap can tell from a larger one.
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
        """The cells that items with these hashes set, each below `cells`."""
        ...
