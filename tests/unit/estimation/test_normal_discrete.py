"""The sum of a normal and a discrete Laplace variable: its law by sums of another kind, and limits that keep it."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from sfm_stream.estimation import normal_discrete, normal_laplace
from sfm_stream.estimation.intervals import Acceptance


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_the_law_is_the_mean_of_shifted_normal_laws(epsilon, share):
    a = math.exp(-epsilon)
    chance = {i: (1 - a) / (1 + a) * a ** abs(i) for i in range(-60, 61)}
    step = math.sqrt(share / sum(c * i * i for i, c in chance.items()))
    normal = NormalDist(0, math.sqrt(1 - share))
    for x in (-4.0, -1.0, 0.0, 0.3, 2.5):
        expected = sum(c * normal.cdf(x - step * i) for i, c in chance.items())
        found = normal_discrete.cdf(np.array([x]), np.array([share]), epsilon)
        assert found[0] == pytest.approx(expected, abs=1e-6)
    assert normal_discrete.step_of(np.array([share]), epsilon)[0] == pytest.approx(step)


@pytest.mark.parametrize("confidence", [0.68, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_the_limits_have_the_stated_probability_at_every_distance(confidence, epsilon):
    distance, share = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 6, 25), np.array([0.5, 0.9, 0.99])))
    h, z = normal_discrete.limits_above(distance, share, epsilon, confidence)
    accepted = Acceptance.of_limits(distance, h, z)
    lower = np.where(accepted.slope > 0, accepted.lift / np.maximum(accepted.slope, 1e-12), np.inf)
    tail = np.where(np.isfinite(lower), normal_discrete.cdf(-np.minimum(lower, 1e3), share, epsilon), 0.0)
    assert normal_discrete.cdf(h, share, epsilon) - tail == pytest.approx(confidence, abs=1e-4)
    assert (h <= z).all()


def test_a_pure_integer_is_covered_at_least_as_often_as_stated():
    """At n = 0 the count of epsilon 2 is 0 in 76 %, at most 0 in 88 % and at most 1 in 98 %: the limit is 1 step."""
    share = np.array([1.0 - 1e-7])
    h, _ = normal_discrete.limits_above(np.zeros(1), share, 2.0, 0.95)
    assert h[0] == pytest.approx(normal_discrete.step_of(share, 2.0)[0], rel=0.01)


def test_steps_that_nobody_sees_leave_the_continuous_law():
    x = np.linspace(-4, 4, 33)
    for epsilon, share in ((1.0, 0.35), (2.0, 0.1)):
        assert not normal_discrete.seen(np.array([share]), epsilon)[0]
        discrete = normal_discrete.cdf(x, np.full(33, share), epsilon)
        assert discrete == pytest.approx(normal_laplace.cdf(x, np.full(33, share)), abs=0.01)
    assert normal_discrete.seen(np.array([0.9]), 2.0)[0]
