"""The geometry of intervals that stand one below the other, on one scale from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.serve.pages.scales import Scale


@dataclass(frozen=True, slots=True)
class Bar:
    """One interval, in hundredths of the width. value: where its number lies; None where there is none.

    reach: the place up to which the interval is drawn; is_unbounded: it goes on behind it. name: of its state.
    """

    name: str
    low: float
    reach: float
    value: float | None
    is_unbounded: bool


def interval_bars(estimates: Sequence[Estimate], names: Sequence[str]) -> tuple[Bar, ...]:
    """A bar for each estimate, in their order, on one scale that holds zero and all limits. names: of their states."""
    finite = [limit for each in estimates for limit in (each.low, each.high) if math.isfinite(limit)]
    # Room behind the largest limit, so that only what has none reaches the edge.
    scale = Scale(0.0, 1.06 * max(1.0, *finite, 1.0), 0.0, 100.0)
    return tuple(_bar(each, name, scale) for each, name in zip(estimates, names, strict=True))


def _bar(estimate: Estimate, name: str, scale: Scale) -> Bar:
    is_known = estimate.status in (Status.OK, Status.EMPTY)
    is_unbounded = not math.isfinite(estimate.high)
    return Bar(
        name=name,
        low=scale.at(estimate.low),
        reach=100.0 if is_unbounded else scale.at(estimate.high),
        value=scale.at(estimate.value) if is_known else None,
        is_unbounded=is_unbounded,
    )
