"""What a plan chooses: within the budget, from what may be read again, and never worse than the obvious plan."""

import math
from decimal import Decimal

import pytest

from sfm_stream.errors import UsageError
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.planning.choice import SHARES, choose
from sfm_stream.planning.forecast import AnswerWorth, Assumptions, PlannedSpan, Selection, forecast
from sfm_stream.planning.questions import planned_question
from sfm_stream.sketch.shape import SketchShape

UTC, BERLIN, KOLKATA = (calendar(zone, 1, 0) for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata"))
HOUR, DAY, WEEK, MONTH = (
    ("hour", 200, 5_000),
    ("day", 2_000, 50_000),
    ("7d", 9_000, 200_000),
    ("month", 20_000, 500_000),
)
SHAPE = SketchShape(4096, 24)


def assumed(*asked, days=UTC, active=None, **more):
    return Assumptions(tuple(planned_question(*each) for each in asked), days, active, **more)


def plan(*asked, budget=2, reread="day", shape=None, **more):
    expected = assumed(*asked, **more)
    spans = choose(expected, Decimal(budget), reread, shape)
    return spans, forecast(spans, expected)


@pytest.mark.parametrize(
    ("budget", "active", "days", "selection"),
    [
        ("0.5", None, UTC, None),
        ("2.5", None, BERLIN, None),
        ("2.5", 4, BERLIN, Selection(Decimal("0.01"), Decimal("1e-9"))),
        ("1", 4, UTC, Selection(Decimal("0.01"), Decimal("1e-9"))),
        ("100", 4, UTC, None),
    ],
)
def test_a_person_pays_no_more_than_the_budget_and_nearly_all_of_it(budget, active, days, selection):
    spans, expected = plan(HOUR, DAY, WEEK, budget=budget, active=active, days=days, selection=selection)
    assert [span.name for span in spans] == ["hour", "day"]
    assert expected.epsilon_of_person <= Decimal(budget)
    if expected.spans[0].span.epsilon < 16:
        assert expected.epsilon_of_person > Decimal("0.8") * Decimal(budget)
    hours = 24 if days is UTC else 25
    price = spans[0].epsilon + (selection.epsilon if selection else 0)
    assert expected.spans[0].epsilon_a_day == hours * price
    assert expected.spans[0].epsilon_of_person == (active or hours) * price


@pytest.mark.parametrize("budget", ["0.13", "0.8299", "1.2299", "1.3699", "1.9899"])
def test_rounding_spends_no_more_than_the_budget(budget):
    _, expected = plan(HOUR, DAY, budget=budget, active=7, shape=SHAPE)
    assert expected.epsilon_of_person <= Decimal(budget)


def test_days_are_released_from_raw_where_they_are_asked_for():
    """24 hours of a small epsilon are noise, and a day from raw is not."""
    spans, expected = plan(HOUR, DAY, budget=2, active=4)
    assert [(a.question.title, a.span.name, a.releases) for a in expected.answers] == [
        ("hour", "hour", 1),
        ("day", "day", 1),
    ]
    assert all(answer.verdict is AnswerWorth.OK for answer in expected.answers)
    assert expected.answers[1].typical_error < 0.01
    assert [span.count_share for span in spans] == [Decimal("0.5")] * 2


def test_where_days_make_weeks_the_count_gets_less():
    alone, _ = plan(DAY)
    merged, expected = plan(DAY, WEEK)
    assert expected.answers[1].releases == 7
    assert alone[0].count_share > 0
    assert merged[0].count_share < Decimal("0.1")


@pytest.mark.parametrize(
    ("reread", "names", "releases"),
    [("day", ["day"], 31), ("week", ["day"], 31), ("month", ["day", "month"], 1)],
)
def test_months_are_released_from_raw_where_the_input_can_be_read_again_for_so_long(reread, names, releases):
    spans, expected = plan(DAY, MONTH, reread=reread)
    assert [span.name for span in spans] == names
    assert expected.answers[1].releases == releases
    assert expected.replay_ms == (31 if releases == 1 else 1) * 86_400_000


def test_months_alone_are_made_of_days_where_nothing_longer_can_be_read_again():
    spans, expected = plan(MONTH)
    assert [span.name for span in spans] == ["day"]
    assert expected.answers[0].verdict is AnswerWorth.ROUGH


def test_small_keys_get_a_small_sketch_and_large_ones_a_large_one():
    small, _ = plan(("day", 20, 60), budget=1)
    large, _ = plan(("day", 20_000, 600_000), budget=1)
    assert small[0].shape.buckets < large[0].shape.buckets == 4096
    assert small[0].shape.levels <= large[0].shape.levels
    given, _ = plan(("day", 20, 60), budget=1, shape=SketchShape(1024, 20))
    assert given[0].shape == SketchShape(1024, 20)


@pytest.mark.parametrize("most", [3 * 10**6, 5 * 10**7, 2 * 10**9])
def test_a_sketch_has_levels_for_the_largest_key(most):
    spans, expected = plan(("day", 1_000, most))
    assert spans[0].shape.capacity > 10 * most
    many = PlannedSpan("day", spans[0].epsilon, spans[0].count_share, SketchShape(4096, 40))
    assert expected.answers[0].large_error < 1.03 * many.level().relative_error(most)


def test_what_the_budget_cannot_buy_is_left_out_for_the_rest():
    asked = ("5m", 20, 500), ("hour", 100, 3_000), ("day", 1_000, 20_000)
    spans, expected = plan(*asked, budget=1)
    assert [span.name for span in spans] == ["hour", "day"]
    assert expected.answers[0].verdict is AnswerWorth.NOT_RELEASED
    assert "5m" in [span.name for span in plan(*asked, budget=100)[0]]


def test_no_question_is_drowned_for_a_small_gain_of_another():
    """With half for the count days of 100 items have 3 % instead of 14, but weeks of 6,000 have 800 % instead of 48."""
    spans, expected = plan(("day", 100, 2_000), ("7d", 300, 6_000), budget=1)
    assert spans[0].count_share == Decimal("0.1")
    assert expected.answers[1].verdict is AnswerWorth.ROUGH


def product_of_errors(spans, asked):
    answers = forecast(spans, assumed(*asked)).answers
    errors = [error for each in answers for error in (each.typical_error, each.large_error)]
    return math.prod((error + 0.01) / (1 + error / 10) for error in errors)


def best_product(name, epsilon, asked):
    """Over all shares that an epsilon may be divided by."""
    shares = [share for share in SHARES if not share or epsilon * share >= Decimal("0.001")]
    return min(product_of_errors([PlannedSpan(name, epsilon, share, SHAPE)], asked) for share in shares)


@pytest.mark.parametrize(("budget", "active"), [("2", 4), ("3", 24)])
def test_no_other_division_is_much_better(budget, active):
    """Against every division in tenths, each with every share."""
    (hours, days) = choose(assumed(HOUR, DAY, WEEK, active=active), Decimal(budget), "day", SHAPE)
    chosen = product_of_errors([hours], [HOUR]) * product_of_errors([days], [DAY, WEEK])
    best = min(
        best_product("hour", part * Decimal(budget) / active, [HOUR])
        * best_product("day", (1 - part) * Decimal(budget), [DAY, WEEK])
        for part in (Decimal(tenths) / 10 for tenths in range(1, 10))
    )
    # Each of the six errors may be 3 % larger for a smaller share, and epsilons have two digits.
    assert chosen < best * 1.05**6


def test_a_budget_that_buys_nothing_says_what_one_costs():
    with pytest.raises(UsageError, match=r"a budget of epsilon 0\.001 a day buys nothing: a person pays for 24 x hour"):
        plan(HOUR, budget="0.001")
    with pytest.raises(UsageError, match=r"at least epsilon 1\.001, 1 of it for --selection\. Raise --budget"):
        plan(HOUR, budget=20, selection=Selection(Decimal(1), Decimal("1e-9")))


def test_hours_in_a_zone_whose_days_begin_between_them_need_a_shorter_span():
    with pytest.raises(UsageError, match="windows of hour do not fill a day of Asia/Kolkata"):
        plan(HOUR, DAY, days=KOLKATA)
    with pytest.raises(UsageError, match="windows of hour do not fill a day of Asia/Kolkata"):
        plan(HOUR, days=KOLKATA)
    with pytest.raises(UsageError, match=r"windows of week do not fill a month of UTC: .* such as day"):
        plan(("week", 50, 1_000), MONTH, reread="month")
    spans, _ = plan(("15m", 50, 1_000), DAY, days=KOLKATA)
    assert [span.name for span in spans] == ["15m", "day"]


def test_spans_that_do_not_nest_are_refused():
    with pytest.raises(UsageError, match="windows of 10m do not fill a 15m"):
        plan(("10m", 10, 100), ("15m", 10, 100))


def test_too_many_spans_at_once_are_refused():
    with pytest.raises(UsageError, match="7 different spans"):
        plan(*((span, 10, 100) for span in ("1m", "5m", "15m", "hour", "day", "week", "month")), reread="month")


def test_the_same_question_twice_and_several_unions_of_one_span():
    spans, expected = plan(DAY, DAY, WEEK, ("30d", 9_000, 400_000))
    assert [answer.releases for answer in expected.answers] == [1, 1, 7, 30]
    assert [span.name for span in spans] == ["day"]
