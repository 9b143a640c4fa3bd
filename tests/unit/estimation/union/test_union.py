"""The likelihood of a tally: hypotheses of overlap by enumeration, its slope by differences, its fit on exact data."""

import math
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest
from reference import likelihood_oracle as oracle
from reference.occupancy import count_law

from sfm_stream.estimation.score import Scores, Solution
from sfm_stream.estimation.union import mixture_estimate, moment_estimate, overlap_hypotheses, union
from sfm_stream.estimation.union.assumed_overlap import AssumedOverlap
from sfm_stream.estimation.union.mixture_point import Point, Rows
from sfm_stream.sketch.mechanism import Channel
from sfm_stream.sketch.sfm import NoisyCount
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.sketch.window_sizes import WindowSizes

SHAPE = SketchShape(64, 16)


def channel_of(epsilon):
    q = 1 / (math.exp(epsilon) + 1)
    return Channel(q, q, math.tanh(epsilon / 2))


@pytest.mark.parametrize(("releases", "active"), [(4, 4), (6, 4), (5, 1)])
def test_one_more_item_lights_what_enumeration_says(releases, active):
    laws = overlap_hypotheses._one_more_item(np.arange(releases + 1), np.arange(1, active + 1))
    for activity in range(1, active + 1):
        choices = [set(choice) for choice in combinations(range(active), activity)]
        for m in range(active + 1):
            counts = np.bincount([len(choice | set(range(m))) for choice in choices], minlength=releases + 1)
            assert laws[activity - 1, m] == pytest.approx(counts / len(choices), abs=1e-12)
        for m in range(active + 1, releases + 1):
            assert laws[activity - 1, m, m] == 1.0


@pytest.mark.parametrize("releases", [1, 2, 3, 8, 24, 200])
def test_every_kind_is_a_law_that_adds_at_least_one_window_to_none(releases):
    found = overlap_hypotheses.overlap_hypotheses(channel_of(2), releases)
    (hypotheses, kinds), (states, columns) = found.used.shape, found.counts.shape
    added = found.added.reshape(hypotheses, states, states, kinds).transpose(0, 3, 1, 2)
    added_counts = found.added_counts.reshape(hypotheses, kinds, columns, states)
    assert added[found.used].sum(axis=-1) == pytest.approx(1.0)
    assert added.min() >= 0.0
    assert added[found.used][:, 0, 0] == pytest.approx(0.0)
    assert added_counts[found.used].sum(axis=1) == pytest.approx(1.0)
    # Once, for all that have it; everywhere, for all.
    assert (added[1:, 0, 0, 1] == 1.0).all()
    assert (added[:, :, 0, -1].max(axis=1) == 1.0).all()


@pytest.mark.parametrize("active", [2, 3, 5, 8, 24, 64])
def test_kinds_reach_every_activity_once_over(active):
    kinds = overlap_hypotheses._kinds(np.arange(1, active + 1)) * np.arange(1, active + 1.0) ** 2
    assert (kinds[0] > 0).nonzero()[0].tolist() == [0]
    assert (kinds[-1] > 0).nonzero()[0].tolist() == [active - 1]
    assert kinds.min() >= 0.0
    # Hats add up to 1 between their outer tops, and fall towards the two ends.
    total = kinds.sum(axis=0)
    assert total.max() == pytest.approx(1.0)
    assert total[1 : active // 2].min(initial=1.0) == pytest.approx(1.0)
    assert total.min() > 0.0


def point_of(releases=5, epsilon=1.5, seed=5):
    rng = np.random.default_rng(seed)
    found = overlap_hypotheses.overlap_hypotheses(channel_of(epsilon), releases)
    histogram = rng.integers(1, 40, (16, releases + 1))
    levels = mixture_estimate.Levels.near(SHAPE, found, histogram, 150.0)
    data = Rows.of(levels.rate, levels.counts, levels.buckets, found)
    log_items = math.log(150) + rng.normal(-2, 1, found.used.shape)
    return found, histogram, data, log_items


def test_the_height_is_likelihood_and_prior():
    found, histogram, data, log_items = point_of()
    at = Point.at(data, log_items)
    used = np.flatnonzero(np.isin(-np.log1p(-SHAPE.rho), data.rate[0])).tolist()
    law = count_law(5, channel_of(1.5).q)
    for h, kinds in enumerate(found.used):
        lit = at.set_windows[h, 1:, 1:]
        expected = oracle.tally_log_likelihood(64, 16, law, lit, histogram, float(at.n[h]), used)
        share = np.exp(log_items[h, kinds]) / at.n[h]
        expected += overlap_hypotheses.SHARE_WEIGHT * float(np.log(share).sum())
        bent = np.diff((log_items[h] - found.expected_log_share[h])[: kinds.sum()], 2)
        if found.bend[h].any():
            # w = 5: once, hats at 2 and 4, throughout; its one bend is that of the first three.
            deviation = found.bend[h, 0, 0] ** -0.5
            expected -= 0.5 * float(bent[0] / deviation) ** 2
        assert at.height[h] == pytest.approx(expected, rel=1e-9)


def test_the_slope_is_the_derivative_of_the_height():
    _, _, data, log_items = point_of()
    gradient, curvature = Point.at(data, log_items).slope(data)
    for kind in range(log_items.shape[1]):
        step = np.zeros_like(log_items)
        step[:, kind] = 1e-5
        above, below = (Point.at(data, log_items + sign * step).height for sign in (1, -1))
        assert gradient[:, kind] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-3)
    assert curvature == pytest.approx(curvature.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(curvature).min() > 0.0


def exact_histogram(channel, releases, n, chances):
    """Expected counts, a million times a sketch so that rounding does not matter, by inclusion and exclusion.

    chances: of each set of windows, as a bit mask, to be that of an item.
    """
    law, masks = count_law(releases, channel.q), np.arange(1 << releases)
    within = np.array([sum(chance for mask, chance in chances.items() if not mask & ~outer) for outer in masks])
    lit = np.array([int(mask).bit_count() for mask in masks])
    rows = []
    for rate in -n * np.log1p(-SHAPE.rho):
        # Pr(the lit windows are among these), from which Pr(they are just these) by Moebius inversion, bit by bit.
        among = np.exp(-rate * (1 - within))
        for bit in range(releases):
            holds = masks & 1 << bit > 0
            among[holds] -= among[masks[holds] ^ 1 << bit]
        rows.append(np.bincount(lit, among, releases + 1) @ law)
    return np.rint(1e6 * SHAPE.buckets * np.array(rows)).astype(np.int64)


WHOLE, ONES = 0b111111, [1 << window for window in range(6)]
OVERLAPS = {
    "disjoint": {mask: 1 / 6 for mask in ONES},
    "same": {WHOLE: 1.0},
    "half": {WHOLE: 0.5} | {mask: 0.5 / 6 for mask in ONES},
    "one": {0b1: 1.0},
    "half in one": {WHOLE: 0.5, 0b1: 0.5},
    "half of the windows": {0b1: 0.2, 0b10: 0.2, 0b100: 0.2, 0b111: 0.4},
    "sizes one to four": {0b1: 0.05, 0b10: 0.1, 0b100: 0.15, 0b1000: 0.2, 0b10000: 0.25, 0b100000: 0.25},
}


@pytest.mark.parametrize("chances", OVERLAPS.values(), ids=OVERLAPS)
def test_the_fit_finds_n_from_expected_counts(chances):
    channel = channel_of(3)
    histogram = exact_histogram(channel, 6, 400.0, chances)
    assert histogram.sum() == pytest.approx(1e6 * 16 * 64)
    found = mixture_estimate.fit(SHAPE, overlap_hypotheses.overlap_hypotheses(channel, 6), histogram, 300.0)
    assert found.n == pytest.approx(400, rel=0.02)
    assert found.set_windows.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("start", [4.0, 40.0, 40_000.0])
def test_the_fit_forgets_where_it_started(start):
    channel = channel_of(2)
    histogram = exact_histogram(channel, 6, 400.0, OVERLAPS["half"]) // 10_000
    near = mixture_estimate.fit(SHAPE, overlap_hypotheses.overlap_hypotheses(channel, 6), histogram, 400.0).n
    assert mixture_estimate.fit(
        SHAPE, overlap_hypotheses.overlap_hypotheses(channel, 6), histogram, start
    ).n == pytest.approx(near, rel=0.02)


def strange_histograms(buckets, levels, releases):
    rng, rows = np.random.default_rng(1), np.eye(releases + 1, dtype=np.int64)
    yield rows[[0] * levels] * buckets
    yield rows[[releases] * levels] * buckets
    yield rows[rng.integers(0, releases + 1, levels)] * buckets
    yield rng.multinomial(buckets, np.ones(releases + 1) / (releases + 1), levels)
    yield rng.multinomial(buckets, (rows[0] + rows[releases]) / 2, levels)


@pytest.mark.parametrize("releases", [2, 7, 70])
@pytest.mark.parametrize("epsilon", [0.01, 1, 6, 27])
@pytest.mark.parametrize("size", [(16, 2), (256, 48)])
def test_every_histogram_has_an_estimate(size, epsilon, releases):
    rng = np.random.default_rng(2)
    for number, histogram in enumerate(strange_histograms(*size, releases), start=releases):
        ones = rng.integers(0, size[0] + 1, (releases, size[1]))
        counts = tuple(None if i % 3 else NoisyCount(int(c), Decimal("0.1")) for i, c in enumerate(ones[:, 0] - 9))
        sizes = (None, WindowSizes(ones, counts), WindowSizes(ones * 0, (None,) * releases))[number % 3]
        found = union.solve(SketchShape(*size), channel_of(epsilon), histogram, 0.95, sizes)
        assert 0 <= found.low <= found.value <= found.high
        assert math.isfinite(found.value)
        assert not math.isnan(found.standard_error + found.unclamped)


def solution(value, low, high):
    return Solution(value, value, 50.0, low, high)


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (500, 300, 700, (400, 600, 500)),
        (500, 450, 550, (450, 550, 500)),
        (650, 550, 800, (550, 600, 600)),
        (100, 50, 200, (400, 600, 400)),
        (500, 0, math.inf, (400, 600, 500)),
    ],
)
def test_the_interval_is_what_moment_and_bounds_share_or_the_bounds(value, low, high, expected):
    assert union._bounded(solution(value, low, high), 400.0, 600.0) == expected
    assert union._bounded(solution(value, low, high), 600.0, 400.0)[1] >= 600.0


def test_the_value_leaves_a_mixture_that_is_uncertain_or_does_not_fit():
    def between(variance, misfit):
        return union._between(solution(1000, 900, 1100), AssumedOverlap(1100.0, variance, misfit))

    assert between(0.0, -2.0) == 1100
    assert between(2500.0, 0.0) == 1050
    assert between(0.0, 1.0) == pytest.approx(1000 + 100 * 2500 / (2500 + 11**2))
    assert between(100.0, 500.0) == pytest.approx(1004, abs=1)


def test_a_moment_that_is_far_too_low_does_not_claim_to_be_precise():
    """Eq. 19 takes the error of the moment where the mixture is, if that is the larger one."""
    shape, channel, squares = SketchShape(4096, 24), channel_of(1), np.ones((3, 24))
    low, there, beyond = moment_estimate.standard_errors(shape, channel, 8, squares, np.array([4e4, 1e5, 1e30]))
    assert beyond > there > 2 * low


def test_the_grid_of_the_moment_has_the_scores_of_each_signal():
    shape, channel, releases = SketchShape(256, 16), channel_of(2), 6
    squares = np.random.default_rng(1).uniform(0.01, 9.0, (3, 16))
    sums, grid = shape.sizes * np.linspace(0.1, 1.1, 16), moment_estimate._grid(shape, channel, releases)
    values = grid.n[[0, 100, -1]] + [0.0, 0.1, 0.0]
    found = grid.bias(squares, values)
    for square, value, bias in zip(squares, values, found, strict=True):
        expected = Scores.at(moment_estimate.signal_of(shape, channel, releases, square), grid.n)
        score, distance, spread, error = grid.scores(square, sums)
        assert score == pytest.approx(expected.of(sums), rel=1e-9, abs=1e-9)
        assert distance == pytest.approx(expected.distance, rel=1e-9, abs=1e-9)
        assert spread == pytest.approx(expected.spread, rel=1e-9)
        assert error == pytest.approx(expected.standard_error, rel=1e-9)
        assert bias == pytest.approx(np.interp(value, expected.n, expected.bias), rel=1e-6)
