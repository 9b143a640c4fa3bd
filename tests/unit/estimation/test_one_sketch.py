"""The numerical parts of the estimators against oracles that spell the formulas out."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import likelihood_oracle as oracle
from reference.occupancy import count_law

from benchmarks.paper.standard_errors import standard_errors
from sfm_stream.estimation import one_sketch
from sfm_stream.estimation.intervals import Acceptance, normal_limits
from sfm_stream.estimation.occupancy import Occupancy
from sfm_stream.estimation.score import Scores
from sfm_stream.estimation.union import moment_estimate
from sfm_stream.estimation.union.count_noise import MAX_SET_WINDOWS, count_noise
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

BIG = SketchShape(4096, 24)


def channel_of(epsilon):
    q = 1 / (math.exp(epsilon) + 1)
    return Channel(q, q, 1 - 2 * q)


@given(
    st.sampled_from([(16, 2), (16, 6), (64, 16), (256, 12)]),
    st.sampled_from([0.5, 1, 3, 7]),
    st.integers(0, 2**32),
    st.floats(0, 1),
)
@settings(max_examples=25)
def test_the_value_is_the_global_maximum_of_the_composite_likelihood(size, epsilon, seed, where):
    shape, channel = SketchShape(*size), channel_of(epsilon)
    n = math.expm1(where * math.log1p(shape.capacity / 10))
    lit = 1 - channel.q - channel.gap * (1 - shape.rho) ** n
    ones = np.random.default_rng(seed).binomial(shape.buckets, lit)
    found = one_sketch.solve(shape, channel, ones, 0.95).value
    best = oracle.maximum(*size, channel.q, ones.tolist(), shape.capacity)
    reached = oracle.log_likelihood(*size, channel.q, ones.tolist(), found)
    # Two maxima of equal height may swap; otherwise the height of the maximum is met to 1e-4, a hundredth of an error.
    assert reached >= oracle.log_likelihood(*size, channel.q, ones.tolist(), best) - 1e-4


@pytest.mark.parametrize("size", [(16, 2), (16, 10), (64, 16), (4096, 24)])
@pytest.mark.parametrize("epsilon", [0.5, 2, 8])
@pytest.mark.parametrize("n", [1, 7, 100, 3000])
def test_standard_errors_are_those_of_the_formulas(size, epsilon, n):
    if n * oracle.rho(*size)[-1] > 12:
        pytest.skip("full: no information and no error to speak of")
    channel = channel_of(epsilon)
    assert standard_errors(SketchShape(*size), channel, float(n)) == pytest.approx(
        oracle.standard_errors(*size, channel.q, n), rel=2e-4
    )


def test_standard_errors_have_the_published_figures():
    def sandwich(epsilon, n):
        return round(100 * standard_errors(BIG, channel_of(epsilon), n)[1] / n, 2)

    assert [sandwich(e, 1e6) for e in (0.5, 1, 2, 4)] == [5.27, 2.74, 1.57, 1.11]
    assert [sandwich(e, 1e3) for e in (8, 4, 3)] == [0.75, 2.11, 3.24]
    assert round(100 * standard_errors(BIG, channel_of(8), 1e3)[0] / 1e3, 2) == 3.25


@pytest.mark.parametrize("items", [1, 2])
def test_the_variance_of_the_score_is_exact(items):
    """Every way in which two items can fall on a 16x2 sketch, against the closed form."""
    weights, empty, lit = (0.7, -1.9), 0.3, 0.8
    mean, variance = oracle.score_moments(weights, 16, 2, empty, lit, items)
    cells = Occupancy.at(SketchShape(16, 2), np.array([float(items)]))
    g = cells.empty
    noisy = cells.variance_of(np.array([weights]), g * empty + (1 - g) * lit + g * (1 - g))
    assert mean == pytest.approx(float(np.sum(16 * np.array(weights) * g)), rel=1e-12)
    assert variance == pytest.approx(float(noisy[0]), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_the_bias_is_the_second_order_of_the_root(epsilon):
    """Eq. 41 from numerical derivatives of the score of eq. 5, and the second moments of the level sums of eq. 7."""
    layout, channel, n = SketchShape(64, 12), channel_of(epsilon), 90.0
    s0, s1 = channel.empty_variance, channel.set_square

    def mean_of(x):
        return layout.sizes * (1 - layout.rho) ** x

    def weights(x):
        g = (1 - layout.rho) ** x
        return g * np.log1p(-layout.rho) / (g * s0 + (1 - g) * s1 + g * (1 - g))

    def slope(function, h=1e-3):
        return (function(n + h) - function(n - h)) / (2 * h)

    def second(function, h=1e-2):
        return (function(n + h) - 2 * function(n) + function(n - h)) / h**2

    g = (1 - layout.rho) ** n
    covariance = Occupancy.at(layout, np.array([n])).covariance()[0] + np.diag(layout.sizes * (g * s0 + (1 - g) * s1))
    w, changed = weights(n), slope(weights)
    information = w @ slope(mean_of)
    bent = -2 * changed @ slope(mean_of) - w @ second(mean_of)
    expected = w @ covariance @ changed / information**2 + bent * (w @ covariance @ w) / (2 * information**3)
    found = Scores.at(one_sketch.signal_of(layout, channel), np.array([n])).bias[0]
    assert found == pytest.approx(expected, rel=1e-4)
    assert found > 0


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_near_the_capacity_the_expansion_is_not_believed(epsilon):
    scores, _ = one_sketch.table(SketchShape(64, 16), channel_of(epsilon), 0.95)
    assert np.all(np.abs(scores.bias) < 0.2501 * scores.standard_error)
    if epsilon < 4:
        assert scores.bias[-1] == 0


@pytest.mark.parametrize(
    ("x", "low", "high"), [(-3, 0, 0.26), (-2, 0, 0.40), (-1, 0, 0.81), (0, 0, 1.64), (1, 0, 2.64), (3, 1.37, 4.64)]
)
def test_limits_near_zero_are_those_of_feldman_and_cousins(x, low, high):
    """Phys. Rev. D 57 (1998) 3873, table X, 90 % confidence."""
    found = normal_limits(10.0 * x, 10.0, 0.9)
    assert found == (pytest.approx(10 * low, abs=0.06), pytest.approx(10 * high, abs=0.06))


@given(st.floats(0, 5), st.sampled_from([0.68, 0.9, 0.95, 0.999]))
def test_acceptance_has_the_stated_probability_at_every_distance(distance, confidence):
    accepted = Acceptance.at(np.array([distance]), confidence)
    h, slope, lift = (float(a[0]) for a in (accepted.above, accepted.slope, accepted.lift))

    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    below = phi(-lift / slope) if slope > 0 else 0.0
    # The table has steps of z / 256 and is read linearly.
    assert phi(h) - below == pytest.approx(confidence, abs=1e-4)


@pytest.mark.parametrize("releases", [1, 2, 5, 12])
def test_the_kernel_is_the_exact_convolution(releases):
    q = Fraction(3, 17)
    noise = count_noise(Channel(float(q), float(q), float(1 - 2 * q)), releases)
    rows = np.vstack([noise.never_set, noise.when_set])
    for m in range(releases + 1):
        law = [Fraction(1)]
        for chance in [1 - q] * m + [q] * (releases - m):
            law = [
                (law[c] * (1 - chance) if c < len(law) else 0) + (law[c - 1] * chance if c else 0)
                for c in range(len(law) + 1)
            ]
        assert rows[m] == pytest.approx([float(x) for x in law], rel=1e-10)


def test_the_noise_of_many_releases_is_thinned_but_keeps_both_ends():
    noise = count_noise(channel_of(4), 500)
    assert len(noise.set_windows) <= MAX_SET_WINDOWS + 1
    assert (noise.set_windows[0], noise.set_windows[-1]) == (1, 500)
    assert noise.when_set.sum(axis=1) == pytest.approx(np.ones(len(noise.set_windows)))


@pytest.mark.parametrize(("releases", "epsilon"), [(2, 1), (6, 1), (12, 2)])
def test_the_moment_is_unbiased_in_every_lit_state(releases, epsilon):
    """z averaged over the law of the counts is 1 where no window is lit and 0 where any is; its square as claimed."""
    channel = channel_of(epsilon)
    law = count_law(releases, channel.q)
    ones = np.arange(releases + 1)
    z = ((1 - channel.q) / channel.gap) ** (releases - ones) * (-channel.q / channel.gap) ** ones
    assert law @ z == pytest.approx(np.eye(releases + 1)[0], abs=1e-9)
    assert (law @ z**2)[1:] == pytest.approx(moment_estimate.set_square(channel, releases, ones[1:]), rel=1e-9)
    assert (law @ z**2)[0] == pytest.approx((1 + channel.empty_variance) ** releases, rel=1e-9)
