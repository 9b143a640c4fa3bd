"""Differences of two estimates: the limits that follow from those of both, and nothing where nothing is known."""

from __future__ import annotations

import math

import pytest

from sfm_stream.errors import UsageError
from sfm_stream.estimation.difference import difference
from sfm_stream.estimation.estimate import NOTHING, Estimate, Status, judged, lower_bound, normal_estimate


def known(value, below, above, error=1.0, status=Status.OK):
    return Estimate(value, error, value - below, value + above, status, unclamped=value)


def test_the_limits_are_the_roots_of_the_sums_of_squares():
    """3-4-5 and 5-12-13: each end from the two distances that push the difference there."""
    found = difference(known(100, 5, 3, error=3), known(150, 4, 12, error=4))
    assert (found.value, found.standard_error) == (50, 5)
    assert (found.low, found.high) == (45, 63)
    turned = difference(known(150, 4, 12, error=4), known(100, 5, 3, error=3))
    assert (turned.value, turned.low, turned.high) == (-50, -63, -45)


@pytest.mark.parametrize(("second", "sign"), [(110, None), (130, 1), (70, -1)])
def test_the_sign_is_said_where_the_interval_has_one(second, sign):
    assert difference(known(100, 10, 10), known(second, 10, 10)).sign == sign


def test_normal_errors_give_the_normal_interval():
    first, second = (normal_estimate(value, 20.0, 0.95) for value in (1000.0, 1100.0))
    found = difference(first, second)
    assert found.high - found.value == pytest.approx(1.959964 * math.hypot(20, 20), rel=1e-4)


NOBODY, SATURATED = judged(NOTHING, 0.95), Estimate(900, 50, 800, math.inf, Status.SATURATED)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        (NOBODY, known(50, 10, 10), -math.inf, 60),
        (None, known(50, 10, 10), -math.inf, 60),
        (Estimate(500, math.inf, 0, math.inf, Status.UNINFORMATIVE), known(50, 10, 10), -math.inf, 60),
        (known(50, 10, 10), NOBODY, -60, math.inf),
        (known(50, 10, 10), None, -60, math.inf),
        (NOBODY, None, -math.inf, math.inf),
        (lower_bound(known(50, 3, 5)), known(100, 4, 4), -math.inf, 55),
        (known(100, 4, 4), lower_bound(known(50, 3, 5)), -55, math.inf),
        (lower_bound(known(50, 3, 5)), lower_bound(known(60, 3, 5)), -math.inf, math.inf),
        (SATURATED, known(100, 75, 75), -math.inf, 100 - 900 + 125),
    ],
)
def test_what_is_not_known_has_no_value_and_no_limit_on_its_side(first, second, low, high):
    found = difference(first, second)
    assert (found.value, found.standard_error) == (None, math.inf)
    assert (found.low, found.high) == (low, high)


def test_one_confidence_is_needed():
    with pytest.raises(UsageError, match="one confidence"):
        difference(normal_estimate(5.0, 1.0, 0.95), normal_estimate(5.0, 1.0, 0.99))
    with pytest.raises(UsageError, match="one confidence"):
        difference(None, None)
