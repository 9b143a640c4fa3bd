"""The page of one key: its trend, the number of the whole span, the table, and where to go from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfm_stream.answers.answer import answer
from sfm_stream.answers.known_keys import known_among
from sfm_stream.answers.question import Question
from sfm_stream.errors import IncompatibleError, NothingFound, QuestionError
from sfm_stream.serve.pages.asked import AskedSpan, problem_words, question_of, settled_question, written_border
from sfm_stream.serve.pages.counted_time import counted_time
from sfm_stream.serve.pages.grain_choices import GrainChoice, grain_choices, grid_of_grain
from sfm_stream.serve.pages.key_display import ShownKey, address, other_readings, shown_key
from sfm_stream.serve.pages.links import Link
from sfm_stream.serve.pages.number_text import Written, written
from sfm_stream.serve.pages.row_lines import RowLine, made_of, row_line, row_states, summary
from sfm_stream.serve.pages.slots import BEFORE, OPEN, Slot, State, absence, require_few, slots
from sfm_stream.serve.pages.time_text import span_words
from sfm_stream.serve.pages.trend_chart import NARROW, WIDE, TrendChart, trend_chart
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.transport.contract import TopicReader
from sfm_stream.types import KeyPart, Window
from sfm_stream.windows.grid import Grid
from sfm_stream.wire.keys import decode_key


@dataclass(frozen=True, slots=True)
class WholeSpan:
    """The number of the whole span, or why there is none."""

    numbers: Written | None
    states: tuple[State, ...]
    made_of: str
    problem: str


@dataclass(frozen=True, slots=True)
class KeyView:
    """What the page of a key shows. problem: why there is no answer; then there are no lines and no charts.

    readings: other keys that are written like this one. is_decided: all of the span is.
    """

    key: ShownKey
    span: AskedSpan
    span_words: str
    grains: tuple[Link, ...]
    steps: tuple[Link, ...]
    readings: tuple[Link, ...]
    compare: str
    csv: str = ""
    json: str = ""
    whole: WholeSpan | None = None
    lines: tuple[RowLine, ...] = ()
    charts: tuple[TrendChart, ...] = ()
    summary: str = ""
    has_band: bool = False
    is_decided: bool = True
    legend: tuple[State, ...] = ()
    problem: str = ""


def key_view(served: ServedPipeline, reader: TopicReader, text: str, span: AskedSpan) -> KeyView:
    """The page of the key that a text stands for. Raises QuestionError for a span that cannot be asked for."""
    config, zone, grain = served.config, served.config.calendar.zone, span.grain
    question = question_of(config, span, grain.name, (text,))
    view = _without_answer(served, _shown(question, text), span)
    counted = counted_time(reader, config.pipeline.id, zone)
    if counted is None:
        return replace(view, problem="Nothing is published yet: no window is closed.")
    grid = grid_of_grain(config, grain.name)
    try:
        question = (
            replace(question, span=_bounded(question, span, counted, grid)) if question.last is None else question
        )
        question = settled_question(reader, question, config.pipeline.id)
        require_few(question.span, grid)
        rows = tuple(answer(reader, served.terms, question).rows)
    except (NothingFound, IncompatibleError) as error:
        return replace(view, problem=problem_words(error), readings=_readings(served, reader, text, span))
    made = slots(rows, question.span, grid, counted, absence(config.keys))
    made = made if span.since else _trimmed(made)
    asked = Window(made[0].window.start_ms, made[-1].window.end_ms)
    whole = Window(max(asked.start_ms, counted.start_ms), min(asked.end_ms, counted.end_ms))
    return replace(
        view,
        span_words=span_words(asked, "range", zone),
        csv=_api_address(served, view.key, grain, asked, "csv"),
        json=_api_address(served, view.key, grain, asked, ""),
        steps=_steps(served, view.key, span, asked, counted),
        whole=_whole_span(served, reader, replace(question, span=whole)) if len(made) > 1 else None,
        lines=tuple(row_line(slot, grain.name, zone) for slot in made),
        charts=tuple(trend_chart(made, zone, size) for size in (WIDE, NARROW)),
        summary=summary(made, grain, zone),
        is_decided=asked.end_ms <= counted.end_ms,
        has_band=any(slot.state.name == "ok" for slot in made),
        legend=_legend(made),
    )


def _bounded(question: Question, span: AskedSpan, counted: Window, grid: Grid) -> Window:
    """The span of a question that gives no `last`: a border that is not given is that of what is counted.

    Where neither is, the latest spans of the grain, the last of which may still be open.
    """
    end_ms = question.span.end_ms if span.until else max(grid.ceil(counted.end_ms), question.span.start_ms + 1)
    start_ms = question.span.start_ms if span.since else grid.floor(min(counted.start_ms, end_ms - 1))
    if not span.since and not span.until:
        latest_ms = end_ms
        for _ in range(span.grain.latest):
            latest_ms = grid.floor(max(0, latest_ms - 1))
        start_ms = max(start_ms, latest_ms)
    return Window(start_ms, end_ms)


def _shown(question: Question, text: str) -> ShownKey:
    return ShownKey(text, text) if question.keys is None else shown_key(_first_key(question))


def _first_key(question: Question) -> tuple[KeyPart, ...]:
    assert question.encoded_keys is not None
    return decode_key(min(question.encoded_keys))


def _without_answer(served: ServedPipeline, key: ShownKey, span: AskedSpan) -> KeyView:
    pipeline = served.config.pipeline.id
    return KeyView(
        key=key,
        span=span,
        span_words="",
        grains=tuple(_grain_links(served, key, span)),
        steps=(),
        readings=(),
        compare=address("p", pipeline, "compare", key=key.text),
    )


def _grain_links(served: ServedPipeline, key: ShownKey, span: AskedSpan) -> list[Link]:
    """The same key by each grain: in the same span where it was given by times."""
    pipeline, links = served.config.pipeline.id, []
    for choice in grain_choices(served.config).values():
        times = {"from_": span.since, "to": span.until} if span.since or span.until else {}
        target = address("p", pipeline, "key", key=key.text, by=choice.name, **times)
        links.append(Link(choice.words, target, choice.name == span.grain.name))
    return links


def _readings(served: ServedPipeline, reader: TopicReader, text: str, span: AskedSpan) -> tuple[Link, ...]:
    """Other keys that the text may mean, as far as anything is published under them."""
    pipeline, readings = served.config.pipeline.id, other_readings(text, len(served.config.event.key))
    keys = [shown_key(decode_key(key)) for key in known_among(reader, served.terms, readings)]
    return tuple(Link(key.short, address("p", pipeline, "key", key=key.text, **span.query)) for key in keys)


def _trimmed(made: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Without the spans before anything was counted, of which a trend of the last days may begin with many."""
    first = next(number for number, slot in enumerate(made) if slot.state is not BEFORE)
    return made[first:]


def _whole_span(served: ServedPipeline, reader: TopicReader, question: Question) -> WholeSpan:
    try:
        (row, *_) = answer(reader, served.terms, replace(question, grain="range")).rows
    except (NothingFound, IncompatibleError, QuestionError) as error:
        return WholeSpan(None, (), "", problem_words(error))
    return WholeSpan(written(row.estimate), row_states(row), made_of(row), "")


def _steps(served: ServedPipeline, key: ShownKey, span: AskedSpan, shown: Window, counted: Window) -> tuple[Link, ...]:
    """To as many spans earlier, and later, where anything is counted there."""
    grid, zone = grid_of_grain(served.config, span.grain.name), served.config.calendar.zone
    count = grid.count(grid.floor(shown.start_ms), grid.ceil(shown.end_ms))
    start_ms, end_ms = shown.start_ms, shown.end_ms
    for _ in range(count):
        start_ms, end_ms = grid.floor(max(0, start_ms - 1)), grid.end(end_ms)
    pairs = (("Earlier", start_ms, shown.start_ms), ("Later", shown.end_ms, end_ms))
    return tuple(
        Link(words, _key_address(served, key, span.grain, written_border(low, zone), written_border(high, zone)))
        for words, low, high in pairs
        if low < counted.end_ms and high > counted.start_ms
    )


def _key_address(served: ServedPipeline, key: ShownKey, grain: GrainChoice, since: str, until: str) -> str:
    return address("p", served.config.pipeline.id, "key", key=key.text, by=grain.name, from_=since, to=until)


def _api_address(served: ServedPipeline, key: ShownKey, grain: GrainChoice, span: Window, form: str) -> str:
    zone, path = served.config.calendar.zone, ("v1", "pipelines", served.config.pipeline.id, "estimates")
    times = {"from_": written_border(span.start_ms, zone), "to": written_border(span.end_ms, zone)}
    return address(*path, key=key.text, by=grain.name, **times, format=form)


def _legend(made: Sequence[Slot]) -> tuple[State, ...]:
    """The states that the chart has, ordinary ones aside, each once."""
    found = dict.fromkeys(slot.state for slot in made if slot.state.words)
    return (*found, *((OPEN,) if any(slot.is_open for slot in made) else ()))
