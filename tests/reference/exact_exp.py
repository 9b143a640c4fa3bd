"""Rational bounds around powers of e, from the series: no floating point, no rounding to trust."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction


def exp_bounds(exponent: Decimal | int | Fraction, terms: int = 160) -> tuple[Fraction, Fraction]:
    """low < e^exponent < high for 0 < exponent <= 32, closer than 2^-190 relative to it."""
    number, term, total = Fraction(exponent), Fraction(1), Fraction(1)
    for i in range(1, terms):
        term *= number / i
        total += term
    # Past term 64 each term is at most half of the one before, so the rest is below the last one.
    return _on_grid(total, down=True), _on_grid(total + term, down=False)


def _on_grid(number: Fraction, down: bool) -> Fraction:
    """Rounded outward to multiples of 2^-256, so that later arithmetic stays small."""
    scaled = number * (1 << 256)
    return Fraction(scaled.__floor__() if down else scaled.__ceil__(), 1 << 256)
