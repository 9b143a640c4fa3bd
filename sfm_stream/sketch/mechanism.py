"""Randomized response (the paper's F_{p,q}): the probabilities with which bits become noisy, in units of 2^-64."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfm_stream.errors import UsageError
from sfm_stream.sketch.sfm import GRID

LEAST_NOISE = 1 << 40
"""The smallest 1 - p and q that an estimate reckons with. Smaller ones, of an epsilon above 16, are raised to it: it
flips less than one cell of the largest sketch, and 1 - 2^-24 is still not 1 as a float."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A mechanism in floats, for estimates: Pr(one | bit set) = p, Pr(one | bit not set) = q < p.

    Estimates use the signal z = (p - T) / (p - q) of a noisy bit T. Its mean is 1 where the bit is not set, else 0.
    """

    miss: float
    """1 - p."""
    q: float
    gap: float
    """p - q, computed from the integers: a difference of two rounded numbers near 1/2 would lose digits."""

    @property
    def p(self) -> float:
        return 1.0 - self.miss

    @property
    def empty_variance(self) -> float:
        """Variance of z where the bit is not set."""
        return self.q * (1.0 - self.q) / self.gap**2

    @property
    def set_square(self) -> float:
        """Mean square of z where the bit is set."""
        return self.p * self.miss / self.gap**2


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Randomized response: Pr(one | bit set) = p_threshold / 2^64, Pr(one | bit not set) = q_threshold / 2^64.

    0 < q_threshold <= p_threshold < 2^64, else UsageError. methods/mechanisms.py makes mechanisms from an epsilon.
    """

    p_threshold: int
    q_threshold: int

    def __post_init__(self) -> None:
        if type(self.p_threshold) is not int or type(self.q_threshold) is not int:
            raise UsageError("a mechanism has two integer thresholds")
        if not 0 < self.q_threshold <= self.p_threshold < GRID:
            given = f"{self.p_threshold} and {self.q_threshold}"
            raise UsageError(f"thresholds {given} are not in 0 < q_threshold <= p_threshold < 2^64")

    @classmethod
    def flipping(cls, flip_threshold: int) -> Mechanism:
        """The symmetric mechanism (paper, def. sym-rr): it inverts each bit with probability flip_threshold / 2^64."""
        return cls(GRID - flip_threshold, flip_threshold)

    @property
    def symmetric(self) -> bool:
        """Whether set and unset bits are flipped with one probability, as negation and the randomized merge require."""
        return self.p_threshold + self.q_threshold == GRID

    def tells_copies(self, bits: int, other: Mechanism | None = None) -> bool:
        """Whether this many equal bits can only be a copy: two independent draws would agree with a chance <= 2^-64.

        other: the mechanism of the second draw; the same one by default. A bit that is one with probability p in one
        draw and p' in the other differs with probability p (1 - p') + p' (1 - p).
        """
        second = other or self
        ones = [(self.p_threshold, second.p_threshold), (self.q_threshold, second.q_threshold)]
        differ = min(p * (1.0 - q) + q * (1.0 - p) for p, q in ((a / GRID, b / GRID) for a, b in ones))
        return bits * math.log1p(-differ) <= -64.0 * math.log(2.0)

    @property
    def channel(self) -> Channel:
        """This mechanism in floats."""
        miss, q = max(GRID - self.p_threshold, LEAST_NOISE), max(self.q_threshold, LEAST_NOISE)
        return Channel(miss / GRID, q / GRID, (GRID - miss - q) / GRID)

    @property
    def epsilon(self) -> float:
        """ln max(p/q, (1-q)/(1-p)) of one bit (paper, thm. dp-bit-flip). Of a merge it only measures the noise."""
        return math.log(max(self.p_threshold / self.q_threshold, (GRID - self.q_threshold) / (GRID - self.p_threshold)))
