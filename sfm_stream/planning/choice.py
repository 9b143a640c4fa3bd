"""Which spans to release from raw state, and how to divide a person's day among them, for what will be asked.

Every set of spans that may be released is tried, also those that leave a question without an answer. Each question is
answered from the coarsest span that fits into it, so the questions of one span are worth what its epsilon makes of
them, and the budget is divided by dynamic programming over steps of 1/400. A division is better where the product of
all errors is smaller; what is known to 1 % and what stays noise anyway count little. Each span then has the smallest
share for its count, the fewest buckets and the fewest levels that are nearly as good as the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfm_stream.errors import UsageError
from sfm_stream.planning.forecast import Assumptions, PlannedSpan, person_windows, source_of
from sfm_stream.planning.questions import PlannedQuestion, fits, length_ms
from sfm_stream.privacy.epsilon import MAX_EPSILON, MIN_EPSILON, plain
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import HOUR_MS

Array = NDArray[np.float64]
SHARES = tuple(map(Decimal, ("0", "0.05", "0.1", "0.2", "0.5")))
"""Shares of epsilon that a count may get."""
STANDARD = SketchShape(4096, 24)
"""The shape that epsilons are chosen for, and the most buckets that are chosen."""
_BUCKETS = (256, 512, 1024, 2048, 4096)
_LEVELS, _MOST_LEVELS = (12, 16, 20, 24, 28, 32), 40
_DIGITS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 25, 28, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90)
_EPSILONS = tuple(
    Decimal(f"{digit * 10.0**power:g}")
    for power in (-4, -3, -2, -1, 0)
    for digit in _DIGITS
    if digit * 10.0**power <= MAX_EPSILON
)
_STEPS = 400
_SMALL, _HOPELESS = 0.01, 10.0
"""Relative errors below and above which a better one is worth little."""
_NEARLY = 1.03
"""A share or a shape is good enough where errors are, in the geometric mean, at most this factor above the best."""
_VERY_NEARLY = 1.01
"""The same of the number of levels. A sketch that is so good at the largest number holds ten times as many items."""
_MOST_SPANS = 5


@dataclass(frozen=True, slots=True)
class _Worth:
    """What a span is worth at each epsilon of _EPSILONS: ln of the product of its errors, with the best share."""

    score: Array
    share: list[Decimal]


def choose(assumed: Assumptions, budget: Decimal, longest_raw: str, shape: SketchShape | None) -> list[PlannedSpan]:
    """The spans to release, the finest first, so that a person's day costs at most `budget`.

    longest_raw: the longest span that may be released from raw state, which needs input that can be read again for so
    long. shape: None: chosen for each span. Raises UsageError where nothing can be bought.
    """
    candidates = _candidates(assumed, longest_raw)
    worth: dict[tuple[str, tuple[PlannedQuestion, ...]], _Worth] = {}
    best: tuple[float, list[tuple[str, int, Decimal]]] | None = None
    for names in _sets(candidates, assumed):
        asked = _by_source(names, assumed)
        if not all(asked.values()):
            continue
        for name in names:
            if (name, asked[name]) not in worth:
                worth[name, asked[name]] = _worth(name, asked[name], assumed, shape or STANDARD)
        tables = [worth[name, asked[name]] for name in names]
        prices = [person_windows(name, assumed) for name in names]
        divided = _divided([table.score for table in tables], prices, assumed.epsilon_selection(), budget)
        if divided is None:
            continue
        answered = {question for each in asked.values() for question in each}
        score = divided[0] + _numbers([q for q in assumed.questions if q not in answered]) * math.log(_felt(math.inf))
        if best is None or score < best[0] - 1e-9:
            shares = [table.share[i] for table, i in zip(tables, divided[1], strict=True)]
            best = score, list(zip(names, divided[1], shares, strict=True))
    if best is None:
        selected = "" if assumed.selection is None else f", {plain(assumed.epsilon_selection())} of it for --selection"
        raise UsageError(
            f"a budget of epsilon {plain(budget)} a day buys nothing: a person pays for "
            f"{person_windows(candidates[-1], assumed)} x {candidates[-1]} a day, and a release costs at least epsilon "
            f"{plain(_EPSILONS[0] + assumed.epsilon_selection())}{selected}. Raise --budget, or ask for a longer span"
        )
    asked = _by_source([name for name, _, _ in best[1]], assumed)
    return [
        PlannedSpan(name, _EPSILONS[i], share, shape or _shape(name, asked[name], _EPSILONS[i], share, assumed))
        for name, i, share in best[1]
    ]


def _candidates(assumed: Assumptions, longest_raw: str) -> list[str]:
    """Spans that may be released, the finest first: those that are asked for, or days where those are too long."""
    asked = {question.span for question in assumed.questions}
    short = {name for name in asked if length_ms(name) <= length_ms(longest_raw)}
    names = sorted(short | ({"day"} if asked - short else set()), key=length_ms)
    if not names:
        raise UsageError("nothing is asked for")
    if len(names) > _MOST_SPANS:
        raise UsageError(f"{len(names)} different spans are asked for, at most {_MOST_SPANS} can be planned at once")
    for name in (*names[1:], *(["day"] if length_ms(names[0]) <= HOUR_MS else [])):
        if not fits(names[0], name, assumed.days):
            raise UsageError(
                f"windows of {names[0]} do not fill a {name} of {assumed.days.zone}: ask for a shorter span too, such "
                f"as {'day' if names[0] == 'week' else '15m'}"
            )
    return names


def _sets(candidates: Sequence[str], assumed: Assumptions) -> Iterator[tuple[str, ...]]:
    """The sets of spans that one pipeline can release: the windows of the finest fill all others, and days."""
    for size in range(1, len(candidates) + 1):
        for names in combinations(candidates, size):
            whole = (*names, *(["day"] if length_ms(names[0]) <= HOUR_MS else []))
            if all(fits(names[0], name, assumed.days) for name in whole):
                yield names


def _by_source(names: Sequence[str], assumed: Assumptions) -> dict[str, tuple[PlannedQuestion, ...]]:
    """The questions that are answered from each of these spans."""
    sources = [source_of(question, names, assumed.days) for question in assumed.questions]
    return {
        name: tuple(q for q, source in zip(assumed.questions, sources, strict=True) if source and source[0] == name)
        for name in names
    }


def _worth(name: str, asked: Sequence[PlannedQuestion], assumed: Assumptions, shape: SketchShape) -> _Worth:
    scores = np.full((len(SHARES), len(_EPSILONS)), math.inf)
    # Errors are smooth in epsilon: every third one is computed, the rest are interpolated.
    computed = sorted({*range(0, len(_EPSILONS), 3), len(_EPSILONS) - 1})
    logs = np.log([float(epsilon) for epsilon in _EPSILONS])
    for row, share in enumerate(SHARES):
        held = [i for i in computed if _valid(_EPSILONS[i], share)]
        at = [_score(PlannedSpan(name, _EPSILONS[i], share, shape), asked, assumed) for i in held]
        scores[row] = np.interp(logs, logs[held], at, left=math.inf, right=math.inf)
    # The smallest share that is nearly the best: what it leaves to the bits helps unions that nobody asked for yet.
    nearly = np.argmax(scores <= scores.min(axis=0) + _numbers(asked) * math.log(_NEARLY), axis=0)
    return _Worth(scores[nearly, np.arange(len(_EPSILONS))], [SHARES[row] for row in nearly])


def _numbers(asked: Sequence[PlannedQuestion]) -> int:
    """How many errors of these questions a score multiplies."""
    return sum((q.typical is not None) + (q.large is not None) for q in asked)


def _valid(epsilon: Decimal, share: Decimal) -> bool:
    return not share or min(epsilon * (1 - share), epsilon * share) >= MIN_EPSILON


def _score(span: PlannedSpan, asked: Sequence[PlannedQuestion], assumed: Assumptions) -> float:
    """ln of the product of the errors of what is asked, each counted as `_felt`."""
    total = 0.0
    for question in asked:
        source = source_of(question, [span.name], assumed.days)
        assert source is not None
        level = span.level(source[1])
        for items in (question.typical, question.large):
            if items is not None:
                total += math.log(_felt(level.relative_error(items)))
    return total


def _felt(error: float) -> float:
    """How bad a relative error is: hardly better below 1 %, and hardly worse where it hides the number altogether."""
    return (min(error, 1e6) + _SMALL) / (1.0 + min(error, 1e6) / _HOPELESS)


def _divided(
    scores: Sequence[Array], prices: Sequence[int], selection: Decimal, budget: Decimal
) -> tuple[float, list[int]] | None:
    """(the least sum of scores, the index of the epsilon of each span) within the budget; None where there is none.

    prices: releases of each span that a person pays for.
    """
    costs = [[math.ceil(price * (epsilon + selection) / budget * _STEPS) for epsilon in _EPSILONS] for price in prices]
    least, chosen = np.zeros(_STEPS + 1), []
    for score, steps in zip(scores, costs, strict=True):
        fresh, index = np.full(_STEPS + 1, math.inf), np.zeros(_STEPS + 1, np.int64)
        for i, cost in enumerate(steps):
            if cost <= _STEPS and math.isfinite(score[i]):
                reached = least[: _STEPS + 1 - cost] + score[i]
                better = reached < fresh[cost:]
                fresh[cost:][better], index[cost:][better] = reached[better], i
        least = fresh
        chosen.append(index)
    if math.isinf(least[-1]):
        return None
    picked, left = [], _STEPS
    for index, steps in zip(chosen[::-1], costs[::-1], strict=True):
        picked.append(int(index[left]))
        left -= steps[picked[-1]]
    return float(least[-1]), picked[::-1]


def _shape(
    name: str, asked: Sequence[PlannedQuestion], epsilon: Decimal, share: Decimal, assumed: Assumptions
) -> SketchShape:
    """The fewest buckets, then the fewest levels, that are nearly as good as the best."""
    numbers = _numbers(asked)

    def score(shape: SketchShape) -> float:
        return _score(PlannedSpan(name, epsilon, share, shape), asked, assumed)

    scores = [score(SketchShape(buckets, STANDARD.levels)) for buckets in _BUCKETS]
    good = min(scores) + numbers * math.log(_NEARLY)
    buckets = next(b for b, s in zip(_BUCKETS, scores, strict=True) if s <= good)
    return next(
        (
            shape
            for shape in (SketchShape(buckets, levels) for levels in _LEVELS)
            if score(shape) <= score(SketchShape(buckets, _MOST_LEVELS)) + numbers * math.log(_VERY_NEARLY)
        ),
        SketchShape(buckets, _MOST_LEVELS),
    )
