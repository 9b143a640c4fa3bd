"""Where the fit of the mixture begins: at a rough estimate of the union."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.union import moment_estimate
from sfm_stream.estimation.union.size_estimates import SizeEstimates
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape


def fit_starts(
    shape: SketchShape,
    channel: Channel,
    histograms: Sequence[NDArray[np.int64]],
    informative: bool,
    sizes: SizeEstimates | None,
) -> list[float]:
    """Items, for each tally. informative: whether the moment holds information. sizes: None if not known."""
    starts = [_start(shape, channel, histogram, informative) for histogram in histograms]
    if sizes is None:
        return [start for start, _ in starts]
    bounds = zip(starts, sizes.values.max(axis=1).tolist(), sizes.total.tolist(), strict=True)
    return [min(max(start, largest, 0.5), max(total, smallest)) for (start, smallest), largest, total in bounds]


def _start(
    shape: SketchShape, channel: Channel, histogram: NDArray[np.int64], informative: bool
) -> tuple[float, float]:
    """(a rough estimate of the union, a rough lower bound of it)."""
    releases = histogram.shape[1] - 1
    # The estimate from the mean of the windows' level counts.
    value, error = one_sketch.most_likely(shape, channel, histogram @ (np.arange(releases + 1) / releases))
    smallest = max(value, 0.5 * error, 0.5)
    if not informative:
        return smallest * math.sqrt(releases), smallest
    rough = moment_estimate.rough_value(shape, channel, histogram)
    return min(max(rough, smallest), 100.0 * releases * smallest), smallest
