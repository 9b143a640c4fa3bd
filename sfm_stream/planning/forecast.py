"""What released spans will be worth under public assumptions: the error of each question, and all costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.planning.costs import KEY_BYTES, RECORDS_PER_S, release_bytes, selection_threshold, window_bytes
from sfm_stream.planning.level import KNOWN, Level, most_releases
from sfm_stream.planning.questions import PlannedQuestion, fits, length_ms, windows_a_day, windows_in
from sfm_stream.privacy.epsilon import decimals, parts_of
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import DAY_MS


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A span that is released from raw state. name: as in PlannedQuestion. epsilon: of one release, bits and count."""

    name: str
    epsilon: Decimal
    count_share: Decimal
    shape: SketchShape

    @property
    def count_epsilon(self) -> Decimal:
        """The part of epsilon for the noisy count; 0: releases have none."""
        return parts_of(self.epsilon, self.count_share)[1]

    def level(self, releases: int = 1) -> Level:
        return Level.of(self.shape, self.epsilon, self.count_share, releases)


def planned_span(span: ReleasedSpan) -> PlannedSpan:
    """A released span of a configuration as a planner judges it."""
    with decimals():
        share = span.count_epsilon / span.epsilon
    return PlannedSpan(span.name, span.epsilon, share, span.shape)


@dataclass(frozen=True, slots=True)
class Selection:
    """The price of selecting keys by their data, for each release."""

    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What somebody expects who has not counted. All of it is public.

    active: windows of the finest span that is asked for in which a person is active a day; None: in all of them. keys:
    open at a time. events_a_day: for the time that reading again takes; None: not said. selection: None where keys are
    not selected.
    """

    questions: tuple[PlannedQuestion, ...]
    days: Calendar
    active: int | None = None
    keys: int = 1000
    events_a_day: int | None = None
    selection: Selection | None = None

    def epsilon_selection(self) -> Decimal:
        return self.selection.epsilon if self.selection else Decimal(0)


class AnswerWorth(StrEnum):
    """What an answer will be worth."""

    OK = "ok"
    """A typical key is known to 20 %, and published where keys are selected."""
    LARGE = "large keys only"
    """A large key is, a typical one is not."""
    ROUGH = "rough"
    """No key that is expected is known to 20 %, but some number of items has an interval that does not reach 0."""
    WITHHELD = "withheld"
    """Not even a large key has enough items to be selected with a chance of 50 %."""
    NOISE = "noise"
    """The interval reaches 0 whatever the number of items is."""
    NOT_RELEASED = "not released"
    """No released span lies inside it."""


@dataclass(frozen=True, slots=True)
class SpanForecast:
    """What one released span costs.

    price: epsilon of one release, with the selection of its key. epsilon_*: over the longest day. *_bytes: of all keys,
    but for release_bytes. person_windows: of this span in which a person is active a day. selected_half,
    selected_nearly: items at which a key is published with 50 % and 99.9 %; None where keys are not selected.
    most_releases: see level.most_releases.
    """

    span: PlannedSpan
    price: Decimal
    windows_a_day: int
    person_windows: int
    epsilon_a_day: Decimal
    epsilon_of_person: Decimal
    release_bytes: int
    published_bytes_a_day: int
    memory_bytes: int
    most_releases: int
    selected_half: float | None
    selected_nearly: float | None


@dataclass(frozen=True, slots=True)
class AnswerForecast:
    """What an answer will be worth. Errors are relative standard errors; None where no number was assumed.

    span: what it is computed from, with the number of its releases; None, 0: nothing. smallest_known: items; may be
    infinite.
    """

    question: PlannedQuestion
    span: PlannedSpan | None
    releases: int
    typical_error: float | None
    large_error: float | None
    smallest_known: float
    verdict: AnswerWorth


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a plan will be worth, and what it costs. replay_s: CPU seconds of reading again; None: not said."""

    spans: tuple[SpanForecast, ...]
    answers: tuple[AnswerForecast, ...]
    epsilon_a_day: Decimal
    epsilon_of_person: Decimal
    delta_a_day: Decimal
    published_bytes_a_day: int
    memory_bytes: int
    replay_ms: int
    replay_s: float | None


def forecast(spans: Sequence[PlannedSpan], assumed: Assumptions) -> Forecast:
    """What these released spans will be worth. spans: the finest first, at least one."""
    # All spans are counted at one shape, and folded into their own as they are released.
    widest = SketchShape(max(span.shape.buckets for span in spans), max(span.shape.levels for span in spans))
    parts = tuple(_span_forecast(span, widest, assumed) for span in spans)
    replay_ms = length_ms(spans[-1].name)
    events = assumed.events_a_day
    with decimals():
        delta = assumed.selection.delta if assumed.selection else Decimal(0)
        return Forecast(
            parts,
            tuple(_answer(question, parts, assumed.days) for question in assumed.questions),
            sum((part.epsilon_a_day for part in parts), Decimal(0)),
            sum((part.epsilon_of_person for part in parts), Decimal(0)),
            delta * sum(part.windows_a_day for part in parts),
            sum(part.published_bytes_a_day for part in parts),
            sum(part.memory_bytes for part in parts) + KEY_BYTES * assumed.keys,
            replay_ms,
            None if events is None else events * replay_ms / DAY_MS / RECORDS_PER_S,
        )


def source_of(question: PlannedQuestion, names: Sequence[str], days: Calendar) -> tuple[str, int] | None:
    """(the released span that a question is answered from, how many releases of it): the coarsest that fits."""
    inside = [name for name in names if fits(name, question.span, days)]
    if not inside:
        return None
    name = max(inside, key=length_ms)
    return name, question.times * windows_in(name, question.span)


def person_windows(name: str, assumed: Assumptions) -> int:
    """Windows of this span in which a person is active on the longest day."""
    most = windows_a_day(name, assumed.days)
    return most if assumed.active is None else min(assumed.active, most)


def _answer(question: PlannedQuestion, parts: Sequence[SpanForecast], days: Calendar) -> AnswerForecast:
    source = source_of(question, [part.span.name for part in parts], days)
    if source is None:
        return AnswerForecast(question, None, 0, None, None, math.inf, AnswerWorth.NOT_RELEASED)
    (part,) = (part for part in parts if part.span.name == source[0])
    level = part.span.level(source[1])
    numbers = (question.typical, question.large)
    typical, large = (None if items is None else level.relative_error(items) for items in numbers)
    # A union of windows may hold a key in few of them, or in all: only for one window it is known what is withheld.
    least = part.selected_half if part.selected_half is not None and source[1] == 1 else 0.0
    known = [
        items is None or (error is not None and error <= KNOWN and items >= least)
        for items, error in zip(numbers, (typical, large), strict=True)
    ]
    if level.is_noise:
        verdict = AnswerWorth.NOISE
    elif question.large is not None and question.large < least:
        verdict = AnswerWorth.WITHHELD
    else:
        verdict = AnswerWorth.OK if known[0] else AnswerWorth.LARGE if known[1] else AnswerWorth.ROUGH
    return AnswerForecast(question, part.span, source[1], typical, large, level.smallest_known(), verdict)


def _span_forecast(span: PlannedSpan, counted: SketchShape, assumed: Assumptions) -> SpanForecast:
    windows, person = windows_a_day(span.name, assumed.days), person_windows(span.name, assumed)
    record = release_bytes(span.shape, span.name, length_ms(span.name), span.count_epsilon)
    chances = [
        selection_threshold(span.shape, assumed.selection.epsilon, assumed.selection.delta, chance)
        if assumed.selection
        else None
        for chance in (0.5, 0.999)
    ]
    with decimals():
        price = span.epsilon + assumed.epsilon_selection()
        return SpanForecast(
            span,
            price,
            windows,
            person,
            windows * price,
            person * price,
            record,
            record * assumed.keys * DAY_MS // length_ms(span.name),
            round(assumed.keys * window_bytes(counted, _items_in(span.name, assumed))),
            most_releases(span.shape, span.level().channel),
            *chances,
        )


def _items_in(name: str, assumed: Assumptions) -> int:
    """Typical items of a key in a span: those of the shortest question that is not shorter; 10 where none is."""
    longer = [
        (length_ms(question.span) * question.times, question.typical)
        for question in assumed.questions
        if question.typical is not None and length_ms(question.span) * question.times >= length_ms(name)
    ]
    return min(longer)[1] if longer else 10
