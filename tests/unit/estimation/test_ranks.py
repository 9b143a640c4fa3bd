"""Ranks that intervals leave open."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.naive_ranks import naive_ranks
from scipy.stats import norm

from sfm_stream.estimation.estimate import Estimate, Status
from sfm_stream.estimation.ranks import rank_ranges, simultaneous_limits


def known(value, low, high, error=3.0):
    return Estimate(value, error, low, high, Status.OK, unclamped=value)


sizes = st.integers(0, 60)
estimates = st.builds(
    lambda value, below, above, endless: known(value, max(value - below, 0), math.inf if endless else value + above),
    sizes,
    sizes,
    sizes,
    st.booleans(),
)


@given(st.lists(estimates, max_size=12))
def test_they_are_those_of_every_pair(found):
    ranges = [(each.low, each.high) for each in rank_ranges(found)]
    wide = list(zip(*(limits.tolist() for limits in simultaneous_limits(found)), strict=True)) if found else []
    assert ranges == naive_ranks(wide)
    assert all(1 <= low <= high <= len(found) for low, high in ranges)


def test_limits_are_widened_by_bonferroni_and_none_below_0():
    lows, highs = simultaneous_limits([known(100, 80, 130), known(5, 1, 9), *[known(1000, 900, 1100)] * 8])
    wider = norm.isf(0.05 / 20) / norm.isf(0.025)
    assert np.allclose(lows, [100 - 20 * wider, 5 - 4 * wider if wider < 1.25 else 0, *[1000 - 100 * wider] * 8])
    assert np.allclose(highs, [100 + 30 * wider, 5 + 4 * wider, *[1000 + 100 * wider] * 8])


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_where_errors_are_whole_items_limits_reach_as_far_as_such_an_error(epsilon):
    """1,000 counts of this epsilon, whose 95 % intervals are a part of an item wide: by the sum of the law itself."""
    a = math.exp(-epsilon)
    error = math.sqrt(2 * a) / (1 - a)
    (low, *_), (high, *_) = simultaneous_limits([known(50, 49.75, 50.25, error)] * 1000)
    beyond = [a ** (k + 1) / (1 + a) for k in range(40)]
    steps = next(k for k, tail in enumerate(beyond) if tail <= 0.05 / 2000)
    assert (low, high) == (50 - 0.25 - steps, 50 + 0.25 + steps)


def test_one_set_has_the_first_rank_and_its_own_interval():
    (only,) = rank_ranges([known(5, 0, math.inf)])
    assert (only.low, only.high) == (1, 1)
    lows, highs = simultaneous_limits([known(100, 80, 130)])
    assert np.allclose((lows[0], highs[0]), (80, 130))
