"""Integer noise for counts: the discrete Laplace distribution, drawn exactly, with no floating point.

The noise is the difference of two independent geometric variables, G - H. A geometric variable with ratio a, that is
Pr(G = g) proportional to a^g, is drawn as G = low + 2^L * high: its L low binary digits are independent coins, and
`high` counts how often one more coin comes up; the first of these coins is drawn along with the low digits.

What is private is not the ideal distribution but the one that the integer thresholds define. So each threshold is
computed from the rounded ones before it, such that

    Pr(G = g) / Pr(G = g + 1) is in 1 .. e^epsilon   for every g >= 0.

This ratio depends only on the number of trailing ones of the low digits of g, so that L + 1 inequalities are all there
are. Both Pr(X = x) / Pr(X = x + 1) and its inverse are at most e^epsilon for every integer x then, since Pr(X = x) is
a sum over h of Pr(G = x + h) Pr(H = h), or for x < 0 with both exchanged, and the inequality holds term by term. Every
integer can be drawn, so no output tells two counts apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from itertools import compress

from sfm_stream.errors import EpsilonError
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.epsilon import DIGITS, Epsilon, decimals, parse_epsilon, places_for
from sfm_stream.sketch.bernoulli import WORD64, FewCoins, Word

_LOW_REACH = 16
"""The low digits hold geometric variables up to about this number of times 1 / epsilon."""


@dataclass(frozen=True)
class DiscreteLaplace:
    """The noise as integers: low digit i is one with probability low[i] / 2^bits, `high` grows with more / 2^bits."""

    epsilon: Decimal
    low: tuple[int, ...]
    more: int
    word: Word = WORD64

    @classmethod
    def of(cls, epsilon: Epsilon, word: Word = WORD64) -> DiscreteLaplace:
        """The noise for a count that one item changes by at most 1. Raises EpsilonError."""
        number = parse_epsilon(epsilon, "epsilon_count")
        size = 1 << word.bits
        digits = 0
        while number * (1 << digits) < _LOW_REACH:
            digits += 1
        with decimals(places_for(number) + digits, ROUND_FLOOR):
            # Above e^-epsilon by far less than the grid: rounding may only bring two neighbours closer.
            ratio = (-number).exp() * (1 + Decimal(10) ** (4 - DIGITS))
            low, fallen = [], Decimal(1)  # the product of the odds of the digits so far
            coarse = False
            for _ in range(digits):
                odds = ratio * fallen
                low.append(int((size * odds / (1 + odds)).to_integral_value(ROUND_FLOOR)) + 1)
                rounded = Decimal(low[-1]) / (size - low[-1])
                coarse, fallen = coarse or rounded > fallen, fallen * rounded
            more = int((size * ratio * fallen).to_integral_value(ROUND_FLOOR)) + 1
        if coarse or more > size * fallen or more == size:
            raise EpsilonError(f"epsilon_count: {number} is too small for a word of {word.bits} bits")
        return cls(number, tuple(low), more, word)

    def draw_one(self, coins: Coins) -> int:
        """The noise of one count, any integer. How many coins are drawn depends on the noise alone."""
        few, worth = self._of_one
        came_up, digits = few.draw(coins.digits), len(self.low)
        noise = sum(compress(worth, came_up))
        growing = [worth[at] for at in (digits, -1) if came_up[at]]
        while growing:
            growing = list(compress(growing, FewCoins([self.more] * len(growing), self.word).draw(coins.digits)))
            noise += sum(growing)
        return noise

    @cached_property
    def _of_one(self) -> tuple[FewCoins, tuple[int, ...]]:
        """The coins of G and H, and what each adds to G - H if it comes up."""
        worth = [1 << i for i in range(len(self.low) + 1)]
        return FewCoins((*self.low, self.more) * 2, self.word), (*worth, *(-one for one in worth))
