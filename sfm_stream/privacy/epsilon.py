"""Privacy parameters as exact integers: a stated epsilon is never exceeded by rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import (
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import TypeAlias

import numpy as np

from sfm_stream.errors import EpsilonError
from sfm_stream.sketch.bernoulli import WORD64, Word

Epsilon: TypeAlias = int | float | Decimal

MIN_EPSILON, MAX_EPSILON = Decimal("0.0009765625"), Decimal(16)
"""2^-10 and 16. They are written out: a computation at import would round as the importer's decimal context says."""
DIGITS = 60
"""Digits of precision in which quotients are computed before they are rounded, beyond the digits of epsilon itself."""
COUNT_DIGITS = 40
"""Digits of the epsilon of a count: a release carries it as text."""


@contextmanager
def decimals(places: int = DIGITS, rounding: str = ROUND_HALF_EVEN) -> Iterator[Context]:
    """Decimal arithmetic in this block uses the settings given here, whatever the context of the caller is."""
    mine = Context(
        prec=places,
        rounding=rounding,
        Emin=-999_999,
        Emax=999_999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )
    with localcontext(mine) as context:
        yield context


def plain(number: Decimal) -> str:
    """The text of a decimal as it was written, whatever the context of the caller is."""
    with decimals():
        return str(number)


def parse_number(value: object, name: str) -> Decimal:
    """The decimal that a person wrote: 0.1 means one tenth. Raises EpsilonError for what is no number."""
    if isinstance(value, np.integer | np.floating) and not isinstance(value, float | np.timedelta64):
        return Decimal(str(value))  # the shortest decimal that reads back as this number in its own precision
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise EpsilonError(f"{name}: expected a number, got {type(value).__name__}")
    # float.__repr__, since a numpy float64 is a float with a repr of its own.
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


def parse_epsilon(value: object, name: str = "epsilon") -> Decimal:
    """The decimal that a person wrote: 0.1 means one tenth. 2^-10 <= epsilon <= 16, a number, not a bool.

    Raises EpsilonError for anything else: text, bool, NaN, infinity, zero, negative or out of range.
    """
    number = parse_number(value, name)
    if not number.is_finite() or not MIN_EPSILON <= number <= MAX_EPSILON:
        raise EpsilonError(f"{name}: {plain(number)} is outside 2^-10..16")
    return number


def flip_threshold_of(epsilon: Epsilon, word: Word = WORD64) -> int:
    """t = ceil(2^bits / (e^epsilon + 1)), so that (2^bits - t) / t <= e^epsilon (paper, thm. dp-bit-flip).

    The quotient is irrational for every rational epsilon other than 0, so its ceiling is its floor plus one.
    """
    number = parse_epsilon(epsilon)
    with decimals(places_for(number)):
        quotient = Decimal(1 << word.bits) / (number.exp() + 1)
        return int(quotient.to_integral_value(ROUND_FLOOR)) + 1


def places_for(epsilon: Decimal) -> int:
    """Digits of precision for a quotient. The more digits epsilon has, the closer a quotient can be to an integer."""
    return DIGITS + len(epsilon.as_tuple().digits)


def shared(epsilon: Epsilon, parts: int) -> Decimal:
    """epsilon / parts, rounded down: the share of each of `parts` bits, or releases, that one item changes."""
    with decimals(DIGITS, ROUND_FLOOR):
        return parse_epsilon(epsilon) / parts


def parts_of(epsilon: Epsilon, count_share: Epsilon) -> tuple[Decimal, Decimal]:
    """(epsilon for the bits, epsilon for the count), which together are at most epsilon. 0 <= count_share < 1.

    Raises EpsilonError where a part that is used is outside 2^-10..16, or the share is no such number.
    """
    whole, share = parse_epsilon(epsilon), parse_number(count_share, "count_share")
    if not share.is_finite() or not 0 <= share < 1:
        raise EpsilonError(f"count_share: {plain(share)} is outside 0 <= share < 1")
    if not share:
        return whole, Decimal(0)
    with decimals(COUNT_DIGITS, ROUND_FLOOR):
        for_count = whole * share
    with decimals(places_for(whole) + COUNT_DIGITS, ROUND_FLOOR):
        for_bits = whole - for_count
    return parse_epsilon(for_bits, "epsilon of the bits"), parse_epsilon(for_count, "epsilon of the count")


def epsilon_of(flip_threshold: int) -> float:
    """ln((2^64 - t) / t): the realised epsilon of a release with flip threshold t."""
    with decimals():
        return float((Decimal((1 << 64) - flip_threshold) / Decimal(flip_threshold)).ln())
