"""How times, keys, text and numbers are written: for programs exactly, for people so that nothing hides.

One rule for text that came from data. Characters that cannot be seen, or that move others (control characters, ESC,
line ends, marks of direction, joiners, blanks other than the space), are written as JSON writes them: \\n, \\u001b,
\\u202e. A field of a key that could be taken for something else is a JSON string in quotes; docs/operating.md has both.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sfm_stream.types import KeyPart
from sfm_stream.units import DAY_MS, HOUR_MS, INT64_MAX, INT64_MIN, MINUTE_MS, SECOND_MS

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
ALL = "(all)"
"""The key of a pipeline that counts everything under one."""
_JOINT = " / "
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BYTES = re.compile(r"0x(?:[0-9a-f]{2})*")
# Printable by their category, and yet nothing is seen of them: fillers, joiners, selectors of a variant.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)


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


def visible(text: str) -> str:
    """The text on one line, with every character that cannot be seen written out."""
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(
        char if char.isprintable() and not _UNSEEN.match(char) else json.dumps(char)[1:-1].replace("\x7f", "\\u007f")
        for char in text
    )


def key_text(key: Sequence[KeyPart]) -> str:
    """A published key for people, no two the same: its fields joined by " / ", "(all)" where there is none."""
    return _JOINT.join(_part_text(part) for part in key) if key else ALL


def parse_key(text: str) -> tuple[KeyPart, ...] | None:
    """The key that a text of `key_text` stands for; None for what it never writes."""
    if text == ALL:
        return ()
    parts: list[KeyPart] = []
    while True:
        if text.startswith('"'):
            try:
                part, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                return None
            parts.append(part)
        else:
            end = text.find(_JOINT) if _JOINT in text else len(text)
            parts.append(_bare(text[:end]))
        if end == len(text):
            return tuple(parts)
        if not text.startswith(_JOINT, end):
            return None
        text = text[end + len(_JOINT) :]


def key_json(key: Sequence[KeyPart]) -> list[str | int]:
    """A published key for programs; bytes as "0x" and hex digits."""
    return [f"0x{part.hex()}" if isinstance(part, bytes) else part for part in key]


def finite(value: float) -> float | None:
    """None for infinity, which JSON does not have."""
    return value if math.isfinite(value) else None


def _part_text(part: KeyPart) -> str:
    if isinstance(part, bytes):
        return f"0x{part.hex()}"
    if isinstance(part, int):
        return str(part)
    shown = visible(part)
    is_plain = shown == part and part not in ("", ALL) and part.strip() == part
    # A mark that combines would sit on what stands before it.
    if is_plain and not unicodedata.category(part[0]).startswith("M") and '"' not in part and "\\" not in part:
        is_joint = part != "/" and _JOINT in f" {part} "
        looks_other = _INTEGER.fullmatch(part) or _BYTES.fullmatch(part) or is_joint
        if not looks_other:
            return part
    return '"' + visible(part.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _bare(text: str) -> KeyPart:
    if _BYTES.fullmatch(text):
        return bytes.fromhex(text[2:])
    if _INTEGER.fullmatch(text) and len(text) <= 20 and INT64_MIN <= (number := int(text)) <= INT64_MAX:
        return number if str(number) == text else text
    return text
