"""The distribution that a discrete Laplace sampler must have, from its integers alone, in exact rationals.

Nothing of the package is used. A geometric variable is L low digits, each an independent coin, plus 2^L for each time
that one more coin comes up.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product


def low_law(low, size):
    """Pr(low digits = l), l = 0 .. 2^L - 1."""
    law = [Fraction(1)]
    for threshold in low:
        one = Fraction(threshold, size)
        law = [chance * (1 - one) for chance in law] + [chance * one for chance in law]
    return law


def noise_law(low, more, size, reach):
    """Pr(X = x) for -reach <= x <= reach, X = G - H: the high parts differ by d with probability ~ w^|d|."""
    digits, w = low_law(low, size), Fraction(more, size)
    differences = Counter()
    for (g, p), (h, q) in product(enumerate(digits), repeat=2):
        differences[g - h] += p * q
    high = (1 - w) / (1 + w)
    law = {}
    for x in range(-reach, reach + 1):
        law[x] = sum(
            chance * high * w ** abs((x - rest) // len(digits))
            for rest, chance in differences.items()
            if (x - rest) % len(digits) == 0
        )
    return law


def law_within(low, more, size, rounds):
    """Pr(X = x and both high parts are at most `rounds`)."""
    digits, w = low_law(low, size), Fraction(more, size)
    one = Counter()
    for digit, chance in enumerate(digits):
        for high in range(rounds + 1):
            one[digit + high * len(digits)] += chance * w**high * (1 - w)
    law = Counter()
    for (g, p), (h, q) in product(one.items(), repeat=2):
        law[g - h] += p * q
    return law
