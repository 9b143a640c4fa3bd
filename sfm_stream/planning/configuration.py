"""A configuration with the spans of a plan, to be pasted. What a plan cannot know stands in it as an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from sfm_stream.planning.forecast import Assumptions, PlannedSpan
from sfm_stream.privacy.epsilon import decimals

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
    yield f"epsilon = {written(finest.epsilon)}"
    yield f"count_share = {written(finest.count_share)}"
    yield f"max_epsilon_per_item_day = {written(epsilon_a_day)}"
    if assumed.selection is None:
        yield 'keys = "declared"'
        yield 'declared = ["/", "/about"]   # the public list of keys; or "selected": docs/privacy.md'
    else:
        yield 'keys = "selected"'
        yield f"epsilon_selection = {written(assumed.selection.epsilon)}"
        yield f"delta_selection = {written(assumed.selection.delta)}"
    for span in coarser:
        yield "[[spans]]"
        yield f'size = "{span.name}"'
        yield f"epsilon = {written(span.epsilon)}"
        yield f"count_share = {written(span.count_share)}"
        yield f"buckets = {span.shape.buckets}"
        yield f"levels = {span.shape.levels}"
    yield "[rollup]"
    yield f'zone = "{assumed.days.zone}"'
    yield "[output]"
    yield 'path = "planned.sqlite"'


def written(number: Decimal) -> str:
    """A decimal as people write it: without an exponent, and without zeros at its end."""
    with decimals():
        return f"{number.normalize():f}"
