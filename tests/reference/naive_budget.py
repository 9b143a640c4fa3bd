"""What is spent, window by window, as an oracle for answers/spent.py and answers/person_loss.py.

Imports nothing of either. Every window of every marker is in a list; what a person loses is a sum over those of them in
which it is active, in exact fractions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from reference.naive_days import day_borders, month_borders, week_borders

from sfm_stream.wire.codec import CloseMarker

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class Paid:
    """A decided window, and what it costs whoever is active in it."""

    epoch: int
    span: str
    start_ms: int
    end_ms: int
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def overlaps(self, low_ms: int, high_ms: int) -> bool:
        return self.start_ms < high_ms and self.end_ms > low_ms


def paid(markers: Iterable[CloseMarker], epsilons: dict[tuple[int, str], Fraction]) -> list[Paid]:
    """Every window that any partition has decided, once."""
    found = set()
    for marker in markers:
        assert marker.span is not None
        price = epsilons[marker.epoch, marker.span]
        for start_ms in range(marker.start_ms, marker.through_ms, marker.window_ms):
            found.add(Paid(marker.epoch, marker.span, start_ms, start_ms + marker.window_ms, price))
    return sorted(found, key=lambda each: (each.start_ms, each.end_ms, each.epoch))


def periods(windows: list[Paid], zone: str) -> dict[str, list[tuple[int, int]]]:
    """The days, weeks and months of a zone that overlap what is decided."""
    low_ms = windows[0].start_ms - 45 * DAY_MS
    high_ms = max(each.end_ms for each in windows) + 45 * DAY_MS
    made = {}
    for name, borders_of in (("day", day_borders), ("week", week_borders), ("month", month_borders)):
        borders = borders_of(zone, low_ms, high_ms)
        # The first is the start of the time that is looked at, and no border.
        pairs = list(pairwise(borders[1:]))
        made[name] = [pair for pair in pairs if any(each.overlaps(*pair) for each in windows)]
    return made


def always(windows: list[Paid], low_ms: int, high_ms: int) -> Fraction:
    """What is lost between two times by whoever is active in every window, under one key."""
    return sum((each.epsilon for each in windows if each.overlaps(low_ms, high_ms)), Fraction(0))


def some_person(
    rng: random.Random, windows: list[Paid], base: str, zone: str, a_day: int, days_a_week: int
) -> list[Paid]:
    """The windows of all spans in which a person is active, who keeps to so many base windows and days.

    Its base windows begin on a day; a window of a longer span is one that holds any of them.
    """
    spans = periods(windows, zone)
    chosen: list[Paid] = []
    for week in spans["week"]:
        inside = [day for day in spans["day"] if week[0] <= day[0] < week[1]]
        for day in rng.sample(inside, min(days_a_week, len(inside))):
            there = [each for each in windows if each.span == base and day[0] <= each.start_ms < day[1]]
            chosen += rng.sample(there, min(a_day, len(there)))
    return [
        each
        for each in windows
        if any(
            each.epoch == base_window.epoch and each.overlaps(base_window.start_ms, base_window.end_ms)
            for base_window in chosen
        )
    ]
