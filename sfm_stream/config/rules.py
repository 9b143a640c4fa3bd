"""Rules for settings that depend on each other, and the values that are derived from valid settings.

Every rule is checked, and all problems are raised together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sfm_stream.config.key_rule import key_rule
from sfm_stream.config.security import client_security
from sfm_stream.config.span_rules import base_size_ms, released_spans, size_problems, zone_problems
from sfm_stream.config.tables import Settings, SketchTable
from sfm_stream.errors import ConfigError, SfmStreamError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.key_rules import KeyRule, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b
from sfm_stream.windows.grid import Grid, grid_of

_T = TypeVar("_T")
STDIN = "-"
OWN_TOPICS = ("outbox", "ledger", "sketches", "rollups", "dead-letters")
"""The topics that a pipeline writes, without its id and the dot before them."""


class Derived(NamedTuple):
    """The values that are derived from valid settings."""

    item_hash: ItemHash
    keys: KeyRule
    calendar: Calendar
    budget: Budget
    security: Mapping[str, Any]
    """Keyword arguments for the client of a cluster, secrets among them."""


def derived(settings: Settings, folder: Path) -> Derived:
    """The derived values. folder: relative paths are taken from it. Raises ConfigError with every problem found."""
    problems: list[str] = []

    def attempt(table: str, build: Callable[[], _T]) -> _T | None:
        """What `build` returns; None if it raises, and the problem is added to the list."""
        try:
            return build()
        except SfmStreamError as error:
            problems.extend(error.problems if isinstance(error, ConfigError) else (f"{table}.{error}",))
            return None

    size_ms = base_size_ms(settings)
    problems.extend(size_problems(settings))
    zone = attempt("", lambda: calendar(settings.rollup.zone, size_ms or 1, settings.event.earliest))
    if zone is not None:
        problems.extend(zone_problems(settings, zone))
    spans = attempt("", lambda: released_spans(settings))
    item_hash = attempt("sketch.hash_key_file", lambda: _item_hash(settings.sketch, folder))
    grid = grid_of(settings.window.size, zone.zone) if zone is not None and size_ms != 0 else None
    keys = attempt("privacy", lambda: key_rule(settings, grid, problems))
    problems.extend(_window_problems(settings, grid))
    problems.extend(_order_problems(settings, grid))
    latest_ms = MAX_TIME_MS if settings.event.latest is None else settings.event.latest
    attempt("event", lambda: event_schema(settings, latest_ms))
    if settings.event.time is None and settings.kafka is None:
        problems.append("event.time: needed, as lines of a file have no time stamp of their own")
    problems.extend(_file_problems(settings, folder))
    problems.extend(_topic_problems(settings))
    security = attempt("kafka", lambda: client_security(settings.kafka, folder) if settings.kafka else {})
    if problems or spans is None or item_hash is None or keys is None or zone is None:
        raise ConfigError(*problems)
    budget = _budget(spans, keys, zone)
    require_within(budget, settings.privacy.max_epsilon_per_item_day)
    return Derived(item_hash, keys, zone, budget, security or {})


def event_schema(settings: Settings, latest_ms: int) -> EventSchema:
    """The schema of the events. latest_ms: upper end of plausible event times."""
    event = settings.event
    return EventSchema(
        key=event.key,
        item=event.item,
        time=event.time,
        time_unit=event.time_unit,
        naive_zone={"refuse": None, "utc": "UTC"}.get(event.naive_time, event.naive_time),
        float_items=event.float_items,
        earliest_ms=event.earliest,
        latest_ms=latest_ms,
        max_key_bytes=event.max_key_bytes,
        max_record_bytes=event.max_record_bytes,
    )


def _item_hash(sketch: SketchTable, folder: Path) -> ItemHash:
    if sketch.hash == "xxh64":
        if sketch.hash_key_file is not None:
            raise ConfigError('sketch.hash_key_file: only for sketch.hash = "blake2b"')
        return XXH64
    if sketch.hash_key_file is None:
        raise ConfigError('sketch.hash_key_file: needed for sketch.hash = "blake2b": a file of 16 to 64 random bytes')
    try:
        return keyed_blake2b((folder / sketch.hash_key_file).read_bytes())
    except OSError as error:
        raise ConfigError(f"sketch.hash_key_file: {error.strerror or error}") from None


def _budget(spans: tuple[ReleasedSpan, ...], keys: KeyRule, zone: Calendar) -> Budget:
    selected = keys if isinstance(keys, SelectedKeys) else None
    return Budget(
        spans,
        selected.epsilon if selected else Decimal(0),
        selected.delta if selected else Decimal(0),
        zone.longest_day_ms,
        zone.day_step_ms,
    )


def _window_problems(settings: Settings, grid: Grid | None) -> Iterator[str]:
    window = settings.window
    if grid is not None and window.start is not None and grid.floor(window.start) != window.start:
        yield f"window.start: not a border of windows of {window.size}"
    if window.start is not None and window.start < 0:
        yield "window.start: before 1970"


def _order_problems(settings: Settings, grid: Grid | None) -> Iterator[str]:
    """Problems of input.order, and of the settings that belong to one order only. grid: of the base span."""
    source, window = settings.input, settings.window
    if source is not None and source.order == "any" and not source.complete:
        yield (
            'input.order: "any" needs input.complete = true, as only an input that ends can be counted whole; set '
            'that, or order = "time"'
        )
    if source is not None and source.complete and source.order != "time":
        if window.end is not None and grid is not None and grid.floor(window.end) != window.end:
            yield f"window.end: not a border of windows of {window.size}"
        if window.end is not None and window.end <= (window.start or 0):
            yield "window.end: not after window.start"
        return
    if window.grace is None:
        yield "window.grace: needed, as windows close in order of time: how far out of order a record may arrive"
    if window.end is not None:
        yield (
            'window.end: only for an input that is counted whole (input.complete = true, input.order = "any"); '
            "elsewhere windows close in order of time, and an epoch ends where the next one begins"
        )


def _file_problems(settings: Settings, folder: Path) -> Iterator[str]:
    """Problems of [input], [output] and [kafka]: where events come from and where releases go."""
    source, output, kafka = settings.input, settings.output, settings.kafka
    if kafka is not None and (source or output):
        yield "kafka: stands in place of [input] and [output]; leave those out"
    elif kafka is None and (source is None or output is None):
        yield "input, output: both are needed, or [kafka] in their place"
    elif source and output and source.path != STDIN and (folder / source.path) == (folder / output.path):
        yield "output.path: the same file as input.path"


def _topic_problems(settings: Settings) -> Iterator[str]:
    kafka, pipeline = settings.kafka, settings.pipeline
    if kafka is None:
        return
    for own in (f"{pipeline.id}.{name}" for name in OWN_TOPICS):
        if kafka.topic == own:
            yield "kafka.topic: a topic that the pipeline itself writes"
        elif kafka.topic.replace(".", "_") == own.replace(".", "_"):
            yield (
                f"kafka.topic: beside {kafka.topic} there can be no {own}, which the pipeline writes: Kafka "
                "takes '.' and '_' for the same there. Choose another pipeline.id"
            )
    if pipeline.epoch > 1 and settings.window.start is None:
        yield "window.start: needed for an epoch after the first"
