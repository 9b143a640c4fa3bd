"""The mechanisms that the paper defines and compares, each for a given epsilon, which rounding never exceeds."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from typing import TypeAlias

from sfm_stream.privacy.epsilon import Epsilon, decimals, flip_threshold_of, parse_epsilon, places_for
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.sfm import GRID

MechanismFamily: TypeAlias = Callable[[Epsilon], Mechanism]
"""A mechanism for each epsilon: symmetric, xor or pagh_stausholm."""


def symmetric(epsilon: Epsilon) -> Mechanism:
    """M_sym: q = 1/(e^epsilon + 1), p = 1 - q (paper, def. sym-rr). Releases use this one."""
    return Mechanism.flipping(flip_threshold_of(epsilon))


def xor(epsilon: Epsilon) -> Mechanism:
    """M_xor: p = 1/2, q = 1/(2 e^epsilon) (paper, def. xor-rr).

    Bits of this mechanism merge without coins. The variance of an estimate is up to four times that of M_sym.
    """
    number = parse_epsilon(epsilon)
    with decimals(places_for(number)):
        return _half(Decimal(GRID // 2) / number.exp())


def pagh_stausholm(epsilon: Epsilon) -> Mechanism:
    """M_PS: p = 1/2, q = 1/(2 + epsilon), as Pagh and Stausholm prescribe (paper, cor. equivalent-eps).

    The same mechanism as xor(ln(1 + epsilon / 2)), so it adds more noise than epsilon requires.
    """
    number = parse_epsilon(epsilon)
    with decimals(places_for(number)):
        return _half(Decimal(GRID) / (2 + number))


def _half(q: Decimal) -> Mechanism:
    """p = 1/2, and q rounded up. Only p/q bounds epsilon, since (1 - q)/(1 - p) = 2 - 2q <= 1/(2q) = p/q."""
    floor = q.to_integral_value(ROUND_FLOOR)
    return Mechanism(GRID // 2, int(floor) + (floor != q))
