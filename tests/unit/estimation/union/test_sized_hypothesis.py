"""The hypothesis that knows the sizes of the windows: its law by enumeration, its fit on expected counts."""

import math
from itertools import product

import numpy as np
import pytest
from reference.occupancy import count_law

from sfm_stream.estimation.union import mixture_estimate, sized_hypothesis
from sfm_stream.estimation.union.overlap_hypotheses import overlap_hypotheses
from sfm_stream.estimation.union.size_estimates import SizeEstimates
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.shape import SketchShape

SHAPE = SketchShape(64, 16)


def channel_of(epsilon):
    q = 1 / (math.exp(epsilon) + 1)
    return Channel(q, q, math.tanh(epsilon / 2))


def test_windows_in_which_a_cell_is_set_by_enumeration():
    rates, sizes = np.array([0.01, 0.002]), np.array([100.0, 40.0, 39.0, 5.0])
    found = sized_hypothesis._set_windows(rates[None], sizes[None])[:, 0]
    for row, phi in enumerate(sized_hypothesis._PHI):
        for level, rate in enumerate(rates):
            expected = np.zeros(5)
            # Independent groups of items: those nested in exactly the largest a windows, and those of one window.
            nested = -np.diff(np.append(phi * sizes, 0.0))
            for groups in product([False, True], repeat=8):
                chances = [1 - math.exp(-rate * n) for n in (*nested, *(1 - phi) * sizes)]
                chance = math.prod(c if hit else 1 - c for c, hit in zip(chances, groups, strict=True))
                deepest = max((a + 1 for a in range(4) if groups[a]), default=0)
                expected[len(set(range(deepest)) | {i for i in range(4) if groups[4 + i]})] += chance
            assert found[:, row, level] == pytest.approx(expected, abs=1e-12)


def sizes_of(values, error):
    values = np.array([values], float)
    zeros = np.zeros_like(values)
    return SizeEstimates(values, zeros + error, zeros, zeros, zeros - 50.0, ())


def expected_histogram(sizes, phi, releases, q):
    """A million times the expected counts; phi: one of the hypothesis."""
    rates = -np.log1p(-SHAPE.rho)
    row = int(np.abs(sized_hypothesis._PHI - phi).argmin())
    laws = sized_hypothesis._laws(rates[None], np.array([sizes], float), count_law(releases, q))[0, row]
    return np.rint(1e6 * SHAPE.buckets * laws).astype(np.int64)


@pytest.mark.parametrize(("phi", "union"), [(0.0, 500), (1.0, 400)], ids=["disjoint", "nested"])
def test_the_fit_finds_the_union_of_one_large_window_and_small_ones(phi, union):
    sizes, channel = [400, 50, 20, 20, 10], channel_of(3)
    histogram = expected_histogram(sizes, phi, 5, channel.q)
    levels = mixture_estimate.Levels.near(SHAPE, overlap_hypotheses(channel, 5), histogram, 450.0)
    found = sized_hypothesis.fit(levels, sizes_of(sizes, 1.0), count_law(5, channel.q))
    assert found.n[0] == pytest.approx(union, rel=0.002)
    assert levels.misfit(found.density)[0] < 0.0
    # The sum of a million sketches: what does not hold is far off.
    other = sized_hypothesis.fit(levels, sizes_of([100] * 5, 1.0), count_law(5, channel.q))
    assert levels.misfit(other.density) > 1000
    assert levels.log_likelihood(found.density) > levels.log_likelihood(other.density)


def test_windows_without_items_have_no_such_hypothesis():
    channel = channel_of(2)
    histogram = expected_histogram([1, 1], 0.0, 2, channel.q) // 10**6
    levels = mixture_estimate.Levels.near(SHAPE, overlap_hypotheses(channel, 2), histogram, 10.0)
    found = sized_hypothesis.fit(levels, sizes_of([-5, -1], 10.0), count_law(2, channel.q))
    assert found.log_evidence[0] == -math.inf
    assert found.n[0] == 0.0


def test_misfit_is_normal_for_counts_that_the_density_makes():
    """1,000 draws: mean 0 and variance 1 to 5 standard deviations; the statistic is a little skewed and wider."""
    rng, density = np.random.default_rng(1), count_law(6, channel_of(1).q)[[0, 2, 5]]
    counts = np.array([[rng.multinomial(4096, row) for row in density] for _ in range(1000)]).astype(float)
    found = mixture_estimate.Levels(4096.0, np.ones((1000, 3)), counts).misfit(density[None])
    assert abs(np.mean(found)) < 5 / math.sqrt(1000)
    assert 0.8 < np.var(found) < 1.4


def test_identical_windows_are_found_to_a_share_of_their_union_however_many():
    """Twelve windows of the same items: a prior whose width is the same at both ends of phi made this 3 % more."""
    sizes, channel = [400] * 12, channel_of(1)
    rates = -np.log1p(-SHAPE.rho)
    laws = sized_hypothesis._laws(rates[None], np.array([sizes], float), count_law(12, channel.q))[0, -1]
    histogram = np.rint(SHAPE.buckets * laws).astype(np.int64)
    levels = mixture_estimate.Levels.near(SHAPE, overlap_hypotheses(channel, 12), histogram, 400.0)
    found = sized_hypothesis.fit(levels, sizes_of(sizes, 20.0), count_law(12, channel.q))
    assert 400 <= found.n[0] < 400 * 1.02
