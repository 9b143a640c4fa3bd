"""Which keys may appear: optimal private selection by the popcount of the raw sketch.

One item changes the popcount C of its key by 0 or 1, and C = 0 if and only if the key is empty. pi(n) is the largest
probability of publishing a key with C = n that keeps (epsilon, delta)-DP (Desfontaines, Voss, Gipson, Mandayam,
"Differentially private partition selection", 2022):

    pi(0) = 0,  pi(n) = min(e^eps pi(n-1) + delta, 1 - e^-eps (1 - pi(n-1) - delta), 1)
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import EpsilonError
from sfm_stream.privacy.epsilon import DIGITS, Epsilon, decimals, parse_epsilon, parse_number, places_for, plain
from sfm_stream.sketch.bernoulli import WORD64, FewCoins, Word

if TYPE_CHECKING:
    from sfm_stream.privacy.coins import Coins

MIN_DELTA = Decimal("8.8817841970012523233890533447265625E-16")
"""2^-50, written out as in epsilon.py."""


def parse_delta(value: object, name: str = "delta_selection") -> Decimal:
    """The decimal that a person wrote, 2^-50 <= delta < 1. Raises EpsilonError for anything else."""
    number = parse_number(value, name)
    if not number.is_finite() or not MIN_DELTA <= number < 1:
        raise EpsilonError(f"{name}: {plain(number)} is outside 2^-50..1")
    return number


def selection_table(epsilon: Epsilon, delta: Epsilon, word: Word = WORD64) -> NDArray[np.uint64]:
    """Shape (m,): pi(n) * 2^bits for n = 0..m-1 as integers; every larger n has the last entry.

    Each entry is computed from the rounded one before it, with e^eps rounded down and e^-eps rounded up. So the
    integers themselves satisfy the bound. The last entry is 2^bits - 1: a large key is withheld once in 2^64 times.
    """
    eps, parsed, grid = parse_epsilon(epsilon, "epsilon_selection"), parse_delta(delta), Decimal(1 << word.bits)
    with decimals(max(places_for(eps), places_for(parsed)), ROUND_FLOOR) as context:
        mass = parsed * grid
        tiny = Decimal(10) ** (4 - DIGITS)
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
                raise EpsilonError(f"delta_selection: {parsed} is too small for a word of {word.bits} bits")
            table.append(entry)
    return np.array(table, np.uint64)


def select(popcount: int, table: NDArray[np.uint64], coins: Coins, word: Word = WORD64) -> bool:
    """Whether a key with this many set cells may be published: True with probability pi(popcount)."""
    coin = FewCoins([int(table[min(popcount, len(table) - 1)])], word)
    return coin.draw(coins.digits)[0]
