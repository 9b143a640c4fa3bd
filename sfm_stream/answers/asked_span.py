"""The span that two written times ask for. Its borders have to be borders of what is asked for."""

from __future__ import annotations

from collections.abc import Callable

from sfm_stream.answers.asked_time import parse_instant
from sfm_stream.config.config import Config
from sfm_stream.errors import QuestionError
from sfm_stream.privacy.released_span import names_in_records
from sfm_stream.readable import local
from sfm_stream.types import Window
from sfm_stream.units import FOREVER_MS, QUARTER_MS

EVERYTHING = Window(0, FOREVER_MS)
"""The span without borders."""
_NO_BORDERS = (EVERYTHING.start_ms, EVERYTHING.end_ms)


def asked_span(config: Config, since: str | None, until: str | None, grain: str) -> Window:
    """The span between two ISO 8601 times; a border that is not given is that of EVERYTHING.

    grain: what the borders have to be borders of: "window", or a quarter, hour, day, week or month. Raises
    QuestionError; for times inside one of these it names the nearest spans.
    """
    calendar = config.calendar
    start_ms = parse_instant(since, calendar, "--from") if since else EVERYTHING.start_ms
    end_ms = parse_instant(until, calendar, "--to") if until else EVERYTHING.end_ms
    if start_ms >= end_ms:
        raise QuestionError("--from is not before --to")
    if grain == "quarter" and not _has_quarters(config):
        raise QuestionError(f"--by quarter: days of {calendar.zone} are made of hours, no quarters are published")
    grid = config.grid

    def around(time_ms: int) -> Window:
        if grain == "window":
            return Window(grid.floor(time_ms), grid.end(grid.floor(time_ms)))
        return calendar.span(grain, time_ms)

    inside = [t for t, given in ((start_ms, since), (end_ms, until)) if given and around(t).start_ms != t]
    if inside:
        named = {"window": f"a window of {config.window.size}", "hour": "an hour"}
        what = named.get(grain, f"a {grain}")
        times = " and ".join(local(time_ms, calendar.zone) for time_ms in inside)
        nearest = _nearest(Window(start_ms, end_ms), around, calendar.zone)
        raise QuestionError(
            f"{times} ({calendar.zone}) is inside {what}, which is counted as a whole. Ask for {nearest}"
        )
    return Window(start_ms, end_ms)


def _has_quarters(config: Config) -> bool:
    """Whether quarters are published: days of the zone are made of them, or they are released and passed on.

    The one span of a pipeline without counts has no name in its records: it is merged only (pipeline/rollup/grains.py).
    """
    spans = config.budget.spans
    are_passed_on = names_in_records(spans) and any(span.size_ms == QUARTER_MS for span in spans)
    return "quarter" in config.calendar.grains or bool(are_passed_on)


def _nearest(span: Window, around: Callable[[int], Window], zone: str) -> str:
    """The smallest span of whole windows (or days ...) around this one and the largest inside it, as options."""

    def down(time_ms: int) -> int:
        return time_ms if time_ms in _NO_BORDERS else around(time_ms).start_ms

    def up(time_ms: int) -> int:
        return time_ms if time_ms == down(time_ms) else around(time_ms).end_ms

    spans = [Window(down(span.start_ms), up(span.end_ms))]
    if (inner_start := up(span.start_ms)) < (inner_end := down(span.end_ms)):
        spans.append(Window(inner_start, inner_end))
    return ", or ".join(
        " ".join(
            f'{option} "{local(time_ms, zone)}"'
            for option, time_ms in (("--from", each.start_ms), ("--to", each.end_ms))
            if time_ms not in _NO_BORDERS
        )
        for each in spans
    )
