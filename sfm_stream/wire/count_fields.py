"""Noisy counts as fields of version 2: the epsilon as text, in one form, and the numbers in one width."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sfm_stream.errors import FormatError
from sfm_stream.privacy.epsilon import MAX_EPSILON, MIN_EPSILON
from sfm_stream.readable import decimal_text
from sfm_stream.sketch.sfm import NoisyCount

MAX_EPSILON_TEXT = 64
_EPSILON = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")


@lru_cache(maxsize=64)
def epsilon_text(epsilon: Decimal | None) -> str:
    """The decimal in its one form; "" for None."""
    return "" if epsilon is None else decimal_text(epsilon)


def epsilon_of_text(text: str) -> Decimal | None:
    """The decimal of this text; None for "", which is no count. Raises FormatError("count_epsilon", ...)."""
    if not text:
        return None
    if not _EPSILON.fullmatch(text):
        raise FormatError("count_epsilon", f"does not match {_EPSILON.pattern}")
    epsilon = Decimal(text)
    check_count_epsilon(epsilon)
    return epsilon


def count_fields(count: NoisyCount | None) -> tuple[str, int]:
    """count_epsilon and count of a release; "" and 0 for one without a count."""
    return ("", 0) if count is None else (epsilon_text(count.epsilon), count.value)


def count_of(values: dict[str, Any]) -> NoisyCount | None:
    """The inverse of `count_fields`, from the fields of a record by name. Raises FormatError."""
    epsilon = epsilon_of_text(values["count_epsilon"])
    return None if epsilon is None else NoisyCount(values["count"], epsilon)


@lru_cache(maxsize=64)  # all releases of a span have the same one
def check_count_epsilon(epsilon: Decimal) -> None:
    """Raise FormatError unless it is 2^-10 .. 16, and not more than 64 characters as it is written."""
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise FormatError("count_epsilon", "outside 2^-10..16")
    if len(epsilon_text(epsilon)) > MAX_EPSILON_TEXT:
        raise FormatError("count_epsilon", f"more than {MAX_EPSILON_TEXT} characters")
