"""How times and text are written: for programs exactly, for people so that nothing hides.

One rule for text that came from data. Characters that cannot be seen, or that move others (control characters, ESC,
line ends, marks of direction, joiners, blanks other than the space), are written as JSON writes them: \\n, \\u001b,
\\u202e.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)", re.ASCII)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
# Printable by their category, and yet nothing is seen of them: fillers, joiners, selectors of a variant.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)


@lru_cache(maxsize=1024)  # the rows of an answer have the same few
def instant(time_ms: int) -> str:
    """ISO 8601 in UTC, to the second where that is exact; beyond the year 9999 milliseconds, which need no calendar."""
    if not _FIRST_MS <= time_ms <= _LAST_MS:
        return f"{time_ms} ms"
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds").replace("+00:00", "Z")


def local(time_ms: int, zone: str) -> str:
    """A time of day in a zone, as `--from` takes it back: with its offset in the hour that clocks show twice."""
    moment = datetime.fromtimestamp(time_ms / 1000, ZoneInfo(zone))
    twice = moment.utcoffset() != moment.replace(fold=1 - moment.fold).utcoffset()
    parts = "milliseconds" if time_ms % SECOND_MS else "seconds" if time_ms % MINUTE_MS else "minutes"
    return (moment if twice else moment.replace(tzinfo=None)).isoformat(" ", parts)


def duration(span_ms: int) -> str:
    """As a configuration takes it: 15m, 1h, 500ms."""
    for unit, size in (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS)):
        if span_ms and span_ms % size == 0:
            return f"{span_ms // size}{unit}"
    return f"{span_ms}ms"


def decimal_text(number: Decimal) -> str:
    """A decimal in its one form: no exponent, no zero at the end of a fraction, no digit left out."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_duration(text: str) -> int | None:
    """Milliseconds of a duration such as "500ms", "90s", "30m", "2h" or "1d"; None where it is none."""
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1]) * _UNITS_MS[match[2]]


def visible(text: str) -> str:
    """The text on one line, with every character that cannot be seen written out."""
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(
        char if char.isprintable() and not _UNSEEN.match(char) else json.dumps(char)[1:-1].replace("\x7f", "\\u007f")
        for char in text
    )
