"""The law of a score that holds a noisy count, against integration, and its acceptance limits."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from sfm_stream.estimation.intervals import Acceptance, two_sided_z
from sfm_stream.estimation.normal_laplace import cdf, limits_above


@pytest.mark.parametrize("share", [1e-4, 0.003, 0.1, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("x", [-5.0, -1.0, -0.01, 0.0, 0.3, 1.96, 4.0])
def test_the_distribution_is_the_convolution(share, x):
    scale, sigma = math.sqrt(share / 2), math.sqrt(1 - share)
    bend = x / sigma

    def given(u):
        return stats.norm.pdf(u) * stats.laplace.cdf(x - sigma * u, scale=scale)

    ends = sorted({-12.0, min(max(bend, -12.0), 12.0), 12.0})
    expected = sum(integrate.quad(given, *ends[i : i + 2], epsabs=1e-12, limit=400)[0] for i in range(len(ends) - 1))
    assert float(cdf(np.array([x]), np.array([share]))[0]) == pytest.approx(expected, abs=1e-8)


def test_its_ends_are_the_normal_and_the_laplace_distribution():
    x = np.linspace(-6, 6, 41)
    assert cdf(x, np.zeros(41)) == pytest.approx(stats.norm.cdf(x), abs=1e-7)
    assert cdf(x, np.ones(41)) == pytest.approx(stats.laplace.cdf(x, scale=math.sqrt(0.5)), abs=1e-7)


@pytest.mark.parametrize("confidence", [0.68, 0.9, 0.95, 0.999])
def test_acceptance_has_the_stated_probability_at_every_distance_and_share(confidence):
    distance, share = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 5, 37), np.linspace(0, 1, 23)))
    accepted = Acceptance.of_limits(distance, *limits_above(distance, share, confidence))
    lower = np.where(accepted.slope > 0, accepted.lift / np.maximum(accepted.slope, 1e-12), np.inf)
    tail = np.where(np.isfinite(lower), cdf(-np.minimum(lower, 1e3), share), 0.0)
    # The tables are read linearly, between 33 shares and 65 distances.
    assert cdf(accepted.above, share) - tail == pytest.approx(confidence, abs=1e-3)


def test_without_laplace_noise_the_limits_are_the_normal_ones():
    distance = np.linspace(0, 4, 50)
    h, z = limits_above(distance, np.zeros(50), 0.95)
    assert z == pytest.approx(two_sided_z(0.95), abs=1e-6)
    assert h == pytest.approx(Acceptance.at(distance, 0.95).above, abs=2e-3)
