"""What is asked, as texts: the parts of a question that the client and the API of a server give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfm_stream.answers.question import Question, parse_question
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. keys: as they are shown, as JSON, or their fields joined by commas; none for all.

    by: "range" for one number over the whole span, or "window", "quarter", "hour", "day", "week", "month". since,
    until: times in ISO 8601, in the zone of the pipeline where they have no offset; until is exclusive. last: in place
    of both, the last whole hours, days, weeks or months that are decided: "24h", "7d", "4w", "3mo". joined: all keys
    are one set.

    Raises QuestionError for what is of another type: a time has to be written, and keys are a list of texts.
    """

    keys: Sequence[str] = ()
    by: str | None = None
    since: str | None = None
    until: str | None = None
    last: str | None = None
    joined: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.keys, str) or not all(isinstance(key, str) for key in self.keys):
            raise QuestionError(
                'expected a list of texts, such as ["/home"], as PublishedAnswers.keys() has them', "keys"
            )
        for name in ("by", "since", "until", "last"):
            if (value := getattr(self, name)) is not None and not isinstance(value, str):
                raise QuestionError(f"expected a text, got {type(value).__name__}", name)

    def question(self, config: Config, usual: str | None = None, asked_ms: int | None = None) -> Question:
        """The question to the pipeline of a configuration. usual: its grain where `by` is not given.

        asked_ms: as in parse_question. Raises QuestionError.
        """
        usual = usual or ("range" if self.last or (self.since and self.until) else "day")
        span = self.since, self.until, self.last
        return parse_question(config, self.by or usual, self.keys, *span, asked_ms, bool(self.joined))

    def beside(self, first: Asked) -> Asked:
        """The question as the second of two: what it does not give is that of the first. Raises QuestionError."""
        has_span = any((self.since, self.until, self.last))
        if not has_span and not self.keys:
            raise QuestionError("nothing to compare with: give the second one keys, or a span")
        spanned = self if has_span else replace(self, since=first.since, until=first.until, last=first.last)
        joined = first.joined if self.joined is None else self.joined
        return replace(spanned, keys=self.keys or first.keys, by=self.by or first.by, joined=joined)

    def parameters(self, prefix: str = "") -> list[tuple[str, str]]:
        """The parameters of the API that ask this. prefix: of their names."""
        named = {"by": self.by, "from": self.since, "to": self.until, "last": self.last}
        given = [("key", key) for key in self.keys] + [(name, text) for name, text in named.items() if text]
        if self.joined is not None:
            given.append(("joined", "true" if self.joined else "false"))
        return [(prefix + name, text) for name, text in given]
