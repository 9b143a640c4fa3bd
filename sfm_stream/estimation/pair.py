"""Two private sketches together: how many items are in both, and in one of them only.

docs/accuracy.md, eq. 13 to 16. Each cell shows a pair of noisy bits with signals z_A and z_B (eq. 2). Their noise is
independent, so z_A z_B has mean 1 where the cell is empty in both sketches, and 0 elsewhere. The level means of
(z_A, z_B, z_A z_B) are known functions of the three numbers that are wanted (eq. 13); generalised least squares fits
them. The pair says more than the merged AND of the two sketches (methods/logic.py), whose coins add noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream.estimation.estimate import Estimate, Status, channel_of, estimate, normal_estimate, require_confidence
from sfm_stream.estimation.score import TINY
from sfm_stream.sketch.agreement import require_same
from sfm_stream.sketch.mechanism import Channel, Mechanism
from sfm_stream.sketch.merge import merged_threshold
from sfm_stream.sketch.noisy_bits import NoisyBits, require_draws_of_their_own
from sfm_stream.sketch.sfm import SfmSketch
from sfm_stream.sketch.shape import SketchShape

Array = NDArray[np.float64]
_ROUNDS = 100
_MEMBERS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
"""Which of (both, only first, only second) belong to the first set, to the second and to the union."""


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """How many items are in both of two sets, only in the first, only in the second, and in either.

    epsilon: the noise of the AND of the two sketches (the paper's epsilon*); it is no budget. The error of a part
    follows from the sizes of the two sets; it does not shrink with the part.
    """

    both: Estimate
    only_first: Estimate
    only_second: Estimate
    either: Estimate
    epsilon: float


def estimate_pair(first: SfmSketch, second: SfmSketch, *, confidence: float = 0.95) -> PairEstimate:
    """The sizes of the intersection, of both differences and of the union of two sets, from their private sketches.

    The sketches have the same shape and hash, each its own epsilon, and noise of two separate draws. If one of them is
    saturated or pure noise, all parts are uninformative. Raises IncompatibleError, UsageError.
    """
    require_confidence(confidence)
    require_same("pair", first, second, same_flip_threshold=False)
    require_draws_of_their_own("pair", map(NoisyBits.of, (first, second)))
    alone = [estimate(sketch, confidence=confidence) for sketch in (first, second)]
    epsilon = Mechanism.flipping(merged_threshold([first.flip_threshold, second.flip_threshold])).epsilon
    if any(one.status in (Status.SATURATED, Status.UNINFORMATIVE) for one in alone):
        nothing = normal_estimate(0.0, float("inf"), confidence)
        return PairEstimate(nothing, nothing, nothing, nothing, epsilon)
    model = _Model(first.shape, channel_of(first.flip_threshold), channel_of(second.flip_threshold))
    sums = model.sums(first.cells(), second.cells())
    at = model.solve(sums, np.array([one.value for one in alone]))
    weights, information = model.weights(at)
    step = np.linalg.solve(information, model.score(weights, sums, at))
    inverse = np.linalg.inv(information)
    covariance = inverse @ model.score_covariance(weights, at) @ inverse
    # TINY: the least variance, as in score.py.
    both, only_first, only_second, either = (
        normal_estimate(
            float(part @ (at + step)),
            math.sqrt(max(part @ covariance @ part, TINY * (part @ inverse @ part))),
            confidence,
        )
        for part in (*np.eye(3), np.ones(3))
    )
    return PairEstimate(both, only_first, only_second, either, epsilon)


@dataclass(frozen=True, slots=True)
class _Model:
    """Moments of the signals. at: shape (3,), the items in both sets, only in the first and only in the second."""

    shape: SketchShape
    first: Channel
    second: Channel

    def sums(self, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Array:
        """Shape (levels, 3): sums over each level of (z_A, z_B, z_A z_B). first, second: shape (levels, buckets)."""
        # Eq. 2.
        z = [(c.p - bits) / c.gap for c, bits in ((self.first, first), (self.second, second))]
        return np.stack([z[0].sum(axis=1), z[1].sum(axis=1), (z[0] * z[1]).sum(axis=1)], axis=1)

    def means(self, at: Array) -> Array:
        """Shape (levels, 3): (gamma^a, gamma^b, gamma^u), the means of the signals (eq. 13)."""
        return np.asarray(np.exp(np.log1p(-self.shape.rho)[:, None] * (_MEMBERS @ at)))

    def cell_covariance(self, means: Array) -> Array:
        """Shape (levels, 3, 3): covariance of the signals of one cell (eq. 14)."""
        a, b, u = means.T
        (a1, a0), (b1, b0) = ((1.0 + c.empty_variance, c.set_square) for c in (self.first, self.second))
        second = np.empty((len(a), 3, 3))
        second[:, 0, 0], second[:, 1, 1] = a * a1 + (1 - a) * a0, b * b1 + (1 - b) * b0
        second[:, 0, 1] = u
        second[:, 0, 2], second[:, 1, 2] = u * a1 + (b - u) * a0, u * b1 + (a - u) * b0
        second[:, 2, 2] = u * a1 * b1 + (a - u) * a1 * b0 + (b - u) * a0 * b1 + (1 - a - b + u) * a0 * b0
        second[:, 1, 0], second[:, 2, 0], second[:, 2, 1] = second[:, 0, 1], second[:, 0, 2], second[:, 1, 2]
        return second - means[:, :, None] * means[:, None, :]

    def weights(self, at: Array) -> tuple[Array, Array]:
        """The weights W_j, shape (levels, 3, 3), and the information, shape (3, 3) (eq. 15)."""
        means = self.means(at)
        slopes = (np.log1p(-self.shape.rho)[:, None] * means)[:, :, None] * _MEMBERS
        weights = np.linalg.solve(self.cell_covariance(means), slopes).transpose(0, 2, 1)
        return weights, self.shape.buckets * np.einsum("jpi,jiq->pq", weights, slopes)

    def score(self, weights: Array, sums: Array, at: Array) -> Array:
        """Shape (3,): the score, whose mean at the truth is 0 (eq. 15)."""
        return np.asarray(np.einsum("jpi,ji->p", weights, sums - self.shape.buckets * self.means(at)))

    def solve(self, sums: Array, alone: Array) -> Array:
        """Shape (3,), each >= 0: where the score is 0, or the bound 0 where the score points below it.

        Fisher scoring. It starts with half of the smaller set in both. alone: the sizes of the two sets, shape (2,).
        """
        shared = 0.5 * float(alone.min())
        at = np.array([shared, *(alone - shared)])
        for round in range(_ROUNDS):
            weights, information = self.weights(at)
            score = self.score(weights, sums, at)
            free = (at > 0.0) | (score > 0.0)
            if not free.any():
                break
            step = np.zeros(3)
            step[free] = np.linalg.solve(information[np.ix_(free, free)], score[free])
            damping = 1.0 if round < _ROUNDS // 2 else 0.5
            after = self._no_worse(sums, at, damping * step)
            if float(np.abs(after - at).max()) <= 1e-7 * (1.0 + float(at.sum())):
                return after
            at = after
        return at

    def _no_worse(self, sums: Array, at: Array, step: Array) -> Array:
        """at + step, kept within 0 .. capacity; the step is halved until the fit is no worse than at `at`.

        If one sketch is almost pure noise, a full step may end where the information is singular.
        """
        covariance = self.cell_covariance(self.means(at))

        def misfit(where: Array) -> float:
            rest = sums - self.shape.buckets * self.means(where)
            return float(np.sum(rest * np.linalg.solve(covariance, rest[:, :, None])[:, :, 0]))

        worst = misfit(at)
        for halvings in range(_ROUNDS):
            after = np.maximum(at + 0.5**halvings * step, 0.0)
            after *= min(1.0, self.shape.capacity / max(float(after.sum()), 1.0))
            if misfit(after) <= worst:
                return np.asarray(after)
        return at

    def score_covariance(self, weights: Array, at: Array) -> Array:
        """Shape (3, 3): covariance of the score, with the dependence between cells (eq. 16)."""
        means, buckets = self.means(at), self.shape.buckets
        own = buckets * np.einsum("jpi,jik,jqk->pq", weights, self.cell_covariance(means), weights)
        between = self._between(means, at)
        pairs = np.full(between.shape[:2], float(buckets * buckets))
        np.fill_diagonal(pairs, buckets * (buckets - 1.0))
        return np.asarray(own + np.einsum("jl,jpi,jlik,lqk->pq", pairs, weights, between, weights, optimize=True))

    def _between(self, means: Array, at: Array) -> Array:
        """Shape (levels, levels, 3, 3): covariance of signal i in a cell of level j with signal k in a cell of level l.

        It is Pr(i empty at j, k empty at l) minus the product of the two (eq. 16): an item that belongs to both i and k
        must miss both cells, an item of one of them must miss one cell.
        """
        rho = self.shape.rho
        one, two = np.log1p(-rho), np.log1p(-(rho[:, None] + rho[None, :]))
        common = np.einsum("im,km,m->ik", _MEMBERS, _MEMBERS, at)
        alone = np.diag(common)[:, None] - common
        log = two[:, :, None, None] * common
        log = log + one[:, None, None, None] * alone + one[None, :, None, None] * alone.T
        each = one[:, None] * (_MEMBERS @ at)
        product = each[:, None, :, None] + each[None, :, None, :]
        return np.asarray(np.exp(product) * np.expm1(log - product))
