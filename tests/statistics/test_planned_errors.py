"""Planned errors against simulated releases: of one release with its count, and of unions that share no item.

Bounds as in test_with_count.py: 4.5 standard deviations of the Monte-Carlo error of a root mean square (kurtosis of
Laplace noise allowed for), and the bias of second order, sigma / n. Seeds are fixed.
"""

import math
from decimal import Decimal

import numpy as np
import pytest
from reference.occupancy import level_probabilities, lit_cells, noisy_ones

from sfm_stream.estimation import with_count
from sfm_stream.estimation.union import moment_estimate
from sfm_stream.planning.level import Level
from sfm_stream.sketch.shape import SketchShape

TRIALS = 400
BOUND = 4.5 * math.sqrt(2.5) / math.sqrt(2 * TRIALS)


def rms(values):
    return math.sqrt(np.mean(np.square(values)))


@pytest.mark.parametrize(("epsilon", "share", "n"), [("1", "0.1", 300), ("0.5", "0.2", 5_000), ("2", "0.5", 40)])
def test_one_release_is_as_wrong_as_planned(epsilon, share, n):
    shape = SketchShape(1024, 20)
    planned = Level.of(shape, Decimal(epsilon), Decimal(share))
    rng = np.random.default_rng([1, n])
    ratio = math.exp(-planned.count_epsilon)
    errors = []
    for _ in range(TRIALS):
        cells = lit_cells(rng, 1024, 20, n)
        count = int(cells.sum()) + int(rng.geometric(1 - ratio)) - int(rng.geometric(1 - ratio))
        ones = noisy_ones(rng, cells, 1024, planned.channel.q)
        solved = with_count.solve(shape, planned.channel, ones, count, planned.count_epsilon, 0.95)
        errors.append(solved.unclamped / n - 1)
    expected = planned.relative_error(n)
    assert abs(rms(errors) / expected - 1) < BOUND + expected


def histogram(rng, shape, q, n, windows):
    """Shape (levels, windows + 1): cells with c ones, of n items each in one window."""
    ones = np.zeros((shape.levels, shape.buckets), np.int64)
    for items in rng.multinomial(n, np.full(windows, 1 / windows)):
        bits = np.zeros((shape.levels, shape.buckets), bool)
        for j, thrown in enumerate(rng.multinomial(items, level_probabilities(shape.levels))):
            bits[j, rng.integers(0, shape.buckets, thrown)] = True
        ones += bits ^ (rng.random(bits.shape) < q)
    return np.array([np.bincount(row, minlength=windows + 1) for row in ones])


@pytest.mark.parametrize(
    ("epsilon", "share", "windows", "n"), [("2", "0", 4, 3_000), ("2", "0.2", 6, 20_000), ("4", "0.1", 24, 5_000)]
)
def test_a_union_is_as_wrong_as_planned(epsilon, share, windows, n):
    shape = SketchShape(512, 16)
    planned = Level.of(shape, Decimal(epsilon), Decimal(share), windows)
    rng = np.random.default_rng([2, n, windows])
    squares = np.full((TRIALS, 16), float(moment_estimate.set_square(planned.channel, windows, np.array([1]))[0]))
    counts = [histogram(rng, shape, planned.channel.q, n, windows) for _ in range(TRIALS)]
    found = moment_estimate.solve_many(shape, planned.channel, counts, squares, 0.95)
    errors = [each.unclamped / n - 1 for each in found]
    expected = planned.relative_error(n)
    assert expected < 0.3
    assert abs(rms(errors) / expected - 1) < BOUND + expected
