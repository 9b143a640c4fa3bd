"""A question about what a pipeline has published, as the command line, a server or a notebook asks it.

In a notebook::

    config = load_config(Path("app.toml"))
    question = parse_question(config, "hour", keys=["/home"], since="2026-01-01")
    with published(config) as reader:
        for row in answer(reader, release_terms(config), question).rows:
            print(row.key, row.window, row.estimate)

The last seven days are `parse_question(config, "range", last="7d")`.

Messages name the parts of a question as the command line writes them: --key, --from, --to, --last, --by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sfm_stream.answers.asked_keys import AskedKey, asked_key
from sfm_stream.answers.asked_last import LastUnits, parse_last
from sfm_stream.answers.asked_span import EVERYTHING, asked_span
from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError
from sfm_stream.types import Window
from sfm_stream.units import ROLLUPS, SKETCHES


@dataclass(frozen=True)
class Question:
    """Which published records an answer is made of.

    grain: "range" for one answer over the whole span, or the grain of what is answered one by one: "window",
    "quarter", "hour", "day", "week", "month", or None for roll-ups of every grain. keys: None for all. span: only what
    lies wholly inside it. zone: the time zone in which times are read and shown. last: where it is given the span
    follows from it and from what is decided (settled.py). joined: all keys that are asked for are one set, with one row
    for their union in each span.
    """

    grain: str | None
    keys: tuple[AskedKey, ...] | None = None
    span: Window = EVERYTHING
    zone: str = "UTC"
    last: LastUnits | None = None
    joined: bool = False

    @property
    def topic(self) -> str:
        """The topic with the records of an answer."""
        is_of_releases = self.joined or self.grain in ("range", "window", "week", "month")
        return SKETCHES if is_of_releases else ROLLUPS

    def asks_for(self, window: Window, key: bytes) -> bool:
        """Whether it asks for a record of this key, in canonical bytes, whose window lies wholly inside the span."""
        is_inside = self.span.start_ms <= window.start_ms and window.end_ms <= self.span.end_ms
        return is_inside and (self.encoded_keys is None or key in self.encoded_keys)

    @cached_property
    def encoded_keys(self) -> frozenset[bytes] | None:
        """Canonical bytes of every key that is asked for; None for all."""
        return None if self.keys is None else frozenset().union(*(key.encoded for key in self.keys))


def parse_question(
    config: Config,
    grain: str | None,
    keys: Sequence[str] = (),
    since: str | None = None,
    until: str | None = None,
    last: str | None = None,
    asked_ms: int | None = None,
    joined: bool = False,
) -> Question:
    """The question that these texts ask about the pipeline of a configuration.

    grain: as in Question. keys: none for all. since, until: ISO 8601 times, in rollup.zone where they have no offset;
    the end is exclusive, and what is not given is no border. last: in place of both, so many of the last hours, days,
    weeks or months, such as "7d", before asked_ms, which is now where it is not given. joined: as in Question. Raises
    QuestionError.
    """
    if last is not None and (since or until):
        raise QuestionError("--last stands for --from and --to: give it alone")
    if grain == "range" and not last and not (since and until):
        raise QuestionError("--by range needs --from and --to, or --last")
    if joined and grain is None:
        raise QuestionError("the union of several keys needs a grain: a range, windows, hours, days, weeks or months")
    units = None
    if last is not None:
        base = config.calendar.base
        asked_ms = now_ms() if asked_ms is None else asked_ms
        units = parse_last(last, grain or base, base, config.window.size, asked_ms)
    borders = "window" if grain == "range" else grain or config.calendar.base
    span = asked_span(config, since, until, borders)
    asked = tuple(asked_key(text, len(config.event.key)) for text in keys)
    return Question(grain, asked or None, span, config.calendar.zone, units, joined)
