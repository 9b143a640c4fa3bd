"""`sfm-stream plan`: which spans to release at which epsilon, and what each answer will be worth."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import click
from click.core import ParameterSource

from sfm_stream.cli.forecast_output import forecast_json, say
from sfm_stream.cli.numbers import above_zero, selection_price
from sfm_stream.cli.output import echo_json
from sfm_stream.config.config import load_config
from sfm_stream.config.tables import EventTable
from sfm_stream.pipeline.rollup.calendar import calendar
from sfm_stream.planning.choice import choose
from sfm_stream.planning.configuration import toml_lines
from sfm_stream.planning.forecast import Assumptions, Selection, forecast, planned_span
from sfm_stream.planning.noise import questions_of
from sfm_stream.planning.questions import NAMED_MS, planned_question
from sfm_stream.privacy.key_rules import KeyRule, SelectedKeys
from sfm_stream.sketch.shape import SketchShape

_CHOICES = ("budget", "reread", "selection", "shape", "zone", "as_toml")
"""What a configuration has of its own, or what makes one."""


@click.command()
@click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Judge the spans of this configuration, instead of choosing some.",
)
@click.option(
    "--ask",
    "asked",
    type=(str, click.IntRange(1), click.IntRange(1)),
    multiple=True,
    metavar="SPAN TYPICAL LARGE",
    help="A question: a span (5m, hour, day, week, month) or a union of several (7d), and how many items a typical and "
    "a large key have in it. Repeat it for each question.",
)
@click.option(
    "--budget", callback=above_zero, metavar="EPSILON", help="Epsilon that a day may cost a person, under one key."
)
@click.option(
    "--active",
    type=click.IntRange(1),
    help="Windows of the shortest span in which a person is active a day.  [default: all]",
)
@click.option("--keys", type=click.IntRange(1), default=1000, show_default=True, help="Keys that are open at a time.")
@click.option("--events", type=click.IntRange(1), help="Events a day, for the time that a restart takes.")
@click.option(
    "--reread",
    type=click.Choice(list(NAMED_MS)),
    default="day",
    show_default=True,
    help="The longest span that may be released from raw: the input can be read again for so long.",
)
@click.option(
    "--selection",
    nargs=2,
    callback=selection_price,
    metavar="EPSILON DELTA",
    help="Keys are selected, at this price a release.",
)
@click.option("--shape", nargs=2, type=int, metavar="BUCKETS LEVELS", help="Of all sketches.  [default: chosen]")
@click.option("--zone", default="UTC", show_default=True, help="Whose days, weeks and months they are.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the errors into this file.")
@click.option("--toml", "as_toml", is_flag=True, help="The configuration alone.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def plan(
    path: Path | None,
    asked: tuple[tuple[str, int, int], ...],
    budget: Decimal | None,
    active: int | None,
    keys: int,
    events: int | None,
    reread: str,
    selection: Selection | None,
    shape: tuple[int, int] | None,
    zone: str,
    plot: Path | None,
    as_toml: bool,
    as_json: bool,
) -> None:
    """Plan what to release, for what will be asked and what a person's day may cost.

    All that is given is an assumption in public: nothing is read and nothing is counted. The answer is a table of
    spans, one of the errors to be expected, what it costs, and a configuration to paste.
    """
    questions = tuple(planned_question(*each) for each in asked)
    if path is not None:
        _refuse_choices(click.get_current_context())
        config = load_config(path)
        days, selection = config.calendar, _selection_of(config.keys)
        spans = [planned_span(span) for span in config.budget.spans]
        questions = questions or tuple(questions_of(spans, days))
        assumed = Assumptions(questions, days, active, keys, events, selection)
    elif questions and budget is not None:
        days = calendar(zone, 1, EventTable.model_fields["earliest"].default)
        assumed = Assumptions(questions, days, active, keys, events, selection)
        spans = choose(assumed, budget, reread, SketchShape(*shape) if shape else None)
    else:
        raise click.UsageError(
            "--ask and --budget are needed: what will be asked, and what a person's day may cost. Or --config"
        )
    expected = forecast(spans, assumed)
    toml = "" if path else "".join(f"{line}\n" for line in toml_lines(spans, assumed, expected.epsilon_a_day))
    if plot is not None:
        from sfm_stream.cli.forecast_picture import draw  # apart, as few ask for it

        draw(expected, plot)
    if as_json:
        echo_json(forecast_json(expected) | ({"configuration": toml} if toml else {}))
        return
    if not as_toml:
        say(expected, assumed)
    if toml:
        click.echo(toml if as_toml else f"\n{toml}", nl=False)


def _refuse_choices(context: click.Context) -> None:
    """Raise UsageError for an option that --config leaves no room for."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _CHOICES and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]}: not with --config, whose spans are judged as they are")


def _selection_of(keys: KeyRule) -> Selection | None:
    return Selection(keys.epsilon, keys.delta) if isinstance(keys, SelectedKeys) else None
