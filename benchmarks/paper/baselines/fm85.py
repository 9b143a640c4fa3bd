"""FM85: PCSA with the estimator of Flajolet and Martin (1985), not private."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.sketch.shape import SketchShape

PHI = 0.77351
"""The constant of Flajolet and Martin: 2^(mean lowest zero) is PHI n / B on average."""


def estimate(bits: NDArray[np.uint8], shape: SketchShape) -> float:
    """B / PHI 2^(mean over the buckets of the lowest level that is not lit, counted from 0).

    bits: the packed bitmap, shape (shape.nbytes,). No correction for small n: with 30 and more items a bucket, as
    in figure 5, it would change the estimate by less than 0.1 %.
    """
    lit = np.unpackbits(bits, bitorder="little").reshape(shape.levels, shape.buckets)
    lowest = np.where(lit.all(axis=0), shape.levels, lit.argmin(axis=0))
    return float(shape.buckets / PHI * np.exp2(lowest.mean()))
