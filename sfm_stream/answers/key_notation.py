"""How keys are written: as text for people, no two the same, and as JSON for programs.

A field of a key that could be taken for something else is written as a JSON string in quotes. docs/operating.md
describes both forms.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence

from sfm_stream.readable import visible
from sfm_stream.types import KeyPart
from sfm_stream.units import INT64_MAX, INT64_MIN

ALL = "(all)"
"""The key of a pipeline that counts everything under one."""
_JOINT = " / "
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BYTES = re.compile(r"0x(?:[0-9a-f]{2})*")


def key_text(key: Sequence[KeyPart]) -> str:
    """A published key for people, no two the same: its fields joined by " / ", "(all)" where there is none."""
    return _JOINT.join(_part_text(part) for part in key) if key else ALL


def key_of_text(text: str) -> tuple[KeyPart, ...] | None:
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
