"""A configuration with the spans of a plan, to be pasted. What a plan cannot know stands in it as an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from sfm_stream.planning.forecast import Assumptions, PlannedSpan
from sfm_stream.readable import decimal_text

_SETTINGS = """\
[pipeline]
id = "planned"
[input]                     # or [kafka], and window.grace: docs/configuration.md
path = "events.jsonl"
complete = true
[event]
key = "page"
item = "user"
time = "at"
time_unit = "ms"
"""


def toml_lines(spans: Sequence[PlannedSpan], assumed: Assumptions, epsilon_a_day: Decimal) -> Iterator[str]:
    """The lines of the configuration. spans: the finest first. epsilon_a_day: of an item that is always active."""
    finest, *coarser = spans
    yield from _SETTINGS.splitlines()
    yield "[window]"
    yield f'size = "{finest.name}"'
    yield "[sketch]"
    yield f"buckets = {finest.shape.buckets}"
    yield f"levels = {finest.shape.levels}"
    yield "[privacy]"
    yield f"epsilon = {decimal_text(finest.epsilon)}"
    yield f"count_share = {decimal_text(finest.count_share)}"
    yield f"max_epsilon_per_item_day = {decimal_text(epsilon_a_day)}"
    if assumed.selection is None:
        yield 'keys = "declared"'
        yield 'declared = ["/", "/about"]   # the public list of keys; or "selected": docs/privacy.md'
    else:
        yield 'keys = "selected"'
        yield f"epsilon_selection = {decimal_text(assumed.selection.epsilon)}"
        yield f"delta_selection = {decimal_text(assumed.selection.delta)}"
    for span in coarser:
        yield "[[spans]]"
        yield f'size = "{span.name}"'
        yield f"epsilon = {decimal_text(span.epsilon)}"
        yield f"count_share = {decimal_text(span.count_share)}"
        yield f"buckets = {span.shape.buckets}"
        yield f"levels = {span.shape.levels}"
    yield "[rollup]"
    yield f'zone = "{assumed.days.zone}"'
    yield "[output]"
    yield 'path = "planned.sqlite"'
