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
"""2^-10 and 16, written out: an operation would round as the context of whoever imports this says."""
DIGITS = 60
"""Decimal places that quotients are computed to before they are rounded to the grid, beyond those of epsilon itself."""


@contextmanager
def decimals(places: int = DIGITS, rounding: str = ROUND_HALF_EVEN) -> Iterator[Context]:
    """Arithmetic in this block is ours: precision, rounding, range, traps and print of the caller do not count."""
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
    """A decimal as it was written, whatever the caller's context is."""
    with decimals():
        return str(number)


def parse_number(value: object, name: str) -> Decimal:
    """A number, of numpy too, as the decimal a person wrote: 0.1 means one tenth. Raises EpsilonError for all else."""
    if isinstance(value, np.integer | np.floating) and not isinstance(value, float | np.timedelta64):
        return Decimal(str(value))  # the shortest that is this number at its own precision
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise EpsilonError(f"{name}: expected a number, got {type(value).__name__}")
    # float.__repr__, since a numpy float64 is a float with a repr of its own.
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


def parse_epsilon(value: object, name: str = "epsilon") -> Decimal:
    """The decimal a person wrote: 0.1 means one tenth. 2^-10 <= epsilon <= 16, a number, not a bool.

    Raises EpsilonError for anything else: text, bool, NaN, infinity, zero, negative or out of range.
    """
    number = parse_number(value, name)
    if not number.is_finite() or not MIN_EPSILON <= number <= MAX_EPSILON:
        raise EpsilonError(f"{name}: {plain(number)} is outside 2^-10..16")
    return number


def flip_threshold_of(epsilon: Epsilon, word: Word = WORD64) -> int:
    """t = ceil(2^bits / (e^epsilon + 1)), so that (2^bits - t) / t <= e^epsilon (paper, thm. dp-bit-flip).

    The quotient is irrational for every rational epsilon but 0, so the ceiling is the floor plus one.
    """
    number = parse_epsilon(epsilon)
    with decimals(places_for(number)):
        quotient = Decimal(1 << word.bits) / (number.exp() + 1)
        return int(quotient.to_integral_value(ROUND_FLOOR)) + 1


def places_for(epsilon: Decimal) -> int:
    """How many places a quotient is computed to: it may lie as near to an integer as epsilon has digits."""
    return DIGITS + len(epsilon.as_tuple().digits)


def shared(epsilon: Epsilon, parts: int) -> Decimal:
    """epsilon / parts, rounded down: what each of `parts` releases of one item may spend."""
    with decimals(DIGITS, ROUND_FLOOR):
        return parse_epsilon(epsilon) / parts


def epsilon_of(flip_threshold: int) -> float:
    """ln((2^64 - t) / t): the realised epsilon of a release with flip threshold t."""
    with decimals():
        return float((Decimal((1 << 64) - flip_threshold) / Decimal(flip_threshold)).ln())
