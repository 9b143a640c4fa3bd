"""Which levels of a configuration are noise: their answers say nothing, whatever is in the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sfm_stream.pipeline.rollup.calendar import Calendar
from sfm_stream.planning.forecast import PlannedSpan, source_of
from sfm_stream.planning.level import Level
from sfm_stream.planning.questions import NAMED_MS, PlannedQuestion
from sfm_stream.privacy.epsilon import plain

_GRAINS = {"15m": "quarters", "hour": "hours", "day": "days"}
"""What roll-ups are made of, the finest first, as spans and in words. No zone has days of quarters but no hours."""
_REMEDY = "(sfm-stream plan says what that is worth)"


def questions_of(spans: Sequence[PlannedSpan], days: Calendar) -> list[PlannedQuestion]:
    """A question, without numbers, for each released span, and for each grain that roll-ups merge from one."""
    return [question for question, _, _ in _sources(spans, days)]


def _sources(spans: Sequence[PlannedSpan], days: Calendar) -> list[tuple[PlannedQuestion, str, int]]:
    """Each of questions_of, the released span that it is answered from, and how many releases of it."""
    names = [span.name for span in spans]
    released = [(PlannedQuestion(name), name, 1) for name in names]
    merged = []
    for grain in list(_GRAINS)[-len(days.grains) :]:
        question = PlannedQuestion(grain)
        source = source_of(question, names, days)
        if source is not None and source[1] > 1:  # a source of one release is the released span itself
            merged.append((question, *source))
    return [*released, *merged]


def noisy_levels(spans: Sequence[PlannedSpan], days: Calendar) -> Iterator[str]:
    """A line for each level that is noise: a released span, or a grain that roll-ups merge. spans: what is released."""
    released = {span.name: span for span in spans}
    for asked, name, releases in _sources(spans, days):
        span = released[name]
        level = span.level(releases)
        if not level.is_noise:
            continue
        told = f"of epsilon {plain(span.epsilon)} are noise: {_at_best(level)}"
        if releases == 1:
            yield f"{_many(span.name)} {told}. Raise epsilon, or the share of the count {_REMEDY}"
        else:
            yield (
                f"{_GRAINS[asked.span]} merged from {releases} {_many(span.name)} {told}. Release them from raw "
                f'([[spans]] size = "{asked.span}"), or raise epsilon {_REMEDY}'
            )


def _many(span: str) -> str:
    """Several of a span, in words."""
    return f"{span}s" if span in NAMED_MS else "hours" if span == "1h" else f"windows of {span}"


def _at_best(level: Level) -> str:
    who = "they are" if level.releases == 1 else "together, their bits are"
    least = level.least_error()
    much = "more than ten times" if least > 10 else f"at least {least:.0%} of"
    return f"{who} off by {much} the number of items, whatever that is"
