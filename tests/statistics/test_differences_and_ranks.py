"""Differences, ranks and unions of several keys, simulated with the programs of docs/accuracy.md.

Each bound on a number of trials that hold is broken with a probability of 1e-6 where coverage is what is promised, by
the binomial distribution; the seeds stay, so that it is broken always or never.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.differences import RANKED, covered, ranked
from benchmarks.joined_keys import run

FALSE_ALARM = 1e-6


def at_least(trials, coverage):
    return 100 * binom.ppf(FALSE_ALARM, trials, coverage) / trials


@pytest.mark.parametrize("sizes", [(0, 1000), (1000, 1000), (20_000, 22_000)])
def test_intervals_of_differences_hold_the_truth(sizes):
    """Also where one set is empty, where they promise less than they say: 92 %."""
    holds, said, wrong = covered(sizes, 1, 2.0, 100)
    assert holds >= at_least(100, 0.92)
    assert wrong <= 100 - at_least(100, 0.95)
    assert said > 90 or sizes[0] == sizes[1]


def test_differences_of_unions_hold_too():
    holds, _, wrong = covered((20_000, 22_000), 7, 4.0, 24)
    assert holds >= at_least(24, 0.95)
    assert wrong <= 100 - at_least(24, 0.95)


@pytest.mark.parametrize("name", ["all equal", "two groups"])
def test_every_rank_is_in_its_range_at_once(name):
    holds, median = ranked(RANKED[name], 2.0, 16)
    assert holds >= at_least(16, 0.95)
    assert median == (len(RANKED[name]) if name == "all equal" else len(RANKED[name]) // 2)


@pytest.mark.parametrize(("pattern", "error"), [("sections", 1.7), ("funnel", 1.7)])
def test_the_union_of_several_keys_over_several_windows(pattern, error):
    """error: a root mean square error in %; the sum of 12 squares is 2.8 times its mean once in 1000 times."""
    value, low, high = run(pattern, 3, 7, 4.0, 100_000, 12).T
    assert 1e4 * np.mean((value - 1) ** 2) < 2.8 * error**2
    assert 100 * np.mean((low <= 1) & (high >= 1)) >= at_least(12, 0.95)
