"""What estimates need of a tally: how many cells of each level show which count, and the sizes of the windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes


@dataclass(frozen=True, slots=True, eq=False)
class TallyHistogram:
    """Of a tally of `releases` sketches of one shape, flip threshold and hash.

    cells: shape (levels, releases + 1), how many cells of a level show a one in so many releases. sizes: as in Tally.
    """

    shape: SketchShape
    flip_threshold: int
    hash: str
    releases: int
    cells: NDArray[np.int64]
    sizes: WindowSizes | None = None
