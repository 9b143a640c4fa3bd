"""What is published of each released span of an epoch: what was released from raw is passed on, the rest is merged.

    a grain                            is                    made of
    that is released from raw itself   passed on             the one release of that span
    quarter, hour or day that is not   merged                the coarsest released span whose windows fill it
    week or month that is not          not published

    windows      fill
    size s       an hour and a quarter that s divides; a day, where s divides what days of the zone are sums of
    of calendar  no other grain

Never both for one grain: a record of it is always of the same kind within an epoch. Quarters that are not released are
merged only where days of the zone need them. An epoch whose records name no span has one, whose releases are merged
into every grain of the calendar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.units import HOUR_MS, PUBLISHED_GRAINS, QUARTER_MS

_SIZES_MS = {"quarter": QUARTER_MS, "hour": HOUR_MS}


@dataclass(frozen=True, slots=True)
class SpanGrains:
    """What is made of the releases of one span.

    size_ms: of its windows; None for days, weeks and months. grains: those made of its releases, the finest first, of
    which the others are sums; none where every grain is made of another span. raw: whether the finest is the span
    itself, so that each release is passed on.
    """

    size_ms: int | None
    grains: tuple[str, ...]
    raw: bool

    @property
    def finest(self) -> str | None:
        """The grain whose windows the releases go into."""
        return self.grains[0] if self.grains else None

    @property
    def coarser(self) -> tuple[str, ...]:
        return self.grains[1:]


def grains_of(calendar: Calendar, sizes_ms: dict[str, int | None]) -> dict[str, SpanGrains]:
    """Span to what is made of its releases. sizes_ms: name of each released span, the finest first, to its size."""
    own = {_own_grain(name, size_ms): name for name, size_ms in sizes_ms.items()}
    source = {
        grain: own.get(grain) or _coarsest(sizes_ms, _filled_by_ms(calendar, grain))
        for grain in PUBLISHED_GRAINS
        if grain in own or grain in calendar.grains
    }
    made = {name: tuple(grain for grain, from_span in source.items() if from_span == name) for name in sizes_ms}
    return {
        name: SpanGrains(size_ms, made[name], _own_grain(name, size_ms) in made[name])
        for name, size_ms in sizes_ms.items()
    }


def grains_of_one_size(calendar: Calendar, size_ms: int) -> SpanGrains:
    """What is made of the releases of an epoch that names no span."""
    return SpanGrains(size_ms, calendar.grains, raw=False)


def _own_grain(name: str, size_ms: int | None) -> str | None:
    """The grain that a released span is itself."""
    if size_ms is None:
        return name
    return next((grain for grain, of_grain_ms in _SIZES_MS.items() if of_grain_ms == size_ms), None)


def _filled_by_ms(calendar: Calendar, grain: str) -> int:
    """Windows of a size that divides this fill the grain."""
    return calendar.base_ms if grain == "day" else _SIZES_MS[grain]


def _coarsest(sizes_ms: dict[str, int | None], filled_by_ms: int) -> str | None:
    """The longest of the spans of a fixed size that divides a length."""
    fitting: Sequence[tuple[int, str]] = [
        (size_ms, name) for name, size_ms in sizes_ms.items() if size_ms is not None and filled_by_ms % size_ms == 0
    ]
    return max(fitting, default=(0, None))[1]
