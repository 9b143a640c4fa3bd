"""The keys that the text of `--key` may mean: a key as it is shown, a JSON array, or its fields joined by commas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from sfm_stream.answers.key_notation import key_of_text
from sfm_stream.errors import QuestionError, SfmStreamError
from sfm_stream.types import KeyPart
from sfm_stream.units import INT64_MAX, INT64_MIN
from sfm_stream.wire.keys import encode_key

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MAX_READINGS = 1024


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A key as it was asked for. encoded: the canonical bytes of every key that the text may mean, at least one."""

    text: str
    encoded: frozenset[bytes]


def asked_key(text: str, fields: int) -> AskedKey:
    """All keys that a text may mean. fields: how many fields a key has. A number means a text and an integer.

    Raises QuestionError where it can be no key of so many fields.
    """
    readings = [reading for reading in _readings(text, fields) if len(reading) == fields]
    if encoded := frozenset(_encoded(readings)):
        return AskedKey(text, encoded)
    if not fields:
        raise QuestionError("event.key is []: everything is counted under one key, leave --key out", "--key")
    raise QuestionError(
        f"a key has {fields} field{'s' * (fields > 1)}: as it is shown, as a JSON array, or joined by commas", "--key"
    )


def _readings(text: str, fields: int) -> list[tuple[KeyPart, ...]]:
    shown = key_of_text(text)
    readings = [shown] if shown is not None else []
    try:
        listed = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):  # no JSON, or lists in lists without end
        listed = None
    if isinstance(listed, list) and all(_can_be_part(value) for value in listed):
        readings.append(tuple(listed))
    parts = text.split(",") if fields > 1 else [text] if fields else []
    if fields and len(parts) == fields and 2**fields <= _MAX_READINGS:
        choices: list[list[KeyPart]] = [
            [part, int(part)] if _INTEGER.fullmatch(part) and _can_be_part(int(part)) else [part] for part in parts
        ]
        readings.extend(product(*choices))
    return readings


def _can_be_part(value: object) -> bool:
    return type(value) is str or (type(value) is int and INT64_MIN <= value <= INT64_MAX)


def _encoded(readings: Iterable[tuple[KeyPart, ...]]) -> Iterable[bytes]:
    for reading in readings:
        try:
            yield encode_key(reading)
        except SfmStreamError:  # text or a number that no key can hold
            continue
