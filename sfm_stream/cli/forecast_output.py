"""A forecast for people, as tables with a few lines, and for programs, as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator

import click

from sfm_stream.answers.key_notation import finite
from sfm_stream.planning.forecast import AnswerForecast, Assumptions, Forecast, SpanForecast
from sfm_stream.readable import decimal_text, duration

UNIONS = (
    "Errors are relative standard errors. That of a union is the one of its interval where no item comes twice; its "
    "value is often closer (docs/planning.md)."
)


def say(expected: Forecast, assumed: Assumptions) -> None:
    """Print the tables of spans and answers, and what the plan costs."""
    from sfm_stream.cli.screen import print_table  # rich, which programs that read JSON need not wait for

    heads = ("released", "epsilon", "of it count", "sketch", "a day at most", "a person's day", "bytes", "in a union")
    selected = () if assumed.selection is None else ("selected 50 %", "99.9 %")
    print_table((*heads, *selected), (_span_cells(part, assumed) for part in expected.spans))
    click.echo()
    heads = ("asked", "from", "typical", "error", "large", "error", "known to 20 %", "")
    print_table(heads, map(_answer_cells, expected.answers))
    click.echo()
    for line in _costs(expected, assumed):
        click.echo(line)


def _span_cells(part: SpanForecast, assumed: Assumptions) -> tuple[str, ...]:
    span, price = part.span, decimal_text(part.price)
    cells = (
        span.name,
        decimal_text(span.epsilon),
        f"{float(span.count_share):.0%}",
        str(span.shape),
        f"{part.windows_a_day} x {price} = {decimal_text(part.epsilon_a_day)}",
        f"{part.person_windows} x {price} = {decimal_text(part.epsilon_of_person)}",
        f"{part.release_bytes:,}",
        f"up to {part.most_releases:,}",
    )
    if assumed.selection is None:
        return cells
    return (*cells, *(_items(number) for number in (part.selected_half, part.selected_nearly)))


def _answer_cells(answer: AnswerForecast) -> tuple[str, ...]:
    asked = answer.question
    return (
        asked.title,
        "" if answer.span is None else f"{answer.releases:,} x {answer.span.name}",
        _items(asked.typical),
        _share(answer.typical_error),
        _items(asked.large),
        _share(answer.large_error),
        "none" if math.isinf(answer.smallest_known) else f"from {answer.smallest_known:,.0f}",
        str(answer.verdict),
    )


def _costs(expected: Forecast, assumed: Assumptions) -> Iterator[str]:
    active = (
        "" if assumed.active is None else f" A person who is active in {assumed.active} windows of the shortest span"
    )
    yield (
        f"A day costs an item that is always active epsilon {decimal_text(expected.epsilon_a_day)} under one key"
        + (f", with delta {decimal_text(expected.delta_a_day)}" if expected.delta_a_day else "")
        + (f";{active.lower()} pays {decimal_text(expected.epsilon_of_person)}." if active else ".")
    )
    yield (
        f"{assumed.keys:,} keys: {_bytes(expected.published_bytes_a_day)} of releases a day, "
        f"{_bytes(expected.memory_bytes)} of memory for open windows."
    )
    replay = "" if expected.replay_s is None else f", {duration(round(expected.replay_s) * 1000)} of CPU time"
    yield (
        f"A restart reads up to {duration(expected.replay_ms)} of input again{replay}; the input has to keep it for so "
        "long, and for grace and downtime besides."
    )
    yield UNIONS


def _items(number: float | None) -> str:
    if number is None:
        return ""
    return "never" if math.isinf(number) else f"{number:,.0f}"


def _share(error: float | None) -> str:
    """An error in per cent, with two digits that count."""
    if error is None:
        return ""
    if error > 10:
        return "over 1000 %"
    return f"{100 * error:.2g} %" if error < 0.995 else f"{100 * error:.0f} %"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} bytes"


def forecast_json(expected: Forecast) -> dict[str, object]:
    """The forecast as JSON values. Decimals are text, as they were computed; null: not said, or infinite."""
    return {
        "spans": [
            {
                "span": part.span.name,
                "epsilon": decimal_text(part.span.epsilon),
                "count_share": decimal_text(part.span.count_share),
                "buckets": part.span.shape.buckets,
                "levels": part.span.shape.levels,
                "windows_a_day": part.windows_a_day,
                "epsilon_a_day": decimal_text(part.epsilon_a_day),
                "person_windows": part.person_windows,
                "epsilon_of_person": decimal_text(part.epsilon_of_person),
                "release_bytes": part.release_bytes,
                "published_bytes_a_day": part.published_bytes_a_day,
                "memory_bytes": part.memory_bytes,
                "most_releases_in_a_union": part.most_releases,
                "selected_half": _finite(part.selected_half),
                "selected_nearly": _finite(part.selected_nearly),
            }
            for part in expected.spans
        ],
        "answers": [
            {
                "span": answer.question.span,
                "times": answer.question.times,
                "typical": answer.question.typical,
                "large": answer.question.large,
                "from": None if answer.span is None else answer.span.name,
                "releases": answer.releases,
                "typical_error": _finite(answer.typical_error),
                "large_error": _finite(answer.large_error),
                "known_from": _finite(answer.smallest_known),
                "verdict": str(answer.verdict),
            }
            for answer in expected.answers
        ],
        "epsilon_a_day": decimal_text(expected.epsilon_a_day),
        "epsilon_of_person": decimal_text(expected.epsilon_of_person),
        "delta_a_day": decimal_text(expected.delta_a_day),
        "published_bytes_a_day": expected.published_bytes_a_day,
        "memory_bytes": expected.memory_bytes,
        "replay_s_of_input": expected.replay_ms // 1000,
        "replay_cpu_s": expected.replay_s,
    }


def _finite(number: float | None) -> float | None:
    return None if number is None else finite(number)
