"""The most that a person of a stated activity has lost in a day, a week and a month, and until now, by composition.

Each window of each span in which a person is active costs its price, under each key, and all of them are added: basic
composition, which holds whatever is published and whoever looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sfm_stream.answers.spent import SpentSpan
from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.privacy.epsilon import decimals
from sfm_stream.privacy.released_span import windows_per_day
from sfm_stream.types import Window
from sfm_stream.windows.grid import fixed_size_ms, grid_of, windows_between

PERIODS = ("day", "week", "month")


@dataclass(frozen=True, slots=True)
class Activity:
    """How active a person is, at most.

    windows_a_day: windows of the finest span of an epoch in which it is active on a day; None: in all. days_a_week:
    days of a calendar week on which it is. keys: under how many keys it is active in a window, of any span.
    """

    windows_a_day: int | None = None
    days_a_week: int = 7
    keys: int = 1


@dataclass(frozen=True, slots=True)
class Loss:
    """The most that was lost in a period. epsilon: None where the price of a span in it is not known."""

    period: str
    time: Window
    epsilon: Decimal | None
    delta: Decimal


def losses(spans: Sequence[SpentSpan], activity: Activity, days: Calendar) -> list[Loss]:
    """The worst day, week and month of the zone, and all time that is decided.

    A window counts in every period that it overlaps. Of several periods alike the first is given.
    """
    whole = Window(min(span.decided.start_ms for span in spans), max(span.decided.end_ms for span in spans))
    found = [max(_each(spans, activity, days, period, whole), key=_size) for period in PERIODS]
    return [*found, _loss(spans, activity, days, "so far", whole)]


def _each(spans: Sequence[SpentSpan], activity: Activity, days: Calendar, period: str, whole: Window) -> Iterator[Loss]:
    """The loss in each day, week or month that overlaps this time."""
    grid = grid_of(period, days.zone)
    for time in windows_between(grid, grid.floor(whole.start_ms), grid.ceil(whole.end_ms)):
        yield _loss(spans, activity, days, period, time)


def _size(loss: Loss) -> tuple[bool, Decimal, Decimal]:
    """What is not known may be any amount."""
    return loss.epsilon is None, loss.epsilon or Decimal(0), loss.delta


def _loss(spans: Sequence[SpentSpan], activity: Activity, days: Calendar, period: str, time: Window) -> Loss:
    epsilon: Decimal | None = Decimal(0)
    delta = Decimal(0)
    for span in spans:
        windows = _active_windows(span, activity, days, time) * activity.keys
        with decimals():
            if windows and span.price is None:
                epsilon = None
            elif windows and span.price is not None:
                epsilon = None if epsilon is None else epsilon + windows * span.price.epsilon
                delta += windows * span.price.delta
    return Loss(period, time, epsilon, delta)


def _active_windows(span: SpentSpan, activity: Activity, days: Calendar, time: Window) -> int:
    """In how many windows of a span that overlap this time the person was active, at most."""
    there, around = span.windows_in(time), span.around(time)
    if around is None:
        return 0
    a_day = windows_per_day(fixed_size_ms(span.name), days.longest_day_ms, days.day_step_ms)
    if activity.windows_a_day is not None:
        a_day = min(a_day, activity.windows_a_day)
    # A window that only overlaps the time may have been used on a day outside of it: those are all that there are.
    return min(there, _active_days(around, activity, days) * a_day)


def _active_days(time: Window, activity: Activity, days: Calendar) -> int:
    """On how many days of this time the person was active, at most: so many of each calendar week."""
    day, week = grid_of("day", days.zone), grid_of("week", days.zone)
    low_ms, high_ms = day.floor(time.start_ms), day.ceil(time.end_ms)
    if activity.days_a_week >= 7:
        return day.count(low_ms, high_ms)
    parts = windows_between(week, week.floor(low_ms), week.ceil(high_ms))
    return sum(
        min(activity.days_a_week, day.count(max(low_ms, part.start_ms), min(high_ms, part.end_ms))) for part in parts
    )
