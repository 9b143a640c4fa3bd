"""The sizes of a tally's windows: as `estimate` finds each by itself, and what they bound."""

import math
from decimal import Decimal

import numpy as np
import pytest

from sfm_stream.estimation.estimate import channel_of, estimate
from sfm_stream.estimation.union.size_estimates import SizeEstimates, limit
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.sfm import GRID, NoisyCount, SfmSketch
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes

SHAPE = SketchShape(256, 16)


def release(rng, epsilon, n, count_epsilon=None):
    threshold = flip_threshold_of(epsilon)
    lit = 1 - (1 - SHAPE.rho[:, None]) ** n > rng.random((16, 256))
    noisy = lit ^ (rng.random(lit.shape) < threshold / GRID)
    noise = int(rng.integers(-9, 9))
    count = NoisyCount(int(lit.sum()) + noise, Decimal(count_epsilon)) if count_epsilon else None
    return SfmSketch(SHAPE, threshold, "h", np.packbits(noisy, bitorder="little").tobytes(), count)


def sizes_of(sketches):
    return SizeEstimates.of(SHAPE, channel_of(sketches[0].flip_threshold), [WindowSizes.of(sketches)], 0.95)


@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_each_size_is_the_estimate_of_its_release_alone(epsilon):
    rng = np.random.default_rng(3)
    budgets = [None, "0.1", "0.5", None]
    sketches = [release(rng, epsilon, n, b) for n in (0, 10, 300, 9000, 10**6, 10**9) for b in budgets]
    found = sizes_of(sketches)
    alone = sorted((e.unclamped, e.standard_error) for e in map(estimate, sketches))
    of_tally = sorted(zip(found.values[0].tolist(), found.errors[0].tolist(), strict=True))
    for (value, error), (expected, stated) in zip(of_tally, alone, strict=True):
        assert abs(value - expected) < stated / 30
        assert error == pytest.approx(stated, rel=0.01)
    assert (found.laplace_share > 0).sum() == sum(budget is not None for budget in budgets) * 6


def test_limits_are_the_quantiles_of_the_normal_and_of_the_laplace_law():
    assert limit(0.025, 0.0) == pytest.approx(1.959964, abs=1e-4)
    assert limit(0.0005, 1.0) == pytest.approx(math.log(1 / 0.001) / math.sqrt(2), abs=1e-4)
    assert limit(0.0005, 0.0) < limit(0.0005, 0.3) < limit(0.0005, 1.0)


def given(values, errors, jumps=0.0):
    values, errors = np.array([values], float), np.array([errors], float)
    zeros = np.zeros_like(values)
    flat = sizes_of([release(np.random.default_rng(1), 2, 5)]).tables[0][1]
    return SizeEstimates(values, errors, zeros, zeros + jumps, zeros - 50.0, ((errors > 0.0, flat),))


def test_the_largest_window_is_a_lower_bound_at_one_confidence_for_all():
    found = given([50, 1000, 990], [10, 20, 5])
    z = limit(0.005 / 3, 0.0)
    assert z == pytest.approx(2.935, abs=0.001)
    assert found.largest_low(0.005) == pytest.approx(990 - 5 * z)
    assert given([-30, 4], [10, 10]).largest_low(0.005) == 0.0
    assert given([1000], [10], jumps=6.0).largest_low(0.025) == pytest.approx(
        1000 - 19.59964 - 1.959964**2 + 1, abs=0.01
    )


def test_the_sum_is_an_upper_bound_with_the_errors_at_the_bound():
    rng = np.random.default_rng(7)
    found = sizes_of([release(rng, 1, n) for n in (3000, 200, 0, 80, 0, 40)])
    high, z = found.total_high(0.005), limit(0.005, 0.0)
    assert high > found.total + z * found.total_error
    assert high < found.total + 2 * z * found.total_error
    at_limit = found._error_at(
        np.maximum(found.values, 0) + (high - found.total) * found.errors**2 / found.total_error**2
    )
    skew = (z**2 - 1) / 6 * found.jumps.max()
    assert high == pytest.approx(found.total + z * at_limit + skew, rel=0.01)
    assert sizes_of([release(rng, 1, 0) for _ in range(9)]).total_high(0.005) > 0.0


def test_a_full_window_leaves_no_upper_bound():
    rng = np.random.default_rng(2)
    assert math.isinf(sizes_of([release(rng, 2, n) for n in (100, 10**12)]).total_high(0.005)[0])
    assert math.isfinite(sizes_of([release(rng, 2, n) for n in (100, 10**5)]).total_high(0.005)[0])


def test_differences_that_are_noise_are_evened():
    assert given([100, 104, 97, 99], [10] * 4).evened()[0] == pytest.approx([100] * 4)
    (kept,) = given([1000, 10, 20, 5], [10] * 4).evened()
    assert kept == pytest.approx([1000, 10, 20, 5], abs=0.5)
    assert given([100, -50, 10, 0], [1] * 4).evened().min() == 0.0
