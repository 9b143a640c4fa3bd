"""The parameters of the API, and the questions that they ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sfm_stream.answers.asked import Asked
from sfm_stream.answers.key_notation import key_of_text
from sfm_stream.answers.question import Question
from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError
from sfm_stream.readable import duration
from sfm_stream.serve.refusals import TooMuchAsked
from sfm_stream.types import KeyPart
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.grid import grid_of

Grain: TypeAlias = Literal["range", "window", "quarter", "hour", "day", "week", "month"]
Format: TypeAlias = Literal["json", "jsonl", "csv"]
_TIME = "in ISO 8601; in the time zone of the pipeline where it has no offset"
Keys = Annotated[
    list[str],
    Field(description="A key: as it is shown, as a JSON array, or its fields joined by commas."),
]
Time = Annotated[str | None, Field(max_length=100)]
Last = Annotated[
    str | None,
    Field(max_length=10, description="In place of from and to: the last whole 24h, 7d, 4w, 3mo that are decided."),
]
By = Annotated[
    Grain | None,
    Field(description="One number a key for the whole span (range), or one for each window, hour, day, week, month."),
]
Joined = Annotated[bool, Field(description="All keys are one set: one number for their union.")]
Since = Annotated[Time, Field(alias="from", description=f"Start of the span, {_TIME}.")]
Until = Annotated[Time, Field(alias="to", description=f"End of the span, exclusive, {_TIME}.")]


class SpanQuery(BaseModel):
    """Keys, and a span of time. Without keys all are asked for."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False)

    key: Keys = []
    by: By = None
    since: Since = None
    until: Until = None
    last: Last = None
    joined: Joined = False

    @property
    def asked(self) -> Asked:
        return Asked(self.key, self.by, self.since, self.until, self.last, self.joined)


class EstimatesQuery(SpanQuery):
    """A table of estimates."""

    format: Format = "json"


class TopQuery(SpanQuery):
    """The keys with the largest numbers in one span."""

    limit: Annotated[int, Field(ge=1, le=10_000)] = 10


class TwoSpansQuery(SpanQuery):
    """Two keys, or two spans, or both. What is not given of the second one is that of the first."""

    other_key: Keys = []
    other_by: By = None
    other_since: Annotated[Time, Field(alias="other_from", description="As from, of the second.")] = None
    other_until: Annotated[Time, Field(alias="other_to", description="As to, of the second.")] = None
    other_last: Last = None
    other_joined: Annotated[bool | None, Field(description="As joined, of the second.")] = None

    def questions(self, config: Config) -> tuple[Question, Question]:
        """Both questions, asked at one time. Raises QuestionError, which names the parameter of the wrong one."""
        asked_ms = now_ms()
        first = self.asked.question(config, "range", asked_ms)
        span = self.other_since, self.other_until, self.other_last
        second = Asked(self.other_key, self.other_by, *span, self.other_joined)
        try:
            return first, second.beside(self.asked).question(config, "range", asked_ms)
        except QuestionError as error:
            part = error.part and f"other_{error.part.removeprefix('--')}"
            raise QuestionError(error.problem, part) from None


class KeysQuery(BaseModel):
    """A page of published keys."""

    model_config = ConfigDict(extra="forbid")

    search: Annotated[str, Field(max_length=1000, description="A part of the key as it is shown, in any case.")] = ""
    after: Annotated[str | None, Field(description="Only keys behind this one, as it is shown: `text`.")] = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 100

    @property
    def after_key(self) -> tuple[KeyPart, ...] | None:
        """Raises QuestionError for what is no key."""
        if self.after is None:
            return None
        if (key := key_of_text(self.after)) is None:
            raise QuestionError("not a key as it is shown (text)", "after")
        return key


def require_span(question: Question, max_span_ms: int) -> None:
    """Raise TooMuchAsked where a question asks for many numbers over too long a span."""
    span_ms = question.span.end_ms - question.span.start_ms
    bounded = question.span.end_ms < FOREVER_MS and question.span.start_ms > 0
    if question.grain != "range" and bounded and span_ms > max_span_ms:
        raise TooMuchAsked(
            f"the span is longer than {duration(max_span_ms)} (serve.max_span): ask for parts of it, or for one number "
            "with by=range"
        )


def question_mark(questions: Sequence[Question]) -> str:
    """A text that is the same for questions with the same answer from the same records, and for no others.

    The time of asking is in it as far as it matters: to the last border of what `last` counts.
    """
    marked = []
    for question in questions:
        last = question.last
        if last is not None:
            last = replace(last, asked_ms=grid_of(last.unit, question.zone).floor(last.asked_ms))
        keys = question.keys and [(key.text, sorted(key.encoded)) for key in question.keys]
        marked.append((question.grain, keys, question.span, question.zone, last, question.joined))
    return repr(marked)
