"""The values that are derived from valid settings.

Every rule is checked, and all problems are raised together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sfm_stream.config.item_hash import item_hash_of
from sfm_stream.config.key_rule import key_rule
from sfm_stream.config.rules import file_problems, order_problems, topic_problems, window_problems
from sfm_stream.config.security import client_security
from sfm_stream.config.span_rules import base_size_ms, released_spans, size_problems, zone_problems
from sfm_stream.config.tables import Settings
from sfm_stream.errors import ConfigError, SfmStreamError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.key_rules import KeyRule, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.sketch.hashing import ItemHash
from sfm_stream.windows.grid import grid_of

_T = TypeVar("_T")


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
    item_hash = attempt("sketch.hash_key_file", lambda: item_hash_of(settings.sketch, folder))
    grid = grid_of(settings.window.size, zone.zone) if zone is not None and size_ms != 0 else None
    keys = attempt("privacy", lambda: key_rule(settings, grid, problems))
    problems.extend(window_problems(settings, grid))
    problems.extend(order_problems(settings, grid))
    latest_ms = MAX_TIME_MS if settings.event.latest is None else settings.event.latest
    attempt("event", lambda: event_schema(settings, latest_ms))
    if settings.event.time is None and settings.kafka is None:
        problems.append("event.time: needed, as lines of a file have no time stamp of their own")
    problems.extend(file_problems(settings, folder))
    problems.extend(topic_problems(settings))
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


def _budget(spans: tuple[ReleasedSpan, ...], keys: KeyRule, zone: Calendar) -> Budget:
    selected = keys if isinstance(keys, SelectedKeys) else None
    return Budget(
        spans,
        selected.epsilon if selected else Decimal(0),
        selected.delta if selected else Decimal(0),
        zone.longest_day_ms,
        zone.day_step_ms,
    )
