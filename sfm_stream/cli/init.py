"""`sfm-stream init`: a configuration to begin with, from answers or options, with the spans that a plan chooses."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from sfm_stream.cli.init_answers import Answers, asked_of_terminal, require_answers, with_guesses
from sfm_stream.cli.init_text import given_lines
from sfm_stream.cli.numbers import above_zero, selection_price
from sfm_stream.cli.streams import fault
from sfm_stream.config.config import parse_config
from sfm_stream.config.tables import EventTable
from sfm_stream.errors import UsageError
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.planning.choice import choose
from sfm_stream.planning.configuration import toml_lines
from sfm_stream.planning.forecast import AnswerWorth, Assumptions, Forecast, PlannedSpan, Selection, forecast
from sfm_stream.planning.noise import noisy_levels
from sfm_stream.planning.questions import PlannedQuestion, planned_question
from sfm_stream.units import CALENDAR_UNITS

_WORTHLESS = (AnswerWorth.NOISE, AnswerWorth.NOT_RELEASED, AnswerWorth.WITHHELD)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="app.toml")
@click.option("--id", "name", help="The name of the pipeline.  [default: that of the file]")
@click.option(
    "--input",
    "source",
    metavar="PATH",
    help="A file of JSON lines, plain or gzip; a relative path is relative to FILE.",
)
@click.option("--grows", is_flag=True, help="The input file still grows: it is read in order of time.")
@click.option("--bootstrap", multiple=True, metavar="HOST:PORT", help="A broker, in place of --input. Repeat it.")
@click.option("--topic", help="The input topic, keyed by the counting key.")
@click.option(
    "--timestamps",
    type=click.Choice(["log_append_time", "create_time"]),
    help="What message.timestamp.type of the topic is.  [default: log_append_time]",
)
@click.option("--key", "keys", multiple=True, metavar="FIELD", help="The field to count by. Repeat it for several.")
@click.option("--item", metavar="FIELD", help="The field whose distinct values are counted.")
@click.option("--time", metavar="FIELD", help="The field with the event time.")
@click.option("--unit", metavar="UNIT", help="How it is written: s, ms, us, ns, iso8601, or a strptime pattern.")
@click.option("--grace", metavar="DURATION", help="How late a record may be, in order of time.  [default: 5m]")
@click.option("--declare", "declared", multiple=True, metavar="KEY", help="A key of the public list. Repeat it.")
@click.option(
    "--selection",
    nargs=2,
    callback=selection_price,
    metavar="EPSILON DELTA",
    help="The price of selecting keys, where no list is declared.  [default: 0.05 1e-9]",
)
@click.option(
    "--ask",
    "asked",
    type=(str, click.IntRange(1), click.IntRange(1)),
    multiple=True,
    metavar="SPAN TYPICAL LARGE",
    help="What will be asked, and how many items a typical and a large key have in it, as in `plan`. Repeat it.",
)
@click.option("--budget", callback=above_zero, metavar="EPSILON", help="What a day may cost a person, under one key.")
@click.option(
    "--active", type=click.IntRange(1), help="Windows of the shortest span a day in which a person is active."
)
@click.option("--zone", help="Whose days, weeks and months they are.  [default: UTC]")
@click.option("--output", metavar="PATH", help="The output file, relative to FILE too.  [default: ID.sqlite]")
def init(file: Path, asked: tuple[tuple[str, int, int], ...], selection: Selection | None, **given: Any) -> None:
    """Write a commented configuration into FILE (app.toml), which `check` accepts. FILE must not be there yet.

    On a terminal it asks for what no option says; elsewhere it names the options that are missing. Of an input file
    it looks at the first records and proposes fields and the unit of their times: names that at least half of the
    records have are shown, and what fields hold never is. Which spans are released at which epsilon is chosen as `plan`
    does it, for what will be asked and what a person's day may cost; it is refused where an answer would be noise.
    """
    if file.exists():
        raise click.UsageError(f"{file} is there already, and is left alone; name another file")
    questions = tuple(planned_question(*each) for each in asked)
    answers = with_guesses(Answers(file=file, questions=questions, selection=selection, **given))
    if sys.stdin is not None and sys.stdin.isatty():
        answers = asked_of_terminal(answers)
    require_answers(answers)
    text, expected = _configuration(answers)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise fault(str(file), error) from None
    click.echo(f"{file} is written:\n")
    for part in expected.spans:
        click.echo(f"  released: each {part.span.name}, at epsilon {part.price:f} in all")
    for answer in expected.answers:
        click.echo(f"  asked: {answer.question.title}: {answer.verdict}")
    click.echo(f"\nNext: sfm-stream check {file}")


def _configuration(answers: Answers) -> tuple[str, Forecast]:
    """(the text of the configuration, what it will be worth). Raises UsageError where an answer would be noise."""
    days = calendar(answers.zone or "UTC", 1, EventTable.model_fields["earliest"].default)
    budget = answers.budget or Decimal(0)
    questions = answers.questions
    spans, assumed = _planned(answers, questions, days, budget)
    if list(noisy_levels(spans, days)) and not any(question.span in CALENDAR_UNITS for question in questions):
        # Days are rolled up whatever is asked: where hours of them are noise, they are released from raw as well.
        last = questions[-1]
        spans, assumed = _planned(
            answers, (*questions, PlannedQuestion("day", 1, last.typical, last.large)), days, budget
        )
    expected = forecast(spans, assumed)
    worthless = [f"{each.question.title}: {each.verdict}" for each in expected.answers if each.verdict in _WORTHLESS]
    if problems := [*worthless, *noisy_levels(spans, days)]:
        raise UsageError(
            f"at epsilon {budget} a day some of it would be worth nothing ({'; '.join(problems)}). Raise --budget, ask "
            "for longer spans, or say with --active in how few windows a day a person is"
        )
    lines = toml_lines(spans, assumed, expected.epsilon_a_day, given_lines(answers))
    text = "".join(f"{line}\n" for line in lines)
    parse_config(text, answers.file.parent, str(answers.file))
    return text, expected


def _planned(
    answers: Answers, questions: tuple[PlannedQuestion, ...], days: Calendar, budget: Decimal
) -> tuple[list[PlannedSpan], Assumptions]:
    assumed = Assumptions(questions, days, answers.active, selection=answers.price_of_selection)
    longest = "month" if answers.source and not answers.grows else "day"
    return choose(assumed, budget, longest, None), assumed
