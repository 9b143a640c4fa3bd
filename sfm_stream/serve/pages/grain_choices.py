"""What the spans of a page can be: the lengths of time that a pipeline answers in, and how far back each looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfm_stream.config.config import Config
from sfm_stream.planning.questions import length_ms
from sfm_stream.units import DAY_MS, HOUR_MS
from sfm_stream.windows.grid import Grid, grid_of

_LAST_HOURS = (("24h", "24 hours"), ("72h", "3 days of 24 hours"), ("168h", "7 days of 24 hours"))
_LASTS = {
    "hour": (("24h", "24 hours"), ("3d", "3 days"), ("7d", "7 days"), ("28d", "28 days")),
    "day": (("7d", "7 days"), ("28d", "28 days"), ("90d", "90 days"), ("365d", "365 days")),
    "week": (("12w", "12 weeks"), ("26w", "26 weeks"), ("52w", "52 weeks")),
    "month": (("6mo", "6 months"), ("12mo", "12 months"), ("36mo", "36 months")),
}
_LATEST = {"quarter": 96, "hour": 168, "day": 28, "week": 12, "month": 12}
_ONE = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}

ONE_SPAN = (("1d", "day"), ("7d", "7 days"), ("1w", "week"), ("28d", "28 days"), ("1mo", "month"), ("3mo", "3 months"))
"""What two keys can be compared in, as `last` and in words."""


@dataclass(frozen=True, slots=True)
class GrainChoice:
    """A length of time to answer in. name: as a question has it. words, plural: for people.

    latest: how many of it a trend shows that nobody chose. lasts: (`last`, its words) of those that can be chosen. one:
    the `last` of one span of it; None where a question has none.
    """

    name: str
    words: str
    plural: str
    latest: int
    lasts: Sequence[tuple[str, str]]
    one: str | None


def grain_choices(config: Config) -> dict[str, GrainChoice]:
    """The grains in which this pipeline is answered, the finest first, by their names."""
    finest_ms, days = length_ms(config.window.size), config.calendar
    names = [name for name in (*days.grains, "week", "month") if length_ms(_span_of(name)) >= finest_ms]
    if finest_ms < length_ms(_span_of(names[0])):
        names.insert(0, "window")
    return {name: _choice(name, config) for name in names}


def grid_of_grain(config: Config, name: str) -> Grid:
    """The borders of the spans of a grain."""
    return config.grid if name == "window" else grid_of(_span_of(name), config.calendar.zone)


def _span_of(name: str) -> str:
    return "15m" if name == "quarter" else name


def _choice(name: str, config: Config) -> GrainChoice:
    # Days of some zones are not made of hours of UTC: their hours are asked for by the number.
    in_hours = name in ("window", "quarter") or (name == "hour" and config.calendar.base_ms < HOUR_MS)
    lasts = _LAST_HOURS if in_hours else _LASTS[name]
    words, plural, latest = name, f"{name}s", _LATEST.get(name, 0)
    if name == "window":
        size = config.window.size
        words, plural, latest = f"window of {size}", f"windows of {size}", max(1, DAY_MS // length_ms(size))
    return GrainChoice(name, words, plural, latest, lasts, _ONE.get(name))
