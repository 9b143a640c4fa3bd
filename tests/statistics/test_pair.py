"""Two sketches: intersection and differences with honest errors, and the covariances behind them by enumeration.

Seeded. Misses of 95 % intervals over N trials are Binomial(N, 0.05) if they are exact; the bounds leave out 0.0005 on
either side, so that one of the 24 judgements below raises a false alarm once in 40 seeds.
"""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.estimate import Status, channel_of
from sfm_stream.sketch.pair import _Model, estimate_pair
from sfm_stream.sketch.pcsa import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape

SHAPE, TRIALS = SketchShape(1024, 20), 200


class SeededCoins:
    def __init__(self, *seed):
        self._rng = np.random.default_rng(seed)

    def digits(self, count):
        return np.frombuffer(self._rng.bytes(count), np.uint8)


def pair_of(rng, both, first, second, epsilons, *seed):
    column = rng.integers(0, 1 << 62, both + first + second)
    sets = (column[: both + first], np.concatenate((column[:both], column[both + first :])))
    coins = SeededCoins(*seed)
    return [flip(PcsaSketch(SHAPE).add(part), e, coins) for part, e in zip(sets, epsilons, strict=True)]


@pytest.mark.parametrize("epsilons", [(1, 1), (2, 2), (1, 4)])
@pytest.mark.parametrize("sizes", [(10_000, 10_000, 10_000), (500, 20_000, 20_000)])
def test_parts_have_the_errors_they_report(sizes, epsilons):
    """Bias within 4.5 standard errors of the mean, RMSE within 25 % of the reported error (5 of its own)."""
    rng = np.random.default_rng([1, *sizes])
    found = []
    for trial in range(TRIALS):
        one = estimate_pair(*pair_of(rng, *sizes, epsilons, 2, trial))
        found.append((one.both, one.only_first, one.only_second, one.either))
    for parts, truth in zip(zip(*found, strict=True), (*sizes, sum(sizes)), strict=True):
        errors = np.array([part.unclamped - truth for part in parts])
        reported = np.median([part.standard_error for part in parts])
        assert abs(errors.mean()) < 4.5 * reported / np.sqrt(TRIALS)
        assert 0.75 < np.sqrt((errors**2).mean()) / reported < 1.25
        missed = sum(not part.low <= truth <= part.high for part in parts)
        assert binom.ppf(0.0005, TRIALS, 0.05) <= missed <= binom.ppf(0.9995, TRIALS, 0.05)


def test_the_covariances_are_those_of_all_placements():
    """One item in both sets and one only in the first: every way they can fall on a 16x2 sketch."""
    shape = SketchShape(16, 2)
    model = _Model(shape, channel_of(GRID // 5), channel_of(GRID // 8))
    at = np.array([1.0, 1.0, 0.0])
    weights = np.random.default_rng(3).normal(size=(2, 3, 3))
    chances = np.repeat(shape.rho, 16)
    mean, square = np.zeros(3), np.zeros((3, 3))
    for common, alone in product(range(32), repeat=2):
        chance = chances[common] * chances[alone]
        first, second = np.ones(32), np.ones(32)
        first[[common, alone]] = 0.0
        second[common] = 0.0
        sums, spread = given_empty(model, first, second, weights)
        mean += chance * sums
        square += chance * (np.outer(sums, sums) + spread)
    assert np.einsum("jpi,ji->p", weights, 16 * model.means(at)) == pytest.approx(mean, rel=1e-10)
    assert model.score_covariance(weights, at) == pytest.approx(square - np.outer(mean, mean), rel=1e-8)


def given_empty(model, first, second, weights):
    """Mean and covariance of the weighted sums, for given empty cells of both sketches; shape (32,) each."""
    sums, spread = np.zeros(3), np.zeros((3, 3))
    for cell in range(32):
        signals = []
        for channel, empty in ((model.first, first[cell]), (model.second, second[cell])):
            one = channel.q if empty else channel.p
            low, high = channel.p / channel.gap, (channel.p - 1) / channel.gap
            signals.append([(1 - one, low), (one, high)])
        outcomes = [(p * r, np.array([z, y, z * y])) for p, z in signals[0] for r, y in signals[1]]
        centre = sum(p * y for p, y in outcomes)
        covariance = sum(p * np.outer(y, y) for p, y in outcomes) - np.outer(centre, centre)
        row = weights[cell // 16]
        sums += row @ centre
        spread += row @ covariance @ row.T
    return sums, spread


def test_swapping_the_sketches_swaps_the_differences():
    first, second = pair_of(np.random.default_rng(4), 300, 2000, 100, (2, 3), 5)
    there, back = estimate_pair(first, second), estimate_pair(second, first)
    assert there.only_first.unclamped == pytest.approx(back.only_second.unclamped, rel=1e-4)
    assert there.both.unclamped == pytest.approx(back.both.unclamped, rel=1e-4)
    assert there.epsilon == pytest.approx(back.epsilon)


def test_what_says_nothing_is_uninformative_and_what_does_not_fit_is_refused():
    sketch = flip(PcsaSketch(SHAPE).add(range(1000)), 2, SeededCoins(6))
    noise = SfmSketch(SHAPE, GRID // 2, "xxh64", bytes(SHAPE.nbytes))
    full = SfmSketch(SHAPE, sketch.k, "xxh64", b"\xff" * SHAPE.nbytes)
    for other in (noise, full):
        found = estimate_pair(sketch, other)
        parts = (found.both, found.only_first, found.only_second, found.either)
        assert all(part.status is Status.UNINFORMATIVE for part in parts)
    with pytest.raises(IncompatibleError, match="hash"):
        estimate_pair(sketch, SfmSketch(SHAPE, sketch.k, "other", sketch.bits))
    with pytest.raises(IncompatibleError, match="shape"):
        estimate_pair(sketch, flip(PcsaSketch(SketchShape(64, 8)), 2))
    with pytest.raises(UsageError, match="confidence"):
        estimate_pair(sketch, sketch, confidence=0.5)
