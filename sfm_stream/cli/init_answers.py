"""What `init` has to know: from options, from the first records of the input, and from whoever sits at a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import click

from sfm_stream.composition.field_guess import FieldGuess, SeenField, guess_fields
from sfm_stream.errors import UsageError
from sfm_stream.planning.forecast import Selection
from sfm_stream.planning.questions import PlannedQuestion, planned_question
from sfm_stream.readable import visible
from sfm_stream.transport.files.format_guess import format_hint

CHEAP_SELECTION = Selection(Decimal("0.05"), Decimal("1e-9"))
"""The price of a selection that nobody names."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers so far; None or empty for what is not answered. Each is the option of its name."""

    file: Path
    questions: tuple[PlannedQuestion, ...] = ()
    selection: Selection | None = None
    name: str | None = None
    source: str | None = None
    grows: bool = False
    bootstrap: tuple[str, ...] = ()
    topic: str | None = None
    timestamps: str | None = None
    keys: tuple[str, ...] = ()
    item: str | None = None
    time: str | None = None
    unit: str | None = None
    grace: str | None = None
    declared: tuple[str, ...] = ()
    budget: Decimal | None = None
    active: int | None = None
    zone: str | None = None
    output: str | None = None
    is_naive: bool = False
    """Whether the times that were looked at have no offset."""
    integers: frozenset[str] = frozenset()
    """Fields that hold integers alone, as far as was looked."""
    guessed: frozenset[str] = frozenset()
    """Names of the answers that are a guess."""

    @property
    def pipeline(self) -> str:
        """The name of the pipeline: as it is given, or made of that of the file."""
        made = re.sub(r"[^a-z0-9._-]+", "-", self.file.stem.lower()).strip("-._")[:64]
        return self.name or made or "counts"

    @property
    def clock(self) -> str:
        return self.timestamps or "log_append_time"

    @property
    def output_path(self) -> str:
        return self.output or f"{self.pipeline}.sqlite"

    @property
    def price_of_selection(self) -> Selection | None:
        """None where a list of keys is declared."""
        return None if self.declared else self.selection or CHEAP_SELECTION


def with_guesses(answers: Answers) -> Answers:
    """With what the first records of an input file look like, where no option says otherwise.

    What is guessed is told on standard error. Raises click.UsageError for options that do not go together.
    """
    _refuse_what_clashes(answers)
    if answers.source is None or answers.source == "-":
        return answers
    path = str(answers.file.parent / answers.source)
    guess = guess_fields(path)
    time = guess.time if answers.time is None else next((f for f in guess.fields if f.path == answers.time), None)
    found = replace(
        answers,
        guessed=frozenset(name for name in ("keys", "item", "time", "unit") if not getattr(answers, name)),
        keys=answers.keys or ((guess.key.path,) if guess.key else ()),
        item=answers.item or (guess.item.path if guess.item else None),
        time=answers.time or (time.path if time else None),
        unit=answers.unit or (time.unit if time and time.unit else None),
        integers=frozenset(each.path for each in guess.fields if each.is_integer),
        is_naive=bool(time and time.is_naive and answers.unit in (None, time.unit)),
    )
    for line in _seen(guess) if guess.fields else _nothing_seen(guess, path):
        click.echo(line, err=True)
    return found


def asked_of_terminal(answers: Answers) -> Answers:
    """With what is answered on the terminal to each question that is still open. Raises click.Abort at its end."""
    if answers.source is None and not answers.bootstrap:
        where = click.prompt("A file of JSON lines, or the address of a broker (host:port)", err=True)
        is_broker = bool(re.fullmatch(r"[A-Za-z0-9._-]+:[0-9]{1,5}", where))
        answers = with_guesses(replace(answers, **({"bootstrap": (where,)} if is_broker else {"source": where})))
    if answers.bootstrap and answers.topic is None:
        answers = replace(answers, topic=click.prompt("Its input topic", err=True))
    if _is_open(answers, "keys"):
        keys = click.prompt(
            "Count by which field (several with commas)", default=",".join(answers.keys) or None, err=True
        )
        answers = replace(answers, keys=tuple(each.strip() for each in keys.split(",")))
    fields = {"item": "Distinct values of which field"}
    if answers.source is not None:
        fields |= {"time": "The field with the time", "unit": "Its unit (s, ms, us, ns, iso8601)"}
    for name, question in fields.items():
        if _is_open(answers, name):
            answers = replace(answers, **{name: click.prompt(question, default=getattr(answers, name), err=True)})
    if not answers.questions:
        answers = replace(answers, questions=tuple(_questions()))
    if answers.budget is None:
        answers = replace(answers, budget=_number("Epsilon that a day may cost a person", "2"))
    return answers


def _is_open(answers: Answers, name: str) -> bool:
    """Whether a question is not answered by whoever calls: it has no answer, or a guess."""
    return not getattr(answers, name) or name in answers.guessed


def require_answers(answers: Answers) -> None:
    """Raise click.UsageError, with the options, where something is not answered."""
    missing = []
    if answers.source is None and not answers.bootstrap:
        missing.append("--input, or --bootstrap and --topic")
    if answers.bootstrap and answers.topic is None:
        missing.append("--topic")
    missing += ["--key"] * (not answers.keys) + ["--item"] * (answers.item is None)
    if answers.source is not None and answers.time is None:
        missing.append("--time")
    missing += ["--ask"] * (not answers.questions) + ["--budget"] * (answers.budget is None)
    if missing:
        raise click.UsageError(f"missing: {', '.join(missing)}. On a terminal they are asked for")
    if len(answers.keys) > 1:
        for key in answers.declared:
            _require_list(key, len(answers.keys))


def _refuse_what_clashes(answers: Answers) -> None:
    if answers.source is not None and answers.bootstrap:
        raise click.UsageError("--input and --bootstrap: one of them")
    for name, value in (("--topic", answers.topic), ("--timestamps", answers.timestamps)):
        if value is not None and answers.source is not None:
            raise click.UsageError(f"{name}: is for a cluster, with --bootstrap")
    if answers.declared and answers.selection is not None:
        raise click.UsageError("--declare and --selection: keys are declared or selected")


def _require_list(key: str, fields: int) -> None:
    try:
        parts = json.loads(key)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or len(parts) != fields or not all(type(each) in (str, int) for each in parts):
        raise click.UsageError(
            f"--declare: a key of {fields} fields is a list in JSON, such as {json.dumps(['a'] * fields)}"
        )


def _seen(guess: FieldGuess) -> Iterator[str]:
    """What was seen of each field: its name, and no value of it.

    A name that most records do not have may be a value: that of a user, in an object with an entry for each.
    """
    shown = [each for each in guess.fields if 2 * each.records >= guess.records]
    yield f"the first {guess.records:,} records have these fields:"
    roles = {guess.time: "the time", guess.item: "what is counted", guess.key: "what it is counted by"}
    for seen in shown:
        role = f", perhaps {roles[seen]}" if seen in roles else ""
        yield f"  {visible(seen.path)}: in {seen.records:,}, {seen.distinct:,} different{_kind(seen)}{role}"
    if others := len(guess.fields) - len(shown):
        yield f"  and {others:,} in less than half of them, whose names are not shown: they may be content"


def _nothing_seen(guess: FieldGuess, path: str) -> Iterator[str]:
    yield f"the first {guess.records:,} records have no field of a JSON object"
    if hint := format_hint(path):
        yield hint


def _kind(seen: SeenField) -> str:
    if not seen.unit:
        return ""
    return f", times in {seen.unit}" + (" without offset" if seen.is_naive else "")


def _questions() -> Iterator[PlannedQuestion]:
    """What will be asked, until there is no more."""
    while True:
        written = click.prompt("A span that you will ask for (5m, hour, day, 7d)", default="day", err=True)
        typical = click.prompt("  items of a typical key in it", type=click.IntRange(1), default=1000, err=True)
        large = click.prompt("  items of a large key in it", type=click.IntRange(1), default=20 * typical, err=True)
        try:
            yield planned_question(written, typical, large)
        except UsageError as error:
            click.echo(f"error: {error}", err=True)
            continue
        if not click.confirm("Another span", default=False, err=True):
            return


def _number(text: str, default: str) -> Decimal:
    while True:
        written = click.prompt(text, default=default, err=True)
        try:
            if (number := Decimal(written)).is_finite() and number > 0:
                return number
        except ArithmeticError:
            pass
        click.echo(f"error: {written!r} is no number above 0", err=True)
