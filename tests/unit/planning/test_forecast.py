"""What a forecast says of each answer and of each cost."""

from decimal import Decimal

import pytest

from sfm_stream.estimation.estimate import channel_of
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.planning.costs import KEY_BYTES, selection_threshold, window_bytes
from sfm_stream.planning.forecast import AnswerWorth, Assumptions, PlannedSpan, Selection, forecast, planned_span
from sfm_stream.planning.level import Level
from sfm_stream.planning.questions import PlannedQuestion, planned_question
from sfm_stream.privacy.epsilon import flip_threshold_of, parts_of
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.shape import SketchShape

UTC = calendar("UTC", 1, 0)
SHAPE = SketchShape(4096, 24)
HOURS = PlannedSpan("hour", Decimal("0.5"), Decimal("0.1"), SHAPE)
DAYS = PlannedSpan("day", Decimal(1), Decimal("0.2"), SketchShape(1024, 20))
SELECTION = Selection(Decimal("0.5"), Decimal("1e-9"))


def verdicts(spans, *asked, **more):
    questions = tuple(planned_question(*each) for each in asked)
    answers = forecast(spans, Assumptions(questions, UTC, **more)).answers
    return [(answer.span.name if answer.span else None, answer.releases, answer.verdict) for answer in answers]


def test_each_question_is_answered_from_the_coarsest_span_that_fits_and_judged():
    assert verdicts(
        [HOURS, DAYS],
        ("hour", 200, 5_000),
        ("hour", 20, 5_000),
        ("hour", 2, 20),
        ("2h", 200, 50_000),
        ("day", 200, 5_000),
        ("3d", 10_000, 50_000),
        ("5m", 200, 5_000),
    ) == [
        ("hour", 1, AnswerWorth.OK),
        ("hour", 1, AnswerWorth.LARGE),
        ("hour", 1, AnswerWorth.ROUGH),
        ("hour", 2, AnswerWorth.LARGE),
        ("day", 1, AnswerWorth.OK),
        ("day", 3, AnswerWorth.OK),
        (None, 0, AnswerWorth.NOT_RELEASED),
    ]
    assert verdicts([HOURS], ("day", 2_000, 50_000)) == [("hour", 24, AnswerWorth.NOISE)]


def test_an_answer_without_numbers_is_judged_by_its_level_alone():
    expected = forecast([HOURS], Assumptions((PlannedQuestion("hour"), PlannedQuestion("day")), UTC))
    assert [(a.typical_error, a.large_error, a.verdict) for a in expected.answers] == [
        (None, None, AnswerWorth.OK),
        (None, None, AnswerWorth.NOISE),
    ]


def test_a_key_that_is_withheld_is_not_known():
    half = selection_threshold(SHAPE, SELECTION.epsilon, SELECTION.delta, 0.5)
    assert 36 < half < 60
    known = PlannedSpan("hour", Decimal(4), Decimal("0.5"), SHAPE)
    asked = ("hour", 30, 35), ("hour", 30, 5_000), ("hour", 60, 5_000)
    assert [v for *_, v in verdicts([known], *asked)] == [AnswerWorth.OK] * 3
    assert [v for *_, v in verdicts([known], *asked, selection=SELECTION)] == [
        AnswerWorth.WITHHELD,
        AnswerWorth.LARGE,
        AnswerWorth.OK,
    ]


def test_what_it_costs():
    asked = (planned_question("hour", 10, 100), planned_question("day", 50, 1_000))
    expected = forecast([HOURS, DAYS], Assumptions(asked, UTC, 3, 500, 1_000_000, SELECTION))
    hours, days = expected.spans
    assert (hours.price, hours.windows_a_day, hours.person_windows) == (1, 24, 3)
    assert (hours.epsilon_a_day, hours.epsilon_of_person) == (24, 3)
    assert (days.price, days.epsilon_a_day, days.epsilon_of_person) == (Decimal("1.5"),) * 3
    assert (expected.epsilon_a_day, expected.epsilon_of_person) == (Decimal("25.5"), Decimal("4.5"))
    assert expected.delta_a_day == 25 * SELECTION.delta
    assert hours.published_bytes_a_day == 24 * 500 * hours.release_bytes
    assert expected.published_bytes_a_day == 500 * (24 * hours.release_bytes + days.release_bytes)
    memory = 500 * (KEY_BYTES + window_bytes(SHAPE, 10) + window_bytes(SHAPE, 50))
    assert expected.memory_bytes == pytest.approx(memory, abs=2)
    assert (expected.replay_ms, expected.replay_s) == (86_400_000, 5.0)
    assert hours.most_releases == 4
    assert (hours.selected_half, days.selected_half) == (
        selection_threshold(SHAPE, SELECTION.epsilon, SELECTION.delta, 0.5),
        selection_threshold(DAYS.shape, SELECTION.epsilon, SELECTION.delta, 0.5),
    )


def test_memory_of_a_span_that_is_not_asked_for_is_that_of_the_shortest_question_around_it():
    asked = (planned_question("7d", 70, 1_000), planned_question("day", 50, 1_000))
    memory = [part.memory_bytes for part in forecast([HOURS, DAYS], Assumptions(asked, UTC, keys=1)).spans]
    assert memory == [round(window_bytes(SHAPE, 50)), round(window_bytes(SHAPE, 50))]
    unknown = forecast([HOURS], Assumptions((), UTC, keys=1)).spans[0]
    assert unknown.memory_bytes == round(window_bytes(SHAPE, 10))


@pytest.mark.parametrize("share", ["0", "0.1", "0.3", "0.123456789"])
def test_a_released_span_is_judged_with_the_share_that_it_was_configured_with(share):
    for_bits, for_count = parts_of(Decimal("0.7"), Decimal(share))
    released = ReleasedSpan("15m", 900_000, Decimal("0.7"), flip_threshold_of(for_bits), for_count, SHAPE)
    span = planned_span(released)
    assert span == PlannedSpan("15m", Decimal("0.7"), Decimal(share), SHAPE)
    assert span.level() == Level(SHAPE, channel_of(released.flip_threshold), float(for_count))
