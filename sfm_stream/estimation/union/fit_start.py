"""Where the fit of the mixture begins: at a rough estimate of the union."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.union import moment_estimate
from sfm_stream.estimation.union.size_estimates import SizeEstimates
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape


def fit_start(
    shape: SketchShape,
    channel: Channel,
    histogram: NDArray[np.int64],
    of_moment: float | None,
    sizes: SizeEstimates | None,
) -> float:
    """Items. of_moment: the confidence of the moment, None where it holds no information. sizes: None if not known."""
    releases = histogram.shape[1] - 1
    mean = one_sketch.solve(shape, channel, histogram @ (np.arange(releases + 1) / releases), 0.95)
    # The estimate from the mean of the windows' level counts: a rough lower bound of the union.
    smallest = max(mean.value, 0.5 * mean.standard_error, 0.5)
    start = smallest * math.sqrt(releases)
    if of_moment is not None:
        # A first moment estimate, with the largest possible mean square, says where to begin the fit.
        largest_square = np.full(shape.levels, moment_estimate.set_square(channel, releases, np.array([1])))
        rough = moment_estimate.solve(shape, channel, histogram, largest_square, of_moment)
        start = min(max(rough.value, smallest), 100.0 * releases * smallest)
    if sizes:
        start = min(max(start, float(sizes.values.max()), 0.5), max(sizes.total, smallest))
    return start
