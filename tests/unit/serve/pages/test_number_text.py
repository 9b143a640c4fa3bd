"""Numbers in words: what the interval allows, and no more."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from unit.serve.pages.answered import estimate

from sfm_stream.estimation.difference import difference
from sfm_stream.estimation.estimate import Status
from sfm_stream.serve.pages.number_text import share_text, written, written_difference


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (521.4, 503.7, 537.9, ("521", "503 to 538")),
        (10_234, 10_084, 10_384, ("10,230", "10,080 to 10,390")),
        (1_234_567, 1_200_000, 1_270_000, ("1,235,000", "1,200,000 to 1,270,000")),
        (3.2, 0.4, 7.1, ("3", "0 to 8")),
        (3000, 310, 24_200, ("3,000", "300 to 25,000")),
    ],
)
def test_an_estimate_is_rounded_to_two_digits_of_its_interval(value, low, high, said):
    found = written(estimate(value, low, high))
    assert (found.value, found.interval) == said
    assert not found.is_limit


@pytest.mark.parametrize(
    ("status", "value", "low", "high", "said"),
    [
        (Status.EMPTY, 3.0, 0.0, 12.2, "at most 13"),
        (Status.LOWER_BOUND, 40.0, 29.7, math.inf, "at least 29"),
        (Status.LOWER_BOUND, 4000.0, 2_978.0, math.inf, "at least 2,900"),
        (Status.SATURATED, 99_999.0, 1234.0, math.inf, "at least 1,200"),
        (Status.UNINFORMATIVE, 17.0, 0.0, math.inf, "not known"),
    ],
)
def test_where_a_limit_is_all_that_is_known_the_number_is_that_limit(status, value, low, high, said):
    found = written(estimate(value, low, high, status))
    assert found.value == said
    assert found.is_limit


def test_what_is_written_as_an_interval_holds_the_interval():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        low = 10 ** rng.uniform(-1, 7)
        high = low * (1 + 10 ** rng.uniform(-3, 1))
        value = rng.uniform(low, high)
        said = written(estimate(value, low, high))
        low_said, high_said, value_said = (
            int(text.replace(",", "")) for text in (*said.interval.split(" to "), said.value)
        )
        assert low_said <= low
        assert high <= high_said
        assert low_said <= value_said <= high_said
        # No wider than the rounding: a tenth of the half at each side, or one item.
        assert high_said - low_said <= (high - low) * 1.2 + 2 or low_said * 10 > low
        assert re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})*", said.value)


def test_a_difference_has_its_sign_and_one_without_limits_is_not_known():
    known = written_difference(difference(estimate(521, 504, 538), estimate(564, 546, 581)))
    assert known.value == "+43"
    assert known.interval.startswith("+1")
    fewer = written_difference(difference(estimate(564, 546, 581), estimate(521, 504, 538)))
    assert fewer.value == "\u221243"
    nothing = estimate(0, 0, math.inf, Status.UNINFORMATIVE)
    assert written_difference(difference(nothing, nothing)).value == "not known"
    at_least = written_difference(difference(estimate(10, 5, 15), estimate(400, 300, math.inf, Status.LOWER_BOUND)))
    assert at_least.value.startswith("at least +2")
    at_most = written_difference(difference(estimate(400, 300, math.inf, Status.LOWER_BOUND), estimate(10, 5, 15)))
    assert at_most.value.startswith("at most \u22122")


def test_shares_have_two_digits_and_are_not_told_above_ten_times():
    assert [share_text(share) for share in (0.0141, 0.234, 1.8, 10.5, math.inf)] == [
        "1.4 %",
        "23 %",
        "180 %",
        "more than 1,000 %",
        "more than 1,000 %",
    ]
