"""The first page of a pipeline: the largest keys of one span, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfm_stream.answers.completeness import Completeness, completeness
from sfm_stream.answers.one_span import one_span
from sfm_stream.answers.top_keys import RankedRow, top_keys
from sfm_stream.errors import IncompatibleError, NothingFound
from sfm_stream.privacy.key_rules import SelectedKeys
from sfm_stream.serve.pages.asked import AskedSpan, asked_one_span, problem_words, question_of, written_border
from sfm_stream.serve.pages.grain_choices import GrainChoice, grain_choices, grid_of_grain
from sfm_stream.serve.pages.interval_chart import Bar, interval_bars
from sfm_stream.serve.pages.key_display import ShownKey, address, shown_key
from sfm_stream.serve.pages.links import Link
from sfm_stream.serve.pages.number_text import Written, written
from sfm_stream.serve.pages.row_lines import made_of, row_states
from sfm_stream.serve.pages.slots import STATES, State
from sfm_stream.serve.pages.time_text import span_words, time_words
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import Window

_FEW, _MANY = 20, 200
"""Keys that are shown at first, and at most."""


@dataclass(frozen=True, slots=True)
class RankedLine:
    """A key of the ranking. rank: the first and the last that its interval leaves open; one alone: (1, None)."""

    rank: tuple[int, int | None]
    key: ShownKey
    address: str
    numbers: Written
    states: tuple[State, ...]
    made_of: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class DecidedLine:
    """A released span. last, through: of the last window that is decided; "" where none is."""

    span: str
    last: str
    address: str
    through: str


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first page shows. problem: why there is no ranking. ranked: how many keys are."""

    span: AskedSpan
    span_words: str
    grains: tuple[Link, ...]
    steps: tuple[Link, ...]
    lines: tuple[RankedLine, ...]
    legend: tuple[State, ...]
    ranked: int
    more: str
    others_withheld: bool
    problem: str
    decided: tuple[DecidedLine, ...]
    partitions: int
    behind: tuple[str, ...]
    csv: str


def overview(served: ServedPipeline, reader: TopicReader, asked: dict[str, str], is_long: bool) -> Overview:
    """The page. asked: by, since, until and last as they were written. is_long: more keys than at first.

    Raises NothingFound where nothing is published yet, QuestionError.
    """
    done = completeness(reader, served.terms)
    problem, window = "", None
    rows: tuple[RankedRow, ...] = ()
    for span in _spans(served, asked):
        try:
            rows, window = _ranked(served, reader, span, _MANY if is_long else _FEW)
        except (NothingFound, IncompatibleError) as error:
            problem = problem or problem_words(error)
        else:
            problem = ""
            break
    zone, pipeline = served.config.calendar.zone, served.config.pipeline.id
    lines = _lines(served, rows, span)
    return Overview(
        span=span,
        span_words=span_words(window, "range", zone) if window else f"The last {span.grain.words}",
        grains=tuple(_grain_links(served, span)),
        steps=_steps(served, span, window, done) if window else (),
        lines=lines,
        legend=tuple(dict.fromkeys(state for line in lines for state in line.states)),
        ranked=rows[0].published if rows else 0,
        more="" if is_long else address("p", pipeline, **span.query, all="1"),
        others_withheld=bool(rows) and isinstance(served.config.keys, SelectedKeys),
        problem=problem,
        decided=tuple(_decided(served, done)),
        partitions=done.partitions,
        behind=tuple(_behind(done)),
        csv=address("v1", "pipelines", pipeline, "estimates", **{**span.query, "by": "range"}, format="csv"),
    )


def _spans(served: ServedPipeline, asked: dict[str, str]) -> list[AskedSpan]:
    """What was asked for; where nothing was, the last day, or the last hour where no day is over."""
    config = served.config
    if any(asked.values()):
        return [asked_one_span(config, **asked)]
    return [
        asked_one_span(config, **{**asked, "by": name})
        for name in ("day", "hour", "week", "month")
        if name in grain_choices(config)
    ]


def _ranked(
    served: ServedPipeline, reader: TopicReader, span: AskedSpan, count: int
) -> tuple[tuple[RankedRow, ...], Window]:
    question = one_span(reader, served.terms, question_of(served.config, span, "range"))
    return top_keys(reader, served.terms, replace(question, last=None), count), question.span


def _lines(served: ServedPipeline, rows: tuple[RankedRow, ...], span: AskedSpan) -> tuple[RankedLine, ...]:
    pipeline, query = served.config.pipeline.id, {"by": span.grain.name}
    bars = interval_bars([each.row.estimate for each in rows], [STATES[each.row.estimate.status].name for each in rows])
    lines = []
    for each, bar in zip(rows, bars, strict=True):
        key, row = shown_key(each.row.key), each.row
        rank = each.rank_low, each.rank_high if each.tied else None
        target = address("p", pipeline, "key", key=key.text, **query)
        lines.append(RankedLine(rank, key, target, written(row.estimate), row_states(row), made_of(row), bar))
    return tuple(lines)


def _grain_links(served: ServedPipeline, span: AskedSpan) -> list[Link]:
    """The last span of each grain that can be asked for by its number."""
    pipeline = served.config.pipeline.id
    return [
        Link(f"last {choice.words}", address("p", pipeline, by=choice.name), choice.name == span.grain.name)
        for choice in grain_choices(served.config).values()
        if choice.one
    ]


def _steps(served: ServedPipeline, span: AskedSpan, shown: Window, done: Completeness) -> tuple[Link, ...]:
    """To the span of the grain before the one that is shown, and to the one behind it where it is decided."""
    grid = grid_of_grain(served.config, span.grain.name)
    before, behind = grid.floor(max(0, shown.start_ms - 1)), grid.end(grid.floor(shown.end_ms))
    links = [_step(served, span.grain, "Earlier", before, shown.start_ms)]
    if behind <= done.through_ms:
        links.append(_step(served, span.grain, "Later", shown.end_ms, behind))
    return tuple(links)


def _step(served: ServedPipeline, grain: GrainChoice, words: str, start_ms: int, end_ms: int) -> Link:
    zone = served.config.calendar.zone
    times = {"from_": written_border(start_ms, zone), "to": written_border(end_ms, zone)}
    return Link(words, address("p", served.config.pipeline.id, by=grain.name, **times))


def _decided(served: ServedPipeline, done: Completeness) -> list[DecidedLine]:
    pipeline, zone, lines = served.config.pipeline.id, done.zone, []
    for each in done.spans:
        if each.last is None or each.through_ms is None:
            lines.append(DecidedLine(each.name, "", "", ""))
            continue
        times = {"from_": written_border(each.last.start_ms, zone), "to": written_border(each.last.end_ms, zone)}
        name = each.name if each.name in grain_choices(served.config) else ""
        target = address("p", pipeline, by=name, **times)
        lines.append(
            DecidedLine(each.name, span_words(each.last, each.name, zone), target, time_words(each.through_ms, zone))
        )
    return lines


def _behind(done: Completeness) -> list[str]:
    lines = []
    for each in done.open:
        come = (
            "has decided nothing yet" if each.through_ms is None else f"is at {time_words(each.through_ms, done.zone)}"
        )
        lines.append(f"Partition {each.partition} {come}.")
    return lines
