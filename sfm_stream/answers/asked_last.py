"""`--last 7d`: the last hours, days, weeks or months that are over and decided."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sfm_stream.errors import QuestionError
from sfm_stream.types import Window
from sfm_stream.windows.grid import grid_of

UNITS = {"h": "hour", "d": "day", "w": "week", "mo": "month"}
"""How a unit is written, and the span that it counts."""
_LAST = re.compile(r"([1-9][0-9]{0,4})(h|d|w|mo)")
_MADE_OF = {
    "hour": ("range", "window", "quarter", "hour"),
    "day": ("range", "window", "quarter", "hour", "day"),
    "week": ("range", "window", "quarter", "hour", "day", "week"),
    "month": ("range", "window", "quarter", "hour", "day", "month"),
}
"""The grains whose spans fill one of each unit."""
_EXAMPLES = {"day": "7d", "week": "4w", "month": "3mo"}


@dataclass(frozen=True, slots=True)
class LastUnits:
    """A number of hours, days, weeks or months, up to when it is asked. asked_ms: that time, milliseconds of UTC."""

    text: str
    count: int
    unit: str
    asked_ms: int

    def span(self, decided_ms: int, zone: str) -> Window:
        """The last `count` whole units that are over by the time of asking and lie before decided_ms.

        decided_ms: everything that ends before is decided. Raises QuestionError where they begin before 1970.
        """
        grid = grid_of(self.unit, zone)
        end_ms = grid.floor(min(self.asked_ms, decided_ms))
        start_ms = end_ms
        for _ in range(self.count):
            if start_ms <= 0:
                raise QuestionError(f"{self.text} begins before 1970, where times begin here", "--last")
            start_ms = grid.floor(start_ms - 1)
        return Window(max(0, start_ms), end_ms)


def parse_last(text: str, grain: str, base: str, windows: str, asked_ms: int) -> LastUnits:
    """What `--last` asks. grain: as in a question. base: the grain that days of the zone are made of.

    windows: the name of the finest released span. Raises QuestionError where whole units are not made of these.
    """
    match = _LAST.fullmatch(text.strip())
    if match is None:
        raise QuestionError(f"'{text}' is not a number of hours, days, weeks or months: 24h, 7d, 4w, 3mo", "--last")
    unit = UNITS[match[2]]
    for name in (windows, grain):
        if name in _EXAMPLES and name not in _MADE_OF[unit]:
            raise QuestionError(f"{text} is not made of whole {name}s: ask for {name}s, {_EXAMPLES[name]}", "--last")
    if grain == "hour" and base == "quarter" and unit != "hour":
        raise QuestionError(f"{text} is not made of whole hours of UTC in this zone: ask --by quarter", "--last")
    return LastUnits(text, int(match[1]), unit, asked_ms)
