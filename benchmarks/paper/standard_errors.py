"""Standard errors of the estimate from one sketch in closed form: the paper's and the sandwich."""

from __future__ import annotations

import numpy as np

from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.one_sketch import signal_of
from sfm_stream.estimation.score import Scores
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Channel


def standard_errors(layout: BitmapLayout, channel: Channel, n: float) -> tuple[float, float]:
    """(paper's, sandwich) standard error of the estimate where the truth is n > 0, in items.

    The paper's (eq. fisher-error) takes cells as independent. It is right for n much larger than the number of buckets,
    and several times too large for small n with little noise. Estimates carry the sandwich (docs/accuracy.md, eq. 10).
    """
    cells = Occupancy.at(layout, np.array([n]))
    zero = channel.miss + channel.gap * cells.empty
    information = np.sum(((channel.gap * cells.slope) ** 2 / (zero * (1.0 - zero))) @ layout.sizes)
    return float(information**-0.5), float(Scores.at(signal_of(layout, channel), np.array([n])).standard_error[0])
