"""The law of the score of few items under little noise, from all that makes it: docs/accuracy.md, eq. 45 to 47.

With almost no noise one sketch of n items differs from another by the levels that the items fall to, by the few that
share a cell with another, by some flipped bits and by the integer noise of the count. The characteristic function of
the score is a product of closed forms of these four, and one Fourier transform makes it a distribution function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.normal_laplace import bisected
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.score import Scores
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Channel

Array = NDArray[np.float64]
Cdf = Callable[[Array], Array]
_POINTS, _WIDTH, _SMOOTH = 512, 24.0, 0.03
"""The transform: points of a half, width in standard deviations, and the deviation of what smooths its steps."""
_SEEN, _WEAK = 0.25, 0.1
"""Above these shares of the score's deviation, and of the weight of the count, the bits hide the steps of the count."""
_TAIL = 1e-7
_OF_EACH = ("n", "constant", "by_one", "by_count", "sharing", "most", "shared")


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What the score of several n is made of (eq. 45). Shapes (points,) unless said otherwise."""

    channel: Channel
    epsilon: float
    """Of the count; 0 without one."""
    n: NDArray[np.int64]
    cells: float
    """Of one level."""
    chance: Array
    """Shape (levels,): the probability that an item falls to a level."""
    constant: Array
    """The score of an empty sketch without noise."""
    by_one: Array
    """Shape (points, levels): what a noisy one of each level adds to the score."""
    by_count: Array
    """What 1 in the noisy count adds."""
    sharing: Array
    """Shape (points, levels): the expected number of items that share the cell of an earlier one."""
    most: Array
    """So many may share, each with probability `shared`: a binomial number of the exact mean and nearly the variance of
    the number of lit cells (eq. 46)."""
    shared: Array

    @classmethod
    def of(cls, layout: BitmapLayout, channel: Channel, epsilon: float, at: Scores) -> Parts:
        """at: scores of integers. The levels of the layout have equally many cells."""
        sizes, levels = layout.sizes, len(layout.sizes)
        cells = Occupancy.at(layout, at.n)
        sharing = np.maximum(at.n[:, None] * (sizes * layout.rho) - sizes * (1.0 - cells.empty), 0.0)
        mean, variance = sharing.sum(axis=1), cells.covariance().sum(axis=(1, 2))
        most = np.rint(mean**2 / np.maximum(mean - variance, 1e-4 * mean + 1e-300))
        most = np.clip(most, np.ceil(mean + 1e-9), 1e5)
        by_rest = at.weights[:, levels] if epsilon else np.zeros(len(at.n))
        by_bits = at.weights[:, :levels] - by_rest[:, None]
        constant = by_bits @ sizes * (channel.p / channel.gap) + by_rest * layout.cells - at.offset
        n = at.n.astype(np.int64)
        chance, by_one = sizes * layout.rho, -by_bits / channel.gap
        return cls(channel, epsilon, n, sizes[0], chance, constant, by_one, -by_rest, sharing, most, mean / most)

    def between(self, first: int, end: int) -> Parts:
        """The n with these positions."""
        some = {name: getattr(self, name)[first:end] for name in _OF_EACH}
        return replace(self, **some)

    @property
    def smear(self) -> Array:
        """Standard deviation of the part of the score that is flipped bits."""
        q = self.channel.q
        return np.asarray(np.sqrt(self.cells * q * (1.0 - q) * np.sum(self.by_one**2, axis=1)))

    @property
    def stepped(self) -> bool:
        """Whether the bits say so little beside the count that they only smear its steps."""
        weak = np.abs(self.by_one).max(axis=1) < _WEAK * self.by_count
        return bool((weak & (self.smear < _SEEN)).all())

    def law(self, i: int) -> Cdf:
        """The distribution function of the score of the i-th n."""
        by_count, t = self.by_count[i], self._frequencies(1.0)
        transform = self._of_bits(i, t, _turns(-t * by_count)) * _turns(t * self.n[i] * by_count)
        if self.epsilon:
            a = math.exp(-self.epsilon)
            transform *= (1.0 - a) ** 2 / np.abs(1.0 - a * _turns(t * by_count)) ** 2
        return _distribution(transform, 1.0)

    def smear_law(self, i: int) -> Cdf:
        """The distribution function of what the bits add to the score of the i-th n, by its own deviation, mean 0."""
        scale = float(self.smear[i])
        t = self._frequencies(scale)
        shift = (self.n[i] - self.sharing[i].sum()) * self.by_count[i]
        return _distribution(self._of_bits(i, t, 1.0) * _turns(t * shift), scale)

    def stepped_law(self, smear: Cdf) -> Cdf:
        """The distribution functions of the scores of all n, given that of the smear (eq. 47)."""
        numbers, chances = self._integers()
        steps, deviation = self.by_count[:, None] * numbers, self.smear[:, None]

        def cdf(at: Array) -> Array:
            return np.asarray(np.sum(smear((at[:, None] - steps) / deviation) * chances, axis=1))

        return cdf

    @staticmethod
    def _frequencies(scale: float) -> Array:
        return np.asarray(np.arange(_POINTS + 1) * (2.0 * math.pi / (_WIDTH * scale)))

    def _of_bits(self, i: int, t: Array, by_shared: NDArray[np.complex128] | float) -> NDArray[np.complex128]:
        """The transform of constant and bits. by_shared: the factor of an item that shares a cell, beside its bits."""
        q, steps = self.channel.q, _turns(np.outer(t, self.by_one[i]))
        empty = 1.0 - q + q * steps
        lit = (self.channel.miss + self.channel.p * steps) / empty  # of a cell that is set, beyond one that is not
        found = _turns(t * self.constant[i]) * np.prod(empty, axis=1) ** int(self.cells)
        found *= _mean(lit, self.chance) ** int(self.n[i])
        if self.shared[i]:
            gone = _mean(1.0 / lit, self.sharing[i] / self.sharing[i].sum()) * by_shared
            found *= (1.0 + self.shared[i] * (gone - 1.0)) ** int(self.most[i])
        return np.asarray(found)

    def _integers(self) -> tuple[Array, Array]:
        """(numbers of mean 0, their probabilities), shapes (points, numbers): noise of the count, less what shares."""
        last = math.ceil(-math.log(_TAIL) / self.epsilon)
        noise = np.exp(-self.epsilon * np.abs(np.arange(-last, last + 1))) * math.tanh(0.5 * self.epsilon)
        mean = self.most * self.shared
        reach = math.ceil(float(np.max(np.minimum(self.most, mean + 6.0 * np.sqrt(mean) + 6.0))))
        chances = np.zeros((len(mean), reach + len(noise)))
        chance = (1.0 - self.shared) ** self.most
        for k in range(reach + 1):
            chances[:, reach - k : reach - k + len(noise)] += chance[:, None] * noise
            chance = chance * (self.shared / (1.0 - self.shared)) * np.maximum(self.most - k, 0.0) / (k + 1)
        return mean[:, None] + np.arange(-last - reach, last + 1.0), chances


def limits(law: Cdf, distance: Array, confidence: float) -> tuple[Array, Array]:
    """(h, z) of eq. 11 with this law in place of the normal one, at each distance from 0. Shapes (points,)."""
    wide = np.full(len(distance), 0.5 * _WIDTH)
    z = bisected(lambda at: law(at) - law(-at), wide, confidence)
    mu = np.minimum(distance, z)

    def covered(h: Array) -> Array:
        below = law(-(0.5 * mu + h**2 / (2.0 * np.maximum(mu, 1e-300))))
        return np.asarray(law(h) - np.where(mu > 0.0, below, 0.0))

    return bisected(covered, wide, confidence), z


def _mean(of: NDArray[np.complex128], chances: Array) -> NDArray[np.complex128]:
    """As `of @ chances`, for which a library would wake all its threads."""
    return np.asarray(np.einsum("tj,j->t", of, chances))


def _turns(angle: Array) -> NDArray[np.complex128]:
    """e^(i angle), in half the time that exp takes."""
    found = np.empty(angle.shape, np.complex128)
    np.cos(angle, out=found.real)
    np.sin(angle, out=found.imag)
    return found


def _distribution(transform: NDArray[np.complex128], scale: float) -> Cdf:
    """The distribution function with this characteristic function, of a variable divided by `scale`."""
    index = np.arange(_POINTS + 1)
    smoothed = np.conj(transform) * np.exp(-0.5 * (_SMOOTH * 2.0 * math.pi / _WIDTH * index) ** 2)
    mass = np.fft.irfft(np.where(index % 2, -smoothed, smoothed), 2 * _POINTS)  # the sign moves 0 to the middle
    x = (np.arange(2 * _POINTS) - _POINTS) * (_WIDTH / (2 * _POINTS))
    below = np.cumsum(mass) - 0.5 * mass
    return lambda at: np.asarray(np.interp(at, x, below, 0.0, 1.0))
