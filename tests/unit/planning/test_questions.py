"""How spans are written for a planner, and which lie inside which."""

import pytest

from sfm_stream.errors import UsageError
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.planning.questions import PlannedQuestion, fits, length_ms, planned_question, windows_a_day, windows_in

DAY_MS = 86_400_000
UTC, BERLIN, KOLKATA = (calendar(zone, 1, 0) for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata"))


@pytest.mark.parametrize(
    ("written", "span", "times", "title"),
    [
        ("day", "day", 1, "day"),
        ("days", "day", 1, "day"),
        ("7d", "day", 7, "7 x days"),
        ("7 days", "day", 7, "7 x days"),
        ("1d", "day", 1, "day"),
        ("w", "week", 1, "week"),
        ("week", "week", 1, "week"),
        ("3months", "month", 3, "3 x months"),
        ("15m", "15m", 1, "15m"),
        ("30s", "30s", 1, "30s"),
        ("90s", "90s", 1, "90s"),
        ("7s", None, 0, ""),
        ("60s", "1m", 1, "1m"),
        ("60m", "hour", 1, "hour"),
        ("1h", "hour", 1, "hour"),
        ("120m", "hour", 2, "2 x hours"),
        ("6h", "hour", 6, "6 x hours"),
        (" hour ", "hour", 1, "hour"),
        ("m", None, 0, ""),
        ("7m", None, 0, ""),
        ("0d", None, 0, ""),
        ("-1d", None, 0, ""),
        ("year", None, 0, ""),
        ("", None, 0, ""),
        ("\u0667d", None, 0, ""),
    ],
)
def test_a_span_as_it_is_written(written, span, times, title):
    if span is None:
        with pytest.raises(UsageError, match="no span that can be asked for"):
            planned_question(written, 10, 100)
    else:
        asked = planned_question(written, 10, 100)
        assert asked == PlannedQuestion(span, times, 10, 100)
        assert asked.title == title


@pytest.mark.parametrize(("typical", "large"), [(0, 10), (-1, 10), (10, 9)])
def test_numbers_of_items_that_make_no_sense_are_refused(typical, large):
    with pytest.raises(UsageError, match="at least 1"):
        planned_question("day", typical, large)


@pytest.mark.parametrize(
    ("inner", "outer", "days", "fit"),
    [
        ("5m", "15m", UTC, True),
        ("10m", "15m", UTC, False),
        ("20m", "hour", UTC, True),
        ("20m", "day", UTC, True),
        ("20m", "day", KOLKATA, False),
        ("15m", "day", KOLKATA, True),
        ("hour", "day", BERLIN, True),
        ("hour", "day", KOLKATA, False),
        ("hour", "15m", UTC, False),
        ("day", "day", KOLKATA, True),
        ("day", "week", UTC, True),
        ("day", "month", UTC, True),
        ("week", "month", UTC, False),
        ("month", "week", UTC, False),
        ("day", "hour", UTC, False),
        ("week", "day", UTC, False),
    ],
)
def test_which_spans_fill_which(inner, outer, days, fit):
    assert fits(inner, outer, days) == fit


def test_how_many_windows_a_day_and_a_span_have():
    assert [windows_a_day("hour", days) for days in (UTC, BERLIN, KOLKATA)] == [24, 25, 25]
    assert windows_a_day("15m", KOLKATA) == 96
    assert windows_a_day("5m", BERLIN) == 300
    assert windows_a_day("week", UTC) == windows_a_day("month", UTC) == windows_a_day("day", BERLIN) == 1
    assert [windows_in("hour", span) for span in ("hour", "day", "week", "month")] == [1, 24, 168, 744]
    assert windows_in("5m", "hour") == 12
    assert [length_ms(span) for span in ("5m", "30s", "hour", "week", "month")] == [
        300_000,
        30_000,
        3_600_000,
        7 * DAY_MS,
        31 * DAY_MS,
    ]
