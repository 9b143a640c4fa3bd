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
from sfm_stream.config.tables import PrivacyTable, Settings, SketchTable
from sfm_stream.errors import ConfigError, EpsilonError, SfmStreamError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.epsilon import flip_threshold_of, parse_epsilon, parts_of, plain
from sfm_stream.privacy.key_rules import KeyRule, SelectedKeys
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.readable import duration
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.units import HOUR_MS

_T = TypeVar("_T")
STDIN = "-"
OWN_TOPICS = ("outbox", "ledger", "sketches", "rollups", "dead-letters")
"""The topics that a pipeline writes, without its id and the dot before them."""


class Derived(NamedTuple):
    """The values that are derived from valid settings."""

    shape: SketchShape
    item_hash: ItemHash
    keys: KeyRule
    flip_threshold: int
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

    size_ms = _usable_size_ms(settings)
    shape = attempt("sketch", lambda: SketchShape(settings.sketch.buckets, settings.sketch.levels))
    parts = attempt("privacy", lambda: _parts_of_epsilon(settings.privacy))
    item_hash = attempt("sketch.hash_key_file", lambda: _item_hash(settings.sketch, folder))
    keys = attempt("privacy", lambda: key_rule(settings, size_ms, problems))
    problems.extend(_window_problems(settings, size_ms))
    problems.extend(_order_problems(settings))
    latest_ms = MAX_TIME_MS if settings.event.latest is None else settings.event.latest
    attempt("event", lambda: event_schema(settings, latest_ms))
    if settings.event.time is None and settings.kafka is None:
        problems.append("event.time: needed, as lines of a file have no time stamp of their own")
    problems.extend(_file_problems(settings, folder))
    problems.extend(_topic_problems(settings))
    security = attempt("kafka", lambda: client_security(settings.kafka, folder) if settings.kafka else {})
    zone = attempt("", lambda: calendar(settings.rollup.zone, size_ms or 1, settings.event.earliest))
    if problems or shape is None or parts is None or item_hash is None or keys is None or zone is None:
        raise ConfigError(*problems)
    threshold, count_epsilon = flip_threshold_of(parts[0]), parts[1]
    span = ReleasedSpan(settings.window.size, settings.privacy.epsilon, threshold, count_epsilon, shape)
    budget = _budget(span, keys, zone)
    require_within(budget, settings.privacy.max_epsilon_per_item_day)
    return Derived(shape, item_hash, keys, threshold, zone, budget, security or {})


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


def _usable_size_ms(settings: Settings) -> int:
    """Length of a window; 0 if it is wrong, which _window_problems reports, and no other rule has to."""
    size_ms = settings.window.size
    return size_ms if size_ms and HOUR_MS % size_ms == 0 else 0


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


def _parts_of_epsilon(privacy: PrivacyTable) -> tuple[Decimal, Decimal]:
    """(epsilon of the bits, epsilon of the count) of one release. Raises ConfigError, EpsilonError."""
    whole, share = parse_epsilon(privacy.epsilon), privacy.count_share
    try:
        return parts_of(whole, share)
    except EpsilonError as error:
        raise ConfigError(
            f"privacy.count_share: {plain(share)} of privacy.epsilon, {plain(whole)}, pays for the count of a release "
            f"and the rest for its bits: {error}. Choose another share, or 0 for releases without a count"
        ) from None


def _budget(span: ReleasedSpan, keys: KeyRule, zone: Calendar) -> Budget:
    selected = keys if isinstance(keys, SelectedKeys) else None
    return Budget(
        (span,),
        selected.epsilon if selected else Decimal(0),
        selected.delta if selected else Decimal(0),
        zone.longest_day_ms,
    )


def _window_problems(settings: Settings, size_ms: int) -> Iterator[str]:
    window = settings.window
    if not size_ms:
        yield f"window.size: {duration(window.size)} does not divide one hour"
    elif window.start is not None and window.start % size_ms:
        yield f"window.start: not a border of windows of {duration(window.size)}"
    if window.start is not None and window.start < 0:
        yield "window.start: before 1970"


def _order_problems(settings: Settings) -> Iterator[str]:
    """Problems of input.order, and of the settings that belong to one order only."""
    source, window = settings.input, settings.window
    if source is not None and source.order == "any" and not source.complete:
        yield (
            'input.order: "any" needs input.complete = true, as only an input that ends can be counted whole; set '
            'that, or order = "time"'
        )
    if source is not None and source.complete and source.order != "time":
        if window.end is not None and window.size and window.end % window.size:
            yield f"window.end: not a border of windows of {duration(window.size)}"
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
