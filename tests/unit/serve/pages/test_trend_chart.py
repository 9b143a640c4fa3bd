"""The geometry of a trend, held to a naive oracle that asks of each pixel what is drawn there."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from unit.serve.pages.answered import START_MS, estimate, row

from sfm_stream.errors import QuestionError
from sfm_stream.estimation.estimate import Status
from sfm_stream.serve.pages.slots import BEFORE, MOST_SLOTS, STATES, UNDECIDED, WITHHELD, require_few, slots
from sfm_stream.serve.pages.trend_chart import NARROW, WIDE, trend_chart
from sfm_stream.types import Window
from sfm_stream.units import DAY_MS, FOREVER_MS, HOUR_MS
from sfm_stream.windows.grid import FixedGrid, grid_of

HOURS = FixedGrid(HOUR_MS)
ALWAYS = Window(0, FOREVER_MS)


def chart(rows, hours, size=WIDE, counted=ALWAYS):
    span = Window(START_MS, START_MS + hours * HOUR_MS)
    return trend_chart(slots(rows, span, HOURS, counted, WITHHELD), "UTC", size)


def rectangles(path: str) -> list[tuple[float, float, float, float]]:
    """(left, top, right, bottom) of each rectangle of a band."""
    found = re.findall(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)Z", path)
    assert "".join(f"M{a} {b}H{c}V{d}H{e}Z" for a, b, c, d, e in found) == path
    assert all(e == a for a, *_, e in found)
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d, _ in found]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_band_covers_the_interval_of_each_hour_and_nothing_else(size):
    rng = np.random.default_rng(9)
    rows = [row(n, estimate(low + 5, low, low + 5 + rng.uniform(0, 30))) for n in range(20) if n % 7 != 3
            for low in [rng.uniform(1, 200)]]  # fmt: skip
    made = chart(rows, 20, size)
    top_value = float(made.y_ticks[-1].label.replace(",", ""))
    left, bottom = made.plot.x, made.plot.y + made.plot.height

    def naive_at(x: float, y: float) -> bool:
        """Whether a point of the drawing is inside the interval of the hour that it lies in."""
        hour = int((x - left) / made.plot.width * 20)
        value = (bottom - y) / made.plot.height * top_value
        return any(
            each.window.start_ms == START_MS + hour * HOUR_MS and each.estimate.low <= value <= each.estimate.high
            for each in rows
        )

    boxes, inside, outside = rectangles(made.band), 0, 0
    for x in np.arange(left + 0.5, left + made.plot.width, 3.0):
        for y in np.arange(made.plot.y + 0.5, bottom, 3.0):
            around = {naive_at(x + dx, y + dy) for dx in (-0.1, 0.1) for dy in (-0.1, 0.1)}
            if len(around) == 2:
                continue  # on an edge, which is rounded to a tenth
            drawn = any(a <= x <= c and b <= y <= d for a, b, c, d in boxes)
            assert {drawn} == around, (x, y)
            inside, outside = inside + drawn, outside + (not drawn)
    assert min(inside, outside) > 100


def test_the_zero_line_is_the_bottom_and_the_top_holds_the_largest_limit():
    made = chart([row(0, estimate(80, 60, 91)), row(1, estimate(5, 2, 9))], 2)
    assert made.y_ticks[0].label == "0"
    assert made.y_ticks[0].at == made.plot.y + made.plot.height
    assert float(made.y_ticks[-1].label) >= 91
    assert made.y_ticks[-1].at == made.plot.y


def test_lines_do_not_lead_over_gaps_nor_to_limits():
    known, bound = estimate(10, 8, 12), estimate(9, 7, math.inf, Status.LOWER_BOUND)
    rows = [row(at, bound if at in (5, 6) else known) for at in (0, 1, 3, 4, 5, 6, 7)]
    made = chart(rows, 8)
    assert [part.count("L") for part in made.line.split("M")[1:]] == [1, 1]
    assert len(made.marks) == 7
    assert [(box.name, box.x) for box in made.columns] == [("withheld", rectangles(made.band)[1][2])]


def test_what_has_no_upper_limit_reaches_the_top_and_has_an_arrow():
    bound, full = estimate(40, 30, math.inf, Status.LOWER_BOUND), estimate(99, 50, math.inf, Status.SATURATED)
    made = chart([row(0, bound), row(1, full)], 2)
    assert [top for _, top, _, _ in rectangles(made.band)] == [made.plot.y, made.plot.y]
    assert [mark.name for mark in made.arrows] == ["lower", "saturated"]
    # The mark stands at the limit, not at the value, which says nothing of the whole.
    share = (made.plot.y + made.plot.height - made.marks[0].y) / made.plot.height
    assert share * float(made.y_ticks[-1].label) == pytest.approx(30, abs=0.5)


def test_noise_is_a_column_without_a_number():
    made = chart([row(0, estimate(1e9, 0, math.inf, Status.UNINFORMATIVE)), row(1, estimate(5, 3, 8))], 2)
    assert [box.name for box in made.columns] == ["unknown"]
    assert made.columns[0].height == made.plot.height
    assert len(made.marks) == 1
    assert float(made.y_ticks[-1].label) < 100, "the guess would have decided the scale"


def test_an_open_hour_is_drawn_apart():
    made = chart([row(0, estimate(5, 3, 8)), row(1, estimate(5, 3, 8), complete=False)], 2)
    assert len(rectangles(made.band)) == len(rectangles(made.open_band)) == 1
    assert [mark.is_open for mark in made.marks] == [False, True]


def test_many_hours_have_no_ordinary_marks_and_keep_the_others():
    rows = [row(n, estimate(5, 3, 8)) for n in range(400)]
    rows[7] = row(7, estimate(1, 0, 4, Status.EMPTY))
    assert [mark.name for mark in chart(rows, 400).marks] == ["empty"]


def test_a_span_without_a_row_says_why():
    counted = Window(START_MS + HOUR_MS, START_MS + 3 * HOUR_MS)
    made = slots([], Window(START_MS, START_MS + 4 * HOUR_MS), HOURS, counted, WITHHELD)
    assert [slot.state for slot in made] == [BEFORE, WITHHELD, WITHHELD, UNDECIDED]
    assert [box.name for box in trend_chart(made, "UTC", WIDE).columns] == ["before", "withheld", "undecided"]


def test_the_days_of_a_zone_are_as_wide_as_they_are_long():
    grid = grid_of("day", "Europe/Berlin")
    start_ms = grid.floor(START_MS + 85 * DAY_MS + HOUR_MS)
    made = slots([], Window(start_ms, start_ms + 3 * DAY_MS - HOUR_MS), grid, ALWAYS, WITHHELD)
    assert [(slot.window.end_ms - slot.window.start_ms) // HOUR_MS for slot in made] == [24, 24, 23]
    ticks = [tick.at for tick in trend_chart(made, "Europe/Berlin", WIDE).x_ticks]
    widths = np.diff(ticks)
    assert widths[2] / widths[0] == pytest.approx(23 / 24, abs=0.001)


def test_more_spans_than_a_chart_holds_are_refused_with_the_remedy():
    with pytest.raises(QuestionError, match="coarser grain"):
        require_few(Window(0, (MOST_SLOTS + 1) * HOUR_MS), HOURS)
    require_few(Window(0, MOST_SLOTS * HOUR_MS), HOURS)
    with pytest.raises(QuestionError, match="coarser grain"):
        require_few(Window(0, FOREVER_MS), grid_of("month", "Europe/Berlin"))


def test_every_status_has_a_state_of_its_own():
    assert set(STATES) == set(Status)
    assert len({state.name for state in STATES.values()}) == len(Status)
