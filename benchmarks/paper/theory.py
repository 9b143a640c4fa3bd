"""What theory expects of the relative error of a cell."""

from __future__ import annotations

import math

from benchmarks.paper.cells import FM85, HLL, PCSA, SYM, XOR, Cell
from benchmarks.paper.methods import MECHANISMS, NOISELESS
from benchmarks.paper.standard_errors import standard_errors
from sfm_stream.sketch.mechanism import Channel

STATED = {0.5: 0.0528, 1.0: 0.0274, 2.0: 0.0157, 4.0: 0.0112}
"""Relative error of SFM (sym) by epsilon for 4096 buckets and n of 10^5 and more, worked out apart from this code."""


def relative_errors(cell: Cell) -> tuple[float, float] | None:
    """(paper's, sandwich) standard error of the estimate divided by n, where there is a formula.

    The paper's is eq. fisher-error, at the epsilon of remark k-way-merge where sketches were merged; for FM85 and HLL
    it is what their authors say of large n, 0.78 and 1.04 / sqrt(B), and there is no sandwich.
    """
    if cell.method in (FM85, HLL):
        return (0.78 if cell.method == FM85 else 1.04) / math.sqrt(cell.buckets), math.nan
    if cell.method not in (SYM, XOR, PCSA):
        return None
    paper, sandwich = standard_errors(cell.shape, channel_of(cell), float(cell.n))
    return paper / cell.n, sandwich / cell.n


def channel_of(cell: Cell) -> Channel:
    """The noise of the sketch that the estimate is made from."""
    if cell.method == PCSA:
        return NOISELESS
    if cell.sketches == 1:
        return MECHANISMS[cell.method](cell.epsilon).channel
    epsilon = merged_epsilon(cell.epsilon, cell.sketches)
    q = 1.0 / (math.exp(epsilon) + 1.0)
    return Channel(q, q, math.tanh(epsilon / 2.0))


def merged_epsilon(epsilon: float, sketches: int) -> float:
    """epsilon* = -log(1 - (1 - e^-epsilon)^k) of k merged releases (paper, remark k-way-merge)."""
    return -math.log1p(-((-math.expm1(-epsilon)) ** sketches))
