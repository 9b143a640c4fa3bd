"""Two keys, or two spans, side by side: their numbers, the difference, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfm_stream.answers.answer_row import AnswerRow
from sfm_stream.answers.compared import ComparedRow, compare
from sfm_stream.answers.known_keys import known_keys
from sfm_stream.answers.pairs import answer_pair
from sfm_stream.answers.question import Question
from sfm_stream.errors import IncompatibleError, NothingFound, QuestionError
from sfm_stream.estimation.estimate import Estimate
from sfm_stream.estimation.pair import PairEstimate
from sfm_stream.serve.pages.asked import AskedSpan, asked_one_span, problem_words, question_of
from sfm_stream.serve.pages.interval_chart import Bar, interval_bars
from sfm_stream.serve.pages.key_display import address, shown_key
from sfm_stream.serve.pages.number_text import Written, share_text, written, written_difference
from sfm_stream.serve.pages.row_lines import row_states
from sfm_stream.serve.pages.slots import STATES, State
from sfm_stream.serve.pages.time_text import span_words
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader

_OFFERED = 200
"""Keys that the fields offer; others can be written."""


@dataclass(frozen=True, slots=True)
class AskedSide:
    """One side as it was written. key: "" where none was chosen."""

    key: str
    span: AskedSpan


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One number of the comparison. about: what it counts, in a sentence; address: its trend, "" for what has none."""

    name: str
    about: str
    address: str
    numbers: Written | None
    states: tuple[State, ...]
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class CompareView:
    """The page. verdict: the difference in words. problem: why there is no answer; apart: why nothing is said of what
    the two have in common.
    """

    sides: tuple[AskedSide, AskedSide]
    offered: tuple[str, ...]
    lines: tuple[ComparedLine, ...] = ()
    difference: Written | None = None
    verdict: str = ""
    problem: str = ""
    apart: str = ""
    json: str = ""


def compare_view(served: ServedPipeline, reader: TopicReader, asked: tuple[Mapping[str, str], ...]) -> CompareView:
    """The comparison of two sides, each with key, by, since, until and last as they were written.

    What is not given of the second side is that of the first; without keys there is only the form. Raises
    QuestionError.
    """
    sides = _sides(served, *asked)
    keys = known_keys(reader, served.terms, limit=_OFFERED, held=served.held_keys).keys
    offered = tuple(shown_key(key).text for key in keys)
    view = CompareView(sides, offered)
    if not all(side.key for side in sides):
        return view
    first, second = (question_of(served.config, side.span, "range", (side.key,)) for side in sides)
    try:
        (row,) = compare(reader, served.terms, first, second)
    except (NothingFound, IncompatibleError) as error:
        return CompareView(sides, offered, problem=problem_words(error))
    parts, apart = _parts(served, reader, first, second, row)
    names = _names(served, row, sides)
    difference = written_difference(row.difference)
    return CompareView(
        sides,
        offered,
        lines=tuple(_lines(served, sides, row, parts, names)),
        difference=difference,
        verdict=_verdict(row, names),
        apart=apart,
        json=_json(served, sides, "compare" if parts is None else "pair"),
    )


def _sides(served: ServedPipeline, first: Mapping[str, str], second: Mapping[str, str]) -> tuple[AskedSide, AskedSide]:
    times = ("since", "until", "last")
    same = not any(second[name] for name in times)
    spans = [
        asked_one_span(served.config, first["by"], *(each[name] for name in times))
        for each in (first, first if same else second)
    ]
    return AskedSide(first["key"], spans[0]), AskedSide(second["key"] or first["key"] * (not same), spans[1])


def _parts(
    served: ServedPipeline, reader: TopicReader, first: Question, second: Question, row: ComparedRow
) -> tuple[PairEstimate | None, str]:
    """What both have in common, or why nothing is said of it."""
    if row.first is None or row.second is None:
        return None, ""
    try:
        return answer_pair(reader, served.terms, first, second).parts, ""
    except (NothingFound, IncompatibleError, QuestionError) as error:
        return None, problem_words(error)


def _names(served: ServedPipeline, row: ComparedRow, sides: tuple[AskedSide, AskedSide]) -> tuple[str, str]:
    """What tells the two sides apart: their keys, or else their spans, or both."""
    zone = served.config.calendar.zone
    rows = row.first, row.second
    keys = [shown_key(each.key).short if each else side.key for each, side in zip(rows, sides, strict=True)]
    spans = [span_words(each.window, "range", zone) if each else "" for each in rows]
    if keys[0] == keys[1]:
        return spans[0] or "the first span", spans[1] or "the second span"
    if len(set(filter(None, spans))) < 2:
        return keys[0], keys[1]
    return f"{keys[0]}, {spans[0]}", f"{keys[1]}, {spans[1]}"


def _lines(
    served: ServedPipeline,
    sides: tuple[AskedSide, AskedSide],
    row: ComparedRow,
    parts: PairEstimate | None,
    names: tuple[str, str],
) -> list[ComparedLine]:
    numbers: list[tuple[str, str, str, Estimate | None, tuple[State, ...]]] = []
    for name, each, side in zip(names, (row.first, row.second), sides, strict=True):
        states = row_states(each) if each else ()
        numbers.append((name, _about(served, each), _trend(served, side), each.estimate if each else None, states))
    if parts is not None:
        for name, about, estimate in (
            ("Both", "in the one and in the other", parts.both),
            (f"Only {names[0]}", "in the first and not in the second", parts.only_first),
            (f"Only {names[1]}", "in the second and not in the first", parts.only_second),
            ("Either", "in the one or in the other", parts.either),
        ):
            numbers.append((name, about, "", estimate, tuple(s for s in [STATES[estimate.status]] if s.words)))
    known = [estimate for *_, estimate, _ in numbers if estimate is not None]
    bars = iter(interval_bars(known, [STATES[each.status].name for each in known]))
    return [
        ComparedLine(name, about, target, written(estimate), states, next(bars))
        if estimate
        else ComparedLine(name, about, target, None, states, None)
        for name, about, target, estimate, states in numbers
    ]


def _about(served: ServedPipeline, row: AnswerRow | None) -> str:
    return span_words(row.window, "range", served.config.calendar.zone) if row else "no release"


def _trend(served: ServedPipeline, side: AskedSide) -> str:
    return address("p", served.config.pipeline.id, "key", key=side.key, by=side.span.grain.name)


def _verdict(row: ComparedRow, names: tuple[str, str]) -> str:
    """Which one is larger, where that is known."""
    sign = row.difference.sign
    if sign is None:
        return "Which of the two has more is not known: the interval of the difference holds 0."
    words = f"{names[1]} has {'more' if sign > 0 else 'fewer'} than {names[0]}"
    return f"{words}, by {share_text(abs(row.change))}." if row.change is not None else f"{words}."


def _json(served: ServedPipeline, sides: tuple[AskedSide, AskedSide], what: str) -> str:
    query: dict[str, str] = {}
    for prefix, side in zip(("", "other_"), sides, strict=True):
        parts = {"key": side.key, **side.span.query}
        parts.pop("by", None)
        query |= {f"{prefix}{name}": value for name, value in parts.items()}
    return address("v1", "pipelines", served.config.pipeline.id, what, **query)
