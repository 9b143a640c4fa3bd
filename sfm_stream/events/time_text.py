"""Times that are text, as producers write them: ISO 8601 in several habits, patterns, and numbers in quotes.

Nothing here depends on the zone or the locale of the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_LONGEST = 120
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_ANNOTATION = re.compile(r"(.*(?:Z|[+-][0-9:]+))\[[^\[\]]{1,64}\]", re.DOTALL)
"""An offset, then the name of a zone in brackets (RFC 9557), as Java writes it."""
_CLOCK = re.compile(r"(.*[T ])([0-9]{2})(:?[0-9]{2}:?)([0-9]{2})(.*)", re.DOTALL)
_MIDNIGHT = re.compile(r"(.*[T ])24((?::?00){1,2}(?:[.,]0+)?)((?:Z|[+-].*)?)", re.DOTALL)
_ZONE_NAME = re.compile(r"(?<!%)((?:%%)*)%Z")


def number_in(text: str) -> int | float | None:
    """The number that a text holds and nothing else, in decimal digits without exponent; None where it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def from_iso(text: str) -> datetime:
    """The moment of an ISO 8601 text, naive where it has no offset.

    Beyond datetime.fromisoformat it takes small t and z; 24:00, the midnight that ends the day; a leap second (:60),
    which is the second after it, as POSIX counts; and the name of a zone in brackets behind an offset, which it skips.
    Raises ValueError or OverflowError.
    """
    if len(text) > _LONGEST:
        raise ValueError("no ISO 8601 text is as long")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    text = text.upper()
    if named := _ANNOTATION.fullmatch(text):
        text = named[1]
    if midnight := _MIDNIGHT.fullmatch(text):
        return datetime.fromisoformat(f"{midnight[1]}00{midnight[2]}{midnight[3]}") + timedelta(days=1)
    clock = _CLOCK.fullmatch(text)
    if clock and clock[4] == "60":
        before = datetime.fromisoformat(f"{clock[1]}{clock[2]}{clock[3]}59{clock[5]}")
        return before + timedelta(seconds=1)
    return datetime.fromisoformat(text)


def from_pattern(pattern: str) -> Callable[[str], datetime]:
    """A reader of texts by a strptime pattern. %Z stands for UTC or GMT, and nothing else.

    strptime itself takes for %Z the names of the host's own zone, and gives a time without their offset.
    """
    if not _ZONE_NAME.search(pattern):
        return lambda text: datetime.strptime(text, pattern)  # noqa: DTZ007 -- event.naive_time gives it a zone, or refuses
    named = [_ZONE_NAME.sub(rf"\g<1>{name}", pattern) for name in ("UTC", "GMT")]

    def read(text: str) -> datetime:
        try:
            return datetime.strptime(text, named[0]).replace(tzinfo=UTC)
        except ValueError:
            return datetime.strptime(text, named[1]).replace(tzinfo=UTC)

    return read
