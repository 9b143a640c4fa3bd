"""A configuration with the spans of a plan. What a plan cannot know is given, or stands in it as an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sfm_stream.planning.forecast import Assumptions, PlannedSpan
from sfm_stream.readable import decimal_text


@dataclass(frozen=True, slots=True)
class Given:
    """The lines that no plan decides. source: [pipeline] up to [event]. window: what follows window.size in its table.

    keys: of privacy, where keys are not selected. target: behind [rollup], where releases go.
    """

    source: Sequence[str]
    window: Sequence[str]
    keys: Sequence[str]
    target: Sequence[str]


EXAMPLE = Given(
    source="""\
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
""".splitlines(),
    window=(),
    keys=(
        'keys = "declared"',
        'declared = ["/", "/about"]   # the public list of keys; or "selected": docs/privacy.md',
    ),
    target=("[output]", 'path = "planned.sqlite"'),
)


def toml_lines(
    spans: Sequence[PlannedSpan], assumed: Assumptions, epsilon_a_day: Decimal, given: Given = EXAMPLE
) -> Iterator[str]:
    """The lines of the configuration. spans: the finest first. epsilon_a_day: of an item that is always active."""
    finest, *coarser = spans
    yield from given.source
    yield "[window]"
    yield f'size = "{finest.name}"'
    yield from given.window
    yield "[sketch]"
    yield f"buckets = {finest.shape.buckets}"
    yield f"levels = {finest.shape.levels}"
    yield "[privacy]"
    yield f"epsilon = {decimal_text(finest.epsilon)}   # of one release of a window"
    yield f"count_share = {decimal_text(finest.count_share)}   # of it, for the noisy count"
    yield f"max_epsilon_per_item_day = {decimal_text(epsilon_a_day)}   # above it nothing starts"
    if assumed.selection is None:
        yield from given.keys
    else:
        yield 'keys = "selected"'
        yield f"epsilon_selection = {decimal_text(assumed.selection.epsilon)}   # on top of epsilon, in each window"
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
    yield from given.target
