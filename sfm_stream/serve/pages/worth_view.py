"""What the numbers of a pipeline are worth: its privacy statement, the error by size, and what has been spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

import numpy as np

from sfm_stream.answers.spent import SpentSpan, spent
from sfm_stream.config.config import Config
from sfm_stream.errors import NothingFound
from sfm_stream.planning.forecast import planned_span, source_of
from sfm_stream.planning.level import KNOWN, Level
from sfm_stream.planning.noise import questions_of
from sfm_stream.privacy.epsilon import plain
from sfm_stream.readable import decimal_text
from sfm_stream.serve.pages.error_chart import ErrorChart, error_chart
from sfm_stream.serve.pages.number_text import share_text
from sfm_stream.serve.pages.time_text import time_words
from sfm_stream.serve.pages.trend_chart import Size
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_WIDE, _NARROW = Size(960, 340, 64, 200, bottom=40), Size(340, 260, 52, 8, bottom=40)
_CONFIDENT = 1.96
"""Standard errors in half of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class LevelLine:
    """What one level is worth. errors: for each of SIZES how far off the number may be, as (items, share of them).

    known_from: from how many items on the standard error is at most 20 %.
    """

    number: int
    name: str
    epsilon: str
    known_from: str
    errors: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpentLine:
    """What one span of one epoch has cost so far.

    each, most: epsilon of one release, and of an item that was active in every window; "" where neither the
    configuration nor a release says it.
    """

    epoch: int
    span: str
    windows: str
    since: str
    through: str
    each: str
    most: str


@dataclass(frozen=True, slots=True)
class WorthView:
    statement: tuple[str, ...]
    levels: tuple[LevelLine, ...]
    charts: tuple[ErrorChart, ...]
    spent: tuple[SpentLine, ...]
    a_day: str
    delta_a_day: str


def worth_view(served: ServedPipeline, reader: TopicReader) -> WorthView:
    """All of it, from the configuration and the close markers."""
    config = served.config
    levels = _levels(config)
    budget = config.budget
    return WorthView(
        statement=tuple(config.statement.split("\n\n")),
        levels=tuple(_line(number, *level) for number, level in enumerate(levels, 1)),
        charts=tuple(error_chart([(name, level) for name, _, level in levels], SIZES[-1], size) for size in _SIZES),
        spent=_spent(served, reader),
        a_day=plain(budget.epsilon_per_day),
        delta_a_day=plain(budget.delta_per_day) if budget.delta_per_day else "",
    )


_SIZES = (_WIDE, _NARROW)


def _levels(config: Config) -> list[tuple[str, Decimal, Level]]:
    """(name, epsilon of one release, level) of each released span, and of each grain that is merged from one."""
    spans = {span.name: planned_span(span) for span in config.budget.spans}
    levels = []
    for question in questions_of(list(spans.values()), config.calendar):
        source = source_of(question, list(spans), config.calendar)
        if source is None:
            continue
        name, releases = source
        words = question.span if releases == 1 else f"{question.span}, merged from {releases}"
        levels.append((words, spans[name].epsilon, spans[name].level(releases)))
    return levels


def _line(number: int, name: str, epsilon: Decimal, level: Level) -> LevelLine:
    known = level.smallest_known(KNOWN)
    return LevelLine(
        number=number,
        name=name,
        epsilon=plain(epsilon),
        known_from="never" if math.isinf(known) else f"{_two_digits(known):,}",
        errors=tuple(_error(level, size) for size in SIZES),
    )


def _error(level: Level, size: int) -> tuple[str, str]:
    if size > level.shape.capacity:
        return "sketch full", ""
    half = _CONFIDENT * float(level.standard_errors(np.array([float(size)]))[0])
    if not half <= 10 * size:
        return "noise", ""
    return f"± {_two_digits(half):,}", share_text(half / size)


def _two_digits(value: float) -> int:
    step = 10 ** max(0, math.floor(math.log10(value)) - 1) if value >= 1 else 1
    return math.ceil(value / step) * step


def _spent(served: ServedPipeline, reader: TopicReader) -> tuple[SpentLine, ...]:
    try:
        return tuple(map(_spent_line, spent(reader, served.config)))
    except NothingFound:
        return ()


def _spent_line(span: SpentSpan) -> SpentLine:
    price = None if span.price is None else span.price.epsilon
    return SpentLine(
        epoch=span.epoch,
        span=span.name,
        windows=f"{span.windows:,}",
        since=time_words(span.decided.start_ms, span.zone),
        through=time_words(span.decided.end_ms, span.zone),
        each="" if price is None else _epsilon(price),
        most="" if price is None else _epsilon(price * span.windows),
    )


def _epsilon(loss: Decimal) -> str:
    """An epsilon to six digits: that of the bits of a release is no round number."""
    return f"{loss:.6g}" if loss < 1 else decimal_text(loss.quantize(Decimal("0.0001"), ROUND_CEILING))
