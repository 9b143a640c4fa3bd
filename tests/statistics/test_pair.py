"""Two sketches: intersection and differences with honest errors, and the covariances behind them by enumeration.

Seeded. Misses of 95 % intervals over N trials are Binomial(N, 0.05) if they are exact; the bounds leave out 0.0001 on
either side, so that one of the 52 judgements below raises a false alarm once in 100 seeds. Over all cells together
coverage of each part is within 93 .. 97 %, 3.3 standard deviations of 1,300 trials.
"""

import math
from functools import cache

import numpy as np
import pytest
from reference import pair_oracle as oracle
from scipy.stats import binom

from sfm_stream.errors import IncompatibleError, UsageError
from sfm_stream.estimation.estimate import Status, channel_of, estimate
from sfm_stream.estimation.pair import _Model, estimate_pair
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.privacy.flip import flip
from sfm_stream.sketch.raw import PcsaSketch
from sfm_stream.sketch.sfm import GRID, SfmSketch
from sfm_stream.sketch.shape import SketchShape

SHAPE, TRIALS = SketchShape(256, 16), 100
NAMES = ("both", "only_first", "only_second", "either")
DISJOINT, NESTED, EQUAL, HALF = (0, 2000, 2000), (2000, 0, 3000), (3000, 0, 0), (1000, 1000, 1000)
TINY, UNEQUAL, FEW = (20, 3000, 3000), (200, 100, 8000), (100, 60, 40)
CELLS = [
    *((parts, (2, 2)) for parts in (DISJOINT, NESTED, EQUAL, HALF, TINY, UNEQUAL)),
    *((parts, (1, 4)) for parts in (DISJOINT, HALF, UNEQUAL)),
    (HALF, (1, 1)),
    (NESTED, (4, 4)),
    (TINY, (4, 1)),
    (FEW, (4, 5)),
]
"""((both, only first, only second), (epsilon, epsilon))."""


def sketch_of(bits, epsilon, shape=SHAPE):
    return SfmSketch(shape, flip_threshold_of(epsilon), "xxh64", np.packbits(bits, bitorder="little").tobytes())


def simulated(rng, parts, epsilons, shape=SHAPE):
    qs = tuple(1 / (math.exp(e) + 1) for e in epsilons)
    noisy = oracle.noisy_pair(rng, shape.buckets, shape.levels, parts, qs)
    return [sketch_of(bits, epsilon, shape) for bits, epsilon in zip(noisy, epsilons, strict=True)]


def parts_of(found):
    return [getattr(found, name) for name in NAMES]


@cache
def measured(parts, epsilons):
    """Shape (TRIALS, 4, 4): unclamped, standard error, low, high of each part."""
    rng = np.random.default_rng([1, *parts, *epsilons])
    found = [parts_of(estimate_pair(*simulated(rng, parts, epsilons))) for _ in range(TRIALS)]
    return np.array([[(p.unclamped, p.standard_error, p.low, p.high) for p in one] for one in found])


def truths(parts):
    return np.array([*parts, sum(parts)], float)


def missed(parts, epsilons):
    """Shape (4,): intervals of each part that leave out the truth."""
    low, high = measured(parts, epsilons)[:, :, 2:].transpose(2, 0, 1)
    return ((low > truths(parts)) | (high < truths(parts))).sum(axis=0)


def stated_errors(parts, epsilons):
    """Shape (4,): the standard errors by the formula where the truth is `parts`."""
    model, at = _Model(SHAPE, *(channel_of(flip_threshold_of(e)) for e in epsilons)), np.array(parts, float)
    weights, information = model.weights(at)
    inverse = np.linalg.inv(information)
    covariance = inverse @ model.score_covariance(weights, at) @ inverse
    return np.sqrt([*np.diag(covariance), covariance.sum()])


@pytest.mark.parametrize(("parts", "epsilons"), CELLS, ids=str)
def test_parts_have_the_errors_they_report(parts, epsilons):
    """Bias, RMSE and reported error within 4.5 standard deviations of the formula, 5 % for what is of second order."""
    found, sigma = measured(parts, epsilons), stated_errors(parts, epsilons)
    errors = found[:, :, 0] - truths(parts)
    assert (np.abs(errors.mean(axis=0)) < (4.5 / math.sqrt(TRIALS) + 0.05) * sigma).all()
    rmse = np.sqrt((errors**2).mean(axis=0))
    assert (np.abs(rmse / sigma - 1) < 4.5 / math.sqrt(2 * TRIALS) + 0.05).all()
    assert np.median(found[:, :, 1], axis=0) == pytest.approx(sigma, rel=0.15)
    assert (missed(parts, epsilons) >= binom.ppf(0.0001, TRIALS, 0.05)).all()
    assert (missed(parts, epsilons) <= binom.ppf(0.9999, TRIALS, 0.05)).all()


def test_intervals_cover_as_often_as_they_say():
    coverage = 1 - sum(missed(*cell) for cell in CELLS) / (TRIALS * len(CELLS))
    assert (coverage > 0.93).all(), coverage
    assert (coverage < 0.97).all(), coverage


def test_errors_of_all_cells_together_are_as_stated():
    """1,300 trials: the bound is 4.5 standard deviations of a root mean square, and 3 % for what is of second order."""
    scaled = [(measured(*cell)[:, :, 0] - truths(cell[0])) / stated_errors(*cell) for cell in CELLS]
    rmse = np.sqrt(np.mean(np.concatenate(scaled) ** 2, axis=0))
    assert (np.abs(rmse - 1) < 4.5 / math.sqrt(2 * TRIALS * len(CELLS)) + 0.03).all(), rmse


# The covariances, over all placements of a few items


def assert_moments(kind, shape, parts):
    qs = (0.2, 0.125)
    model = kind(shape, *(channel_of(int(q * GRID)) for q in qs))
    at, buckets = np.array(parts, float), shape.buckets
    means = model.means(at)
    mean, covariance = oracle.moments(buckets, shape.levels, parts, qs)
    assert means[np.repeat(np.arange(shape.levels), buckets)] == pytest.approx(mean, rel=1e-9), "means"
    own, between = model.cell_covariance(means), model._between(means, at)
    for j in range(shape.levels):
        here = j * buckets
        assert own[j] == pytest.approx(covariance[here, :, here, :], rel=1e-9), "within a cell"
        for i in range(shape.levels):
            other = i * buckets + 1  # within a level, too, another cell
            assert between[j, i] == pytest.approx(covariance[here, :, other, :], rel=1e-6, abs=1e-15), "between cells"
    weights = np.random.default_rng(3).normal(size=(shape.levels, 3, 3))
    each = np.repeat(weights, buckets, axis=0)
    score = np.einsum("cpi,cidk,dqk->pq", each, covariance, each, optimize=True)
    assert model.score_covariance(weights, at) == pytest.approx(score, rel=1e-8), "of the score"


@pytest.mark.parametrize("parts", [(2, 0, 0), (0, 2, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)], ids=str)
def test_covariances_are_those_of_all_placements_of_two_items(parts):
    for shape in (SketchShape(16, 2), SketchShape(16, 3)):
        assert_moments(_Model, shape, parts)


def test_covariances_are_those_of_all_placements_of_three_items():
    assert_moments(_Model, SketchShape(16, 2), (1, 1, 1))


class CellsApart(_Model):
    """Cells as if they were independent, which the composite likelihood believes."""

    def _between(self, means, at):
        return np.zeros((len(means), len(means), 3, 3))


class SetsApart(_Model):
    """Sets as if they had no item in common."""

    def _between(self, means, at):
        found = super()._between(means, at)
        found[:, :, 0, 1] = found[:, :, 1, 0] = 0.0
        return found


class BitsApart(_Model):
    """Two bits of one cell as if they were independent."""

    def cell_covariance(self, means):
        found = super().cell_covariance(means)
        found[:, 0, 1] = found[:, 1, 0] = 0.0
        return found


class LevelTwice(_Model):
    """Within a level as many pairs of cells as between levels."""

    def score_covariance(self, weights, at):
        between = np.einsum(
            "jpi,jik,jqk->pq", weights, np.einsum("jjik->jik", self._between(self.means(at), at)), weights
        )
        return super().score_covariance(weights, at) + self.shape.buckets * between


@pytest.mark.parametrize(
    ("mutant", "problem"),
    [
        (CellsApart, "between cells"),
        (SetsApart, "between cells"),
        (BitsApart, "within a cell"),
        (LevelTwice, "of the score"),
    ],
)
def test_a_wrong_covariance_is_caught(mutant, problem):
    with pytest.raises(AssertionError, match=problem):
        assert_moments(mutant, SketchShape(16, 3), (1, 1, 0))


# Laws and edges


def test_swapping_the_sketches_swaps_the_differences():
    rng = np.random.default_rng(4)
    for parts, epsilons in (*CELLS, ((0, 0, 0), (2, 2)), ((5, 0, 1), (8, 16))):
        first, second = simulated(rng, parts, epsilons)
        there, back = estimate_pair(first, second), estimate_pair(second, first)
        scale = 1e-4 * (1 + there.either.standard_error)
        for mine, theirs in zip(NAMES, ("both", "only_second", "only_first", "either"), strict=True):
            one, other = getattr(there, mine), getattr(back, theirs)
            assert abs(one.unclamped - other.unclamped) < scale
            assert one.standard_error == pytest.approx(other.standard_error, rel=1e-3)
        assert there.epsilon == pytest.approx(back.epsilon)


def test_parts_add_up():
    found = estimate_pair(*simulated(np.random.default_rng(5), HALF, (2, 1)))
    assert found.both.unclamped + found.only_first.unclamped + found.only_second.unclamped == pytest.approx(
        found.either.unclamped
    )
    q = [1 / (math.exp(e) + 1) for e in (2, 1)]
    kept = math.prod((1 - 2 * x) / (1 - x) for x in q)
    assert found.epsilon == pytest.approx(-math.log(1 - kept))


def test_real_sketches_and_real_coins():
    """False alarms: six standard errors, 2e-9 two-sided for each of four parts."""
    column = np.arange(150_000)
    shape = SketchShape(4096, 24)
    first, second = (flip(PcsaSketch(shape).add(part), 2) for part in (column[:100_000], column[50_000:]))
    for part, truth in zip(parts_of(estimate_pair(first, second)), (5e4, 5e4, 5e4, 1.5e5), strict=True):
        assert abs(part.unclamped - truth) < 6 * part.standard_error
        assert part.standard_error < 4000


@pytest.mark.parametrize("shape", [SketchShape(16, 2), SketchShape(64, 8), SketchShape(256, 16)], ids=str)
def test_an_estimate_is_never_an_error_and_never_nan(shape):
    """Bits of any kind, epsilons from next to nothing to next to no noise: numpy's warnings are errors here."""
    rng = np.random.default_rng(6)
    for trial in range(45):
        epsilons = [float(e) for e in np.exp(rng.uniform(math.log(2**-10), math.log(16), 2))]
        sizes = np.expm1(rng.uniform(0, math.log(shape.capacity), 3)).astype(int) * (rng.random(3) < 0.8)
        if trial % 3 == 0:
            fill = rng.random((2, shape.levels, 1)) ** rng.integers(1, 6)
            noisy = (rng.random((2, shape.levels, shape.buckets)) < fill).reshape(2, -1)
        else:  # with noise, and as the bits were before it
            qs = [1 / (math.exp(e) + 1) if trial % 3 == 1 else 0.0 for e in epsilons]
            noisy = oracle.noisy_pair(rng, shape.buckets, shape.levels, tuple(map(int, np.minimum(sizes, 100_000))), qs)
        if np.array_equal(*noisy):
            continue  # two empty sets before noise: taken for one release and its copy, whatever their epsilons
        with np.errstate(all="raise", under="ignore"):
            found = estimate_pair(*(sketch_of(b, e, shape) for b, e in zip(noisy, epsilons, strict=True)))
        for part in parts_of(found):
            assert 0 <= part.low <= part.value <= part.high
            assert not math.isnan(part.unclamped)
            assert part.standard_error > 0


@pytest.mark.parametrize("parts", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (3, 2, 5)], ids=str)
@pytest.mark.parametrize("epsilons", [(16, 16), (12, 16)])
def test_a_handful_of_items_without_noise_is_counted(parts, epsilons):
    """Where the error is all but 0: cells of 4096 are hit twice by none of 10 items of this seed."""
    first, second = simulated(np.random.default_rng(7), parts, epsilons, SketchShape(4096, 24))
    for part, truth in zip(parts_of(estimate_pair(first, second)), truths(parts), strict=True):
        assert part.unclamped == pytest.approx(truth, abs=0.5)
        assert part.standard_error < 1.5


def test_an_error_that_rounds_to_less_than_nothing_is_a_small_one():
    """The variance of one item in both sets is smaller than the rounding of its terms, here and there below 0."""
    rng = np.random.default_rng(9)
    for shape in (SketchShape(16, 3), SketchShape(64, 8)):
        for parts in ((1, 0, 0), (0, 1, 0)) * 5:
            for part, truth in zip(
                parts_of(estimate_pair(*simulated(rng, parts, (16, 16), shape))), truths(parts), strict=True
            ):
                assert abs(part.unclamped - truth) < 0.01
                assert 0 < part.standard_error < 0.1


def test_what_says_nothing_is_uninformative():
    sketch = flip(PcsaSketch(SHAPE).add(range(1000)), 2)
    noise = SfmSketch(SHAPE, GRID // 2, "xxh64", bytes(SHAPE.nbytes))
    full = SfmSketch(SHAPE, sketch.flip_threshold, "xxh64", b"\xff" * SHAPE.nbytes)
    assert estimate(full).status is Status.SATURATED
    other = SfmSketch(SHAPE, GRID // 2, "xxh64", b"\x01" + bytes(SHAPE.nbytes - 1))
    for pair in ((sketch, noise), (full, sketch), (noise, other)):
        found = estimate_pair(*pair)
        assert all(part.status is Status.UNINFORMATIVE for part in parts_of(found))
        assert all(math.isinf(part.standard_error) and math.isinf(part.high) for part in parts_of(found))
    assert estimate_pair(sketch, noise).epsilon == 0.0


def test_what_does_not_fit_is_refused():
    sketch = flip(PcsaSketch(SHAPE).add(range(1000)), 2)
    with pytest.raises(IncompatibleError, match="pair: hash"):
        estimate_pair(sketch, SfmSketch(SHAPE, sketch.flip_threshold, "other", sketch.bits))
    with pytest.raises(IncompatibleError, match="pair: shape"):
        estimate_pair(sketch, flip(PcsaSketch(SketchShape(64, 8)), 2))
    with pytest.raises(UsageError, match="confidence"):
        estimate_pair(sketch, sketch, confidence=0.5)
    with pytest.raises(UsageError, match="pair: one release is there twice"):
        estimate_pair(sketch, sketch)


def test_confidence_widens_the_intervals():
    pair = simulated(np.random.default_rng(8), HALF, (2, 2))
    narrow, usual = estimate_pair(*pair, confidence=0.8), estimate_pair(*pair)
    for mine, theirs in zip(parts_of(narrow), parts_of(usual), strict=True):
        assert theirs.low < mine.low < mine.value < mine.high < theirs.high
        assert (mine.value, mine.confidence, theirs.confidence) == (theirs.value, 0.8, 0.95)
