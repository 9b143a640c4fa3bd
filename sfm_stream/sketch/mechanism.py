"""How bits become noisy, as exact integers: the paper's F_{p,q} on a grid of 2^-64."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfm_stream.errors import UsageError
from sfm_stream.sketch.sfm import GRID

FAINTEST = 1 << 40
"""An estimate takes a smaller chance of noise, of an epsilon above 16, for this: it flips less than one cell of the
largest sketch, and a float tells 1 - 2^-24 from 1."""


@dataclass(frozen=True, slots=True)
class Channel:
    """How bits become noisy: Pr(one | bit set) = p, Pr(one | bit not set) = q < p (the paper's F_{p,q}).

    z = (p - T) / (p - q) of a noisy bit T has mean 1 where the bit is not set and 0 where it is.
    """

    miss: float
    """1 - p."""
    q: float
    gap: float
    """p - q, given apart: the difference of two rounded numbers near 1/2 would not be exact."""

    @property
    def p(self) -> float:
        return 1.0 - self.miss

    @property
    def empty_variance(self) -> float:
        """Variance of z where the bit is not set."""
        return self.q * (1.0 - self.q) / self.gap**2

    @property
    def lit_square(self) -> float:
        """Mean square of z where the bit is set."""
        return self.p * self.miss / self.gap**2


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Randomized response: Pr(one | cell lit) = lit / 2^64 and Pr(one | cell empty) = empty / 2^64.

    0 < empty <= lit < 2^64, else UsageError.
    The classical one has lit = 2^64 - empty (paper, def. sym-rr). methods/mechanisms.py makes them from an epsilon.
    """

    lit: int
    empty: int

    def __post_init__(self) -> None:
        if type(self.lit) is not int or type(self.empty) is not int:
            raise UsageError("a mechanism has two integer thresholds")
        if not 0 < self.empty <= self.lit < GRID:
            raise UsageError(f"thresholds {self.lit} and {self.empty} are not in 0 < empty <= lit < 2^64")

    @classmethod
    def flipping(cls, flip_threshold: int) -> Mechanism:
        """The symmetric one, which inverts each bit with probability flip_threshold / 2^64."""
        return cls(GRID - flip_threshold, flip_threshold)

    @property
    def symmetric(self) -> bool:
        """Whether ones and zeros are flipped alike, which is what negation and the randomized merge ask for."""
        return self.lit + self.empty == GRID

    def tells_copies(self, bits: int, other: Mechanism | None = None) -> bool:
        """Whether so many equal bits are one and the same noise: of two draws a chance of 2^-64 at most.

        other: what the second draw is said to have gone through, by default the same. A bit that shows a one with
        probability p in one draw and p' in the other differs with probability p (1 - p') + p' (1 - p).
        """
        second = other or self
        pairs = ((self.lit / GRID, second.lit / GRID), (self.empty / GRID, second.empty / GRID))
        differ = min(p * (1.0 - q) + q * (1.0 - p) for p, q in pairs)
        return bits * math.log1p(-differ) <= -64.0 * math.log(2.0)

    @property
    def channel(self) -> Channel:
        """The same as floats, for estimates."""
        miss, empty = max(GRID - self.lit, FAINTEST), max(self.empty, FAINTEST)
        return Channel(miss / GRID, empty / GRID, (GRID - miss - empty) / GRID)

    @property
    def epsilon(self) -> float:
        """ln max(p/q, (1-q)/(1-p)), of a bit (paper, thm. dp-bit-flip). Of a merge it only measures noise."""
        return math.log(max(self.lit / self.empty, (GRID - self.empty) / (GRID - self.lit)))
