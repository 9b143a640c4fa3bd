"""Which keys may appear: optimal private selection on the raw popcount.

One item changes the popcount C of its key by 0 or 1, and C = 0 iff the key is empty. pi(n) is the largest probability
of publishing a key with C = n that keeps (epsilon, delta)-DP (Desfontaines, Voss, Gipson, Mandayam, "Differentially
private partition selection", 2022):

    pi(0) = 0,  pi(n) = min(e^eps pi(n-1) + delta, 1 - e^-eps (1 - pi(n-1) - delta), 1)
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EpsilonError
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.epsilon import Epsilon, parse_epsilon
from sfm_stream.sketch.bernoulli import WORD64, Word, draw

MIN_DELTA = Decimal(2) ** -50
_DIGITS = 60


def parse_delta(value: object, name: str = "delta_selection") -> Decimal:
    """The decimal a person wrote, 2^-50 <= delta < 1. Raises EpsilonError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise EpsilonError(f"{name}: expected a number, got {type(value).__name__}")
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not number.is_finite() or not MIN_DELTA <= number < 1:
        raise EpsilonError(f"{name}: {value} is outside 2^-50..1")
    return number


def selection_table(epsilon: Epsilon, delta: Epsilon, word: Word = WORD64) -> NDArray[np.uint64]:
    """Shape (m,): pi(n) * 2^bits for n = 0..m-1 as integers; every larger n has the last entry.

    Each entry is built on the rounded one before it, with e^eps rounded down and e^-eps up, so that the integers
    themselves satisfy the bound. The last entry is 2^bits - 1: a large key is withheld once in 2^64 times.
    """
    eps, grid = parse_epsilon(epsilon, "epsilon_selection"), Decimal(1 << word.bits)
    mass = parse_delta(delta) * grid
    with localcontext() as context:
        context.prec = _DIGITS
        tiny = Decimal(10) ** (4 - _DIGITS)
        context.rounding = ROUND_FLOOR
        growth = eps.exp() * (1 - tiny)
        context.rounding = ROUND_CEILING
        decay = (-eps).exp() * (1 + tiny)
        context.rounding = ROUND_FLOOR
        table = [0]
        while table[-1] < (1 << word.bits) - 1:
            last = Decimal(table[-1])
            step = min(growth * last + mass, grid - decay * (grid - last - mass), grid - 1)
            entry = int(step.to_integral_value(ROUND_FLOOR))
            if entry <= table[-1]:
                raise EpsilonError(f"delta_selection: {delta} is too small for a word of {word.bits} bits")
            table.append(entry)
    return np.array(table, np.uint64)


def select(popcount: int, table: NDArray[np.uint64], coins: Coins, word: Word = WORD64) -> bool:
    """Whether a key with this many lit cells may be published: True with probability pi(popcount)."""
    threshold = int(table[min(popcount, len(table) - 1)])
    return bool(draw(1, threshold, coins.digits, word)[0])
