"""Unions of two epsilons, simulated: what hours add to days is seen in the cells that both have.

The bounds: the sum of 16 squared normal errors is at most 2.46 times its mean in all but 1 of 1000 trials.
"""

import numpy as np
import pytest

from benchmarks.union_patterns import tally
from sfm_stream.estimation.estimate import estimate
from sfm_stream.estimation.mixed_union import estimate_union
from sfm_stream.sketch.shape import SketchShape

SHAPE, TRIALS = SketchShape(4096, 24), 16
DAYS, HOURS = 6, 6


def cells_of(items, cell):
    lit = np.zeros(SHAPE.cells, bool)
    lit[cell[items]] = True
    return lit


def simulated(known):
    """(days, hours, items of both) of each trial. known: the part of the hours' items that is in every day."""
    for seed in range(TRIALS):
        rng = np.random.default_rng([seed, round(10 * known)])
        level = rng.choice(SHAPE.levels, size=40_000, p=SHAPE.rho * SHAPE.buckets)
        cell, core, old = (
            level * SHAPE.buckets + rng.integers(0, SHAPE.buckets, 40_000),
            np.arange(6000),
            round(800 * known),
        )
        days = [np.append(core, np.arange(6000 + 3000 * day, 9000 + 3000 * day)) for day in range(DAYS)]
        hours = [
            np.append(core[hour * 800 : hour * 800 + old], np.arange(30_000 + hour * 800, 30_800 + hour * 800 - old))
            for hour in range(HOURS)
        ]
        groups = [
            tally(rng, SHAPE, np.array([cells_of(items, cell) for items in windows]), epsilon, 0.1)
            for windows, epsilon in ((days, 2.0), (hours, 1.0))
        ]
        yield *groups, len(np.unique(np.concatenate([*days, *hours])))


@pytest.mark.parametrize(("known", "largest"), [(1.0, 5), (0.0, 6), (0.5, 7)])
def test_more_data_do_not_make_the_answer_worse(known, largest):
    """`largest`: a root mean square error in %. With half of the hours taken as new: 7 where none is."""
    errors, alone, covered = [], [], 0
    for days, hours, truth in simulated(known):
        found = estimate_union([days, hours])
        errors.append(found.value / truth - 1)
        alone.append(estimate(days).value / truth - 1)
        covered += found.low <= truth <= found.high
    assert 1e4 * np.mean(np.square(errors)) < 2.46 * largest**2
    # Both errors are of the same sketches; 2 % of the union are allowed for where days have all of it.
    assert np.sqrt(np.mean(np.square(errors))) < np.sqrt(np.mean(np.square(alone))) + 0.02
    assert covered >= 13  # of 95 %: fewer in 1 of 1000 sets of draws
