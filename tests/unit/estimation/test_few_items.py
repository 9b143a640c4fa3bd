"""The law of the score of few items: against simulated sketches, its limits, and where it has no part."""

import math
from functools import partial

import numpy as np
import pytest
from reference.occupancy import noisy_ones

from benchmarks.coverage import lit_of_many
from sfm_stream.estimation import one_sketch, with_count
from sfm_stream.estimation.law_of_few import Parts, limits
from sfm_stream.estimation.score import Scores, invert
from sfm_stream.methods.layouts import LiquidLegions
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

SKETCHES = 20_000


def channel_of(epsilon):
    q = 1 / (math.exp(epsilon) + 1)
    return Channel(q, q, 1 - 2 * q)


def parts_of(shape, epsilon, for_count, n):
    """(the parts of the scores of n and n + 1, these scores, their channel)."""
    channel = channel_of(epsilon - for_count)
    points = np.array([float(n), n + 1.0])
    if for_count:
        at = with_count.few(shape, channel, for_count, 0.95).scores
        at = Scores(points, at.weights[n : n + 2], at.offset[n : n + 2], *[at.distance[n : n + 2]] * 4)
    else:
        at = Scores.at(one_sketch.signal_of(shape, channel), points)
    return Parts.of(shape, channel, for_count, at), at, channel


@pytest.mark.parametrize(
    ("size", "epsilon", "for_count", "n"),
    [
        ((64, 16), 4, 0, 1),
        ((64, 16), 8, 0, 5),
        ((256, 24), 8, 0.4, 0),
        ((256, 24), 8, 1.6, 30),
        ((4096, 24), 8, 0, 0),
        ((4096, 24), 8, 4.0, 100),
        ((16384, 32), 6, 3.0, 300),
    ],
)
def test_the_law_is_that_of_simulated_sketches(size, epsilon, for_count, n):
    """The largest distance of two distribution functions. 20,000 sketches are off by 0.0096 once in 20,000 cases; what
    shares a cell is not quite independent of the rest, and steps are smoothed by 3 % of a deviation: 0.02 in all."""
    shape, rng = SketchShape(*size), np.random.default_rng([*size, n])
    parts, at, channel = parts_of(shape, epsilon, for_count, n)
    lit = lit_of_many(rng, *size, n, SKETCHES)
    sums = one_sketch.level_sums(shape, channel, noisy_ones(rng, lit, size[0], channel.q))
    if for_count:
        a = 1 - math.exp(-for_count)
        noise = rng.geometric(a, SKETCHES) - rng.geometric(a, SKETCHES)
        sums = with_count.with_rest(shape, sums, lit.sum(axis=1) + noise)
    score = sums @ at.weights[0] - at.offset[0]
    if parts.stepped:
        own, law = float(parts.smear[0]), parts.between(0, 1).stepped_law(parts.smear_law(0))
    else:
        own, law = 1.0, parts.law(0)
    smoothed = np.sort(score + 0.03 * own * rng.standard_normal(SKETCHES))[:: SKETCHES // 500]
    expected = np.array([law(np.array([x]))[0] for x in smoothed])
    assert np.abs(expected - np.arange(0, SKETCHES, SKETCHES // 500) / SKETCHES).max() < 0.02


@pytest.mark.parametrize("confidence", [0.68, 0.95, 0.999])
def test_the_limits_have_the_stated_probability_at_every_distance(confidence):
    parts, _, _ = parts_of(SketchShape(64, 16), 4, 0, 3)
    law, distance = parts.law(0), np.linspace(0, 6, 25)
    h, z = limits(law, distance, confidence)
    mu = np.minimum(distance, z)
    lower = np.where(mu > 0, mu / 2 + h**2 / (2 * np.maximum(mu, 1e-12)), 1e3)
    assert law(h) - law(-lower) == pytest.approx(confidence, abs=1e-3)
    assert (h <= z + 1e-3).all()


def test_where_noise_is_large_or_each_cell_is_a_group_there_is_no_such_law():
    assert one_sketch.few(SketchShape(4096, 24), channel_of(4), 0.95) is None
    assert with_count.few(SketchShape(4096, 24), channel_of(0.9), 0.1, 0.95) is None
    assert one_sketch.few(LiquidLegions(4096, 10.0), channel_of(8), 0.95) is None
    few = one_sketch.few(SketchShape(64, 16), channel_of(8), 0.95)
    assert (np.diff(few.scores.n) == 1).all()
    assert few.scores.n[0] == 0


def test_many_items_keep_their_limits_and_few_get_integers():
    shape, channel = SketchShape(256, 24), channel_of(4)
    few = with_count.few(shape, channel, 4.0, 0.95)
    scores, accepted = with_count.table(shape, channel, 4.0, 0.95)
    solve = partial(with_count.solve, shape, channel, epsilon=4.0, confidence=0.95)
    noise = np.rint(256 * channel.q) * np.ones(24, np.int64)

    def usual(ones, count):
        return invert(scores, accepted, with_count.with_rest(shape, one_sketch.level_sums(shape, channel, ones), count))

    much = noise.astype(np.int64) + np.array([200, 150, 80, 40, 20, 10, 5, 2, 1, 1, *[0] * 14])
    assert solve(much, 509) == usual(much, np.array(509))
    ones = noise.astype(np.int64) + np.array([5, 2, 1, 1, 1, *[0] * 19])
    exact, wide = solve(ones, 10), usual(ones, np.array(10))
    # Of ten items two share a cell in one sketch of 17, and the count is right in 96 of 100: 10 or 11 it must be.
    assert exact.low < 10 < exact.high < 12
    assert exact.low <= exact.value <= exact.high
    assert wide.value == exact.value
    assert few.scores.n[-1] > 11


def test_an_interval_between_two_integers_holds_the_value():
    """No item, a count of 0 and a few more ones than expected: neither 0 nor 1 is accepted."""
    shape, channel = SketchShape(4096, 24), channel_of(4)
    ones = np.full(24, round(4096 * channel.q)) + np.array([60, 40, 20, *[0] * 21])
    found = with_count.solve(shape, channel, ones, 0, 4.0, 0.95)
    assert 0 < found.low <= found.value <= found.high < 1
