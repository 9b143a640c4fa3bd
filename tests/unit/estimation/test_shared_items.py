"""What two tallies have in common: the signal of a cell, and the share that is found."""

import math

import numpy as np
import pytest
from reference.occupancy import count_law

from sfm_stream.estimation import shared_items
from sfm_stream.estimation.shared_items import CellSignal, shared_part
from sfm_stream.privacy.epsilon import flip_threshold_of
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.sfm import GRID
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.tally import Tally

SHAPE = SketchShape(1024, 16)


def tally_of(rng, windows, epsilon):
    """windows: lists of cells, each flipped on its own."""
    k, counts = flip_threshold_of(epsilon), np.zeros(SHAPE.cells, np.int32)
    for cells in windows:
        lit = np.zeros(SHAPE.cells, bool)
        lit[cells] = True
        counts += lit ^ (rng.random(SHAPE.cells) < k / GRID)
    return Tally(SHAPE, k, "h", len(windows), counts.reshape(SHAPE.levels, -1))


def cells_of(rng, n):
    level = rng.choice(SHAPE.levels, size=n, p=SHAPE.rho * SHAPE.buckets)
    return level * SHAPE.buckets + rng.integers(0, SHAPE.buckets, n)


@pytest.mark.parametrize(("releases", "epsilon"), [(1, 2), (6, 1), (6, 4), (24, 2), (300, 0.25), (600, 4)])
def test_the_signal_is_one_in_empty_cells_and_nearer_to_none_in_set_ones(releases, epsilon):
    k = flip_threshold_of(epsilon)
    x, doubt = shared_items._signal(Mechanism.flipping(k).channel, releases)
    assert np.isfinite(x).all()
    if releases > 64:  # the oracle is quadratic
        return
    law = count_law(releases, k / GRID)
    means = law @ x
    assert means[0] == pytest.approx(1.0)
    assert np.mean(means[1:] ** 2) < 1.0
    assert np.std(means[1:]) == pytest.approx(doubt)
    # Of all x with mean 1 it is the one with the least error over set cells plus 0.03 of its mean square.
    other = x + 0.01 * (np.arange(releases + 1) - law[0] @ np.arange(releases + 1))

    def cost(signal):
        return np.mean((law[1:] @ signal) ** 2) + 0.03 * law[0] @ signal**2

    assert cost(x) < cost(other / (law[0] @ other))


def test_with_little_noise_the_signal_is_that_of_the_moment():
    k = flip_threshold_of(12)
    x, doubt = shared_items._signal(Mechanism.flipping(k).channel, 3)
    assert x[0] == pytest.approx(1.0, abs=0.01)
    assert abs(count_law(3, k / GRID)[1:] @ x).max() < 0.05
    assert doubt < 0.05


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_the_shared_part_is_found(shared):
    """6000 items in three days of epsilon 4, 1500 in three hours of epsilon 3: twenty draws, to a tenth on average."""
    rng, found = np.random.default_rng(1), []
    for _ in range(20):
        days = cells_of(rng, 6000)
        hours = np.concatenate([days[: int(1500 * shared)], cells_of(rng, int(1500 * (1 - shared)))])
        rng.shuffle(hours)
        pair = tally_of(rng, np.split(days, 3), 4), tally_of(rng, np.split(hours, 3), 3)
        part = shared_part(pair, (6000.0, 1500.0))
        found.append((part.mean, part.variance))
    assert np.mean(found, axis=0)[0] == pytest.approx(shared, abs=0.1)
    assert all(0 <= mean <= 1 and variance > 0 for mean, variance in found)


def test_under_noise_the_part_is_half_and_may_be_anything():
    rng = np.random.default_rng(2)
    pair = tally_of(rng, [cells_of(rng, 2000)] * 3, 0.1), tally_of(rng, [cells_of(rng, 100)] * 3, 0.1)
    part = shared_part(pair, (2000.0, 100.0))
    assert part.mean == pytest.approx(0.5, abs=0.05)
    assert math.sqrt(part.variance) > 0.25


def test_both_orders_say_the_same():
    rng = np.random.default_rng(3)
    first, second = tally_of(rng, [cells_of(rng, 2000)] * 2, 2), tally_of(rng, [cells_of(rng, 900)] * 5, 1)
    one, other = shared_part((first, second), (2000.0, 900.0)), shared_part((second, first), (900.0, 2000.0))
    assert one.mean == pytest.approx(other.mean)
    assert one.variance == pytest.approx(other.variance)


def test_the_contrast_is_that_of_the_cells():
    """Every item in every window: set cells differ from empty ones by all that six set bits make."""
    rng = np.random.default_rng(4)
    tally = tally_of(rng, [cells_of(rng, 3000)] * 6, 3)
    x, _ = shared_items._signal(Mechanism.flipping(tally.flip_threshold).channel, 6)
    law = count_law(6, tally.flip_threshold / GRID)
    assert CellSignal.of(tally, 3000.0).contrast == pytest.approx(1.0 - law[6] @ x, abs=0.05)
