"""What an event looks like: where its key, item and time are, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sfm_stream.errors import UsageError
from sfm_stream.readable import instant

NUMERIC_UNITS = ("s", "ms", "us", "ns")
"""In the order in which a misread number is recognised (`Reason.TIME_LOOKS_LIKE_*`)."""
ISO8601 = "iso8601"
MAX_TIME_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_STEP = re.compile(r"((?:[^.\\]|\\\.)+)(?:\.|\Z)")
_UNUSABLE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSchema:
    r"""The fields of an event, in whatever format it is written, and the bounds of what is taken.

    key: dotted paths into nested objects. One path: the key is that field, text or integer. Several: a tuple of
    fields. None: the empty tuple, one count for the whole stream. item, time: one path each; time None is the arrival
    time (milliseconds). A dot within a field name is written `\.`; names with a quote, a backslash or a control
    character cannot be addressed. No path may equal another or lead into it.

    time_unit: s, ms, us, ns (numbers, in quotes or not; fractions in s and ms only), iso8601, or a strptime pattern (it
    holds a '%'; %Z stands for UTC or GMT). naive_zone: IANA name of the zone of times without offset, which are refused
    where it is None; an hour that occurs twice there is taken as its first, and a time in an hour that the zone leaves
    out as if its clock had not been put forward. float_items: numbers with a fraction or an
    exponent are items of their own, hashed as IEEE 754. earliest_ms..latest_ms (inclusive, 0..MAX_TIME_MS): the
    plausible band of event times. max_key_bytes counts canonical bytes (`encode_key`).

    Raises UsageError.
    """

    key: tuple[str, ...]
    item: str
    time: str | None
    time_unit: str
    naive_zone: str | None = None
    float_items: bool = False
    earliest_ms: int
    latest_ms: int
    max_key_bytes: int = 1024
    max_record_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not 0 <= self.earliest_ms <= self.latest_ms <= MAX_TIME_MS:
            raise UsageError(f"earliest, latest: need 1970 <= earliest <= latest <= {instant(MAX_TIME_MS)}")
        if self.max_key_bytes < 1 or self.max_record_bytes < 1:
            raise UsageError("max_key_bytes, max_record_bytes: at least 1")
        if self.time_unit not in (*NUMERIC_UNITS, ISO8601):
            _check_pattern(self.time_unit)
        if self.naive_zone is not None:
            _check_zone(self.naive_zone)
        paths = self.paths()
        for index, path in enumerate(paths):
            for other in paths[index + 1 :]:
                if path[: len(other)] == other or other[: len(path)] == path:
                    raise UsageError(f"paths: {'.'.join(path)} and {'.'.join(other)} overlap")

    def paths(self) -> list[tuple[str, ...]]:
        """Field names from the outside in: of the item, of the time if it is a field, of each part of the key."""
        dotted = [self.item, *([] if self.time is None else [self.time]), *self.key]
        return [parse_path(path) for path in dotted]


def parse_path(dotted: str) -> tuple[str, ...]:
    r"""The names of a dotted path, outermost first; `\.` is a dot within a name. Raises UsageError."""
    names, position = [], 0
    for step in _STEP.finditer(dotted):
        if step.start() != position:
            break
        names.append(step.group(1).replace("\\.", "."))
        position = step.end()
    ends_in_dot = dotted.endswith(".") and not dotted.endswith("\\.")
    if not names or position != len(dotted) or ends_in_dot or any(map(_UNUSABLE.search, names)):
        raise UsageError(f"path {dotted!r}: expected field names joined by dots")
    return tuple(names)


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f'naive_time: {name!r} is no zone: "refuse", "utc", or a name such as "Europe/Berlin"'
        ) from None


def _check_pattern(pattern: str) -> None:
    if "%" not in pattern:
        raise UsageError(f"time_unit {pattern!r}: expected s, ms, us, ns, iso8601 or a strptime pattern with '%'")
    try:
        datetime.strptime(datetime(2024, 2, 29, tzinfo=UTC).strftime(pattern), pattern)  # noqa: DTZ007 -- only whether
    except ValueError:
        raise UsageError(f"time_unit {pattern!r}: not a pattern that strptime can read back") from None
