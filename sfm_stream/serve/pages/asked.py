"""What the query of an address asks for, and the form that asks it again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sfm_stream.answers.question import Question, parse_question
from sfm_stream.answers.settled import settled
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError, SfmStreamError
from sfm_stream.readable import local, visible
from sfm_stream.serve.pages.grain_choices import GrainChoice, grain_choices
from sfm_stream.serve.pages.key_display import exact_key
from sfm_stream.transport.contract import TopicReader
from sfm_stream.units import CALENDAR_UNITS

PARTS = {"--from": "From", "--to": "To", "--last": "Last", "--by": "By", "--key": "Key"}
"""The parts of a question as messages name them, and as the form calls them."""
_MINUTE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2})?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( 00:00)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class AskedSpan:
    """A grain and a span as they were written. since, until, last: "" where not given; all of them: what is latest."""

    grain: GrainChoice
    since: str
    until: str
    last: str

    @property
    def query(self) -> dict[str, str]:
        """As the query of an address has it."""
        parts = {"by": self.grain.name, "from_": self.since, "to": self.until, "last": self.last}
        return {name: value for name, value in parts.items() if value}

    @property
    def field(self) -> str:
        """The type of the fields of the form: of dates, of times, or of text where a time has an offset of its own."""
        times = [time for time in (self.since, self.until) if time]
        if self.grain.name in CALENDAR_UNITS and all(_DATE.fullmatch(time) for time in times):
            return "date"
        return "datetime-local" if all(_MINUTE.fullmatch(time) for time in times) else "text"

    @property
    def fields(self) -> tuple[str, str]:
        """What stands in them: since and until."""
        return self._in_field(self.since), self._in_field(self.until)

    def _in_field(self, time: str) -> str:
        if self.field == "text" or not time:
            return time
        day, clock = time[:10], time[11:] or "00:00"
        return day if self.field == "date" else f"{day}T{clock}"


def asked_span_of(config: Config, by: str, since: str, until: str, last: str) -> AskedSpan:
    """What these texts ask for, by day where no grain is given and days are answered.

    A time that is given is meant, whatever `last` says. Raises QuestionError for a grain that there is none of.
    """
    choices = grain_choices(config)
    name = by or ("day" if "day" in choices else next(iter(choices)))
    if name not in choices:
        raise QuestionError(f"no {name!r} here: {', '.join(choices)}", "--by")
    grain = choices[name]
    if since or until:
        return AskedSpan(grain, since.replace("T", " "), until.replace("T", " "), "")
    return AskedSpan(grain, "", "", last)


def asked_one_span(config: Config, by: str, since: str, until: str, last: str) -> AskedSpan:
    """The same for one number: the last one of the grain where no span is given."""
    span = asked_span_of(config, by, since, until, last)
    return span if span.since or span.until or span.last else replace(span, last=span.grain.one or "1d")


def question_of(config: Config, span: AskedSpan, grain: str, keys: tuple[str, ...] = ()) -> Question:
    """The question of a page. grain: of the question, "range" for one number over the whole span.

    keys: as they are shown, each meaning exactly that key. Raises QuestionError.
    """
    question = parse_question(config, grain, (), span.since or None, span.until or None, span.last or None)
    exact = tuple(exact_key(key, len(config.event.key)) for key in keys)
    return replace(question, keys=exact or None)


def settled_question(reader: TopicReader, question: Question, pipeline: str) -> Question:
    """The question with its span, which does not move any more."""
    return replace(settled(reader, pipeline, question), last=None)


def problem_words(error: SfmStreamError) -> str:
    """Why there is no answer, the parts of the question named as the form names them. A key in it may be any text."""
    words = str(error)
    if isinstance(error, QuestionError):
        words = f"{PARTS[error.part]}: {error.problem}" if error.part in PARTS else error.problem
    for option, name in PARTS.items():
        words = words.replace(option, name)
    return visible(words)


def written_border(time_ms: int, zone: str) -> str:
    """A border of a span as a question takes it back."""
    return local(time_ms, zone)
