"""From a TOML file to a plan that may run. Validated as a whole before anything is opened or connected.

Every problem carries the path of its setting. Relative paths in the file are relative to the file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sfm_stream.errors import ConfigError, SfmStreamError
from sfm_stream.pipeline.event_format import MAX_TIME_MS, EventFormat
from sfm_stream.pipeline.plan import CountingPlan, Limits
from sfm_stream.pipeline.spans import HOUR_MS, Calendar, calendar
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.epsilon import flip_threshold, parse_epsilon
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.selection import parse_delta, selection_table
from sfm_stream.settings import KeyEntry, Settings
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b
from sfm_stream.sketch.keys import encode_key
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import KeyValue
from sfm_stream.windows.tumbling import FOREVER_MS, Tumbling

_T = TypeVar("_T")
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Config:
    """A validated configuration. `settings` is the file as written; the rest follows from it."""

    settings: Settings
    folder: Path
    shape: SketchShape
    item_hash: ItemHash
    keys: KeyRule
    k: int
    calendar: Calendar
    budget: Budget

    @property
    def unit(self) -> str:
        """The privacy unit. In files arrival time is event time, so neighbours blank an item's records in place."""
        return "blanked"

    @property
    def input_path(self) -> str:
        path = self.settings.input.path
        return path if path == STDIN else str(self.folder / path)

    @property
    def output_path(self) -> Path:
        return self.folder / self.settings.output.path

    def event_format(self, latest_ms: int) -> EventFormat:
        """What extraction needs. latest_ms: upper end of the plausible band, fixed at first start."""
        return _event_format(self.settings, latest_ms)

    def plan(self, partitions: int, start_ms: int, end_ms: int = FOREVER_MS) -> CountingPlan:
        """What to count, once the first and the last window border of the epoch are known."""
        settings = self.settings
        return CountingPlan(
            pipeline=settings.pipeline.id,
            epoch=settings.pipeline.epoch,
            partitions=partitions,
            shape=self.shape,
            item_hash=self.item_hash,
            # Arrival time is event time here: no event lies in the future of its own arrival.
            windows=Tumbling(settings.window.size, settings.window.grace, 0, start_ms, end_ms),
            epsilon=settings.privacy.epsilon,
            k=self.k,
            unit=self.unit,
            keys=self.keys,
            fingerprint=self.fingerprint(partitions),
            limits=Limits(**settings.limits.model_dump()),
        )

    def fingerprint(self, partitions: int) -> str:
        """32 hex digits over everything that two releases of one epoch must have in common. Public."""
        settings = self.settings
        selected = self.keys if isinstance(self.keys, SelectedKeys) else None
        parts = {
            "pipeline": settings.pipeline.id,
            "shape": str(self.shape),
            "hash": self.item_hash.name,
            "k": self.k,
            "window_ms": settings.window.size,
            "keys": settings.privacy.keys,
            "selection": [str(selected.epsilon), str(selected.delta)] if selected else None,
            "event": [*settings.event.key, settings.event.item, settings.event.time, settings.event.time_unit],
            "float_items": settings.event.float_items,
            "unit": self.unit,
            "partitions": partitions,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def load_config(path: Path) -> Config:
    """The configuration in a TOML file. Raises ConfigError with every problem found, each with its setting."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    return parse_config(text, path.parent, str(path))


def parse_config(text: str, folder: Path, name: str = "configuration") -> Config:
    """As load_config, from text; relative paths are taken from `folder`."""
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        raise ConfigError(*(_explain(dict(problem)) for problem in error.errors())) from None
    return _Check(settings, folder).config()


def _event_format(settings: Settings, latest_ms: int) -> EventFormat:
    event = settings.event
    return EventFormat(
        key=event.key,
        item=event.item,
        time=event.time,
        time_unit=event.time_unit,
        naive_utc=event.naive_time == "utc",
        float_items=event.float_items,
        earliest_ms=event.earliest,
        latest_ms=latest_ms,
        max_key_bytes=event.max_key_bytes,
        max_record_bytes=event.max_record_bytes,
    )


class _Check:
    """Cross-field rules. Every rule runs; the problems are raised together."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.problems: list[str] = []

    def config(self) -> Config:
        settings = self.settings
        shape = self.attempt("sketch", lambda: SketchShape(settings.sketch.buckets, settings.sketch.levels))
        k = self.attempt("privacy", lambda: flip_threshold(settings.privacy.epsilon))
        item_hash = self.attempt("sketch.hash_key_file", self.item_hash)
        keys = self.attempt("privacy", self.key_rule)
        self.windows()
        self.event()
        zone = self.attempt(
            "", lambda: calendar(settings.rollup.zone, settings.window.size or 1, settings.event.earliest)
        )
        if self.problems or shape is None or k is None or item_hash is None or keys is None or zone is None:
            raise ConfigError(*self.problems)
        selected = keys if isinstance(keys, SelectedKeys) else None
        budget = Budget(
            settings.privacy.epsilon,
            selected.epsilon if selected else Decimal(0),
            selected.delta if selected else Decimal(0),
            zone.longest_day_ms // settings.window.size,
        )
        require_within(budget, settings.privacy.max_epsilon_per_item_day)
        return Config(settings, self.folder, shape, item_hash, keys, k, zone, budget)

    def attempt(self, table: str, build: Callable[[], _T]) -> _T | None:
        try:
            return build()
        except SfmStreamError as error:
            problems = error.problems if isinstance(error, ConfigError) else (f"{table}.{error}",)
            self.problems.extend(problems)
            return None

    def item_hash(self) -> ItemHash:
        sketch = self.settings.sketch
        if sketch.hash == "xxh64":
            if sketch.hash_key_file is not None:
                raise ConfigError('sketch.hash_key_file: only for sketch.hash = "blake2b"')
            return XXH64
        if sketch.hash_key_file is None:
            raise ConfigError(
                'sketch.hash_key_file: needed for sketch.hash = "blake2b": a file of 16 to 64 random bytes'
            )
        try:
            return keyed_blake2b((self.folder / sketch.hash_key_file).read_bytes())
        except OSError as error:
            raise ConfigError(f"sketch.hash_key_file: {error.strerror or error}") from None

    def key_rule(self) -> KeyRule:
        privacy = self.settings.privacy
        selection = (privacy.epsilon_selection, privacy.delta_selection)
        if privacy.keys != "selected" and selection != (None, None):
            raise ConfigError('privacy.epsilon_selection and delta_selection: only for privacy.keys = "selected"')
        if privacy.keys != "declared" and (privacy.declared or privacy.declared_from):
            raise ConfigError('privacy.declared: only for privacy.keys = "declared"')
        if privacy.keys == "presence_is_public":
            return PresenceIsPublic()
        if privacy.keys == "declared":
            return self.declared()
        if privacy.epsilon_selection is None or privacy.delta_selection is None:
            raise ConfigError(
                'privacy.epsilon_selection and privacy.delta_selection: both are needed for privacy.keys = "selected"'
            )
        epsilon = parse_epsilon(privacy.epsilon_selection, "epsilon_selection")
        delta = parse_delta(privacy.delta_selection)
        return SelectedKeys(epsilon, delta, selection_table(epsilon, delta))

    def declared(self) -> DeclaredKeys:
        privacy, size = self.settings.privacy, self.settings.window.size
        effective: dict[KeyValue, int] = {}
        listed = [(0, privacy.declared)] + [(entry.since, entry.keys) for entry in privacy.declared_from]
        for since, entries in listed:
            if size and since % size:
                self.problems.append(f"privacy.declared_from.since: {since} ms is not a border of windows of {size} ms")
            for entry in entries:
                key = self.key_value(entry)
                if key in effective:
                    self.problems.append("privacy.declared: a key is listed twice")
                effective[key] = since
        if not effective:
            raise ConfigError('privacy.declared: the list of keys is needed for privacy.keys = "declared"')
        return DeclaredKeys(effective)

    def key_value(self, entry: KeyEntry) -> KeyValue:
        fields = self.settings.event.key
        parts = tuple(entry) if isinstance(entry, list) else (entry,)
        if len(parts) != len(fields):
            self.problems.append(f"privacy.declared: a key of {len(parts)} fields where event.key has {len(fields)}")
        if any(isinstance(part, int) and not -(1 << 63) <= part < 1 << 63 for part in parts):
            raise ConfigError("privacy.declared: an integer key outside int64")
        if len(encode_key(parts)) > self.settings.event.max_key_bytes:
            self.problems.append("privacy.declared: a key longer than event.max_key_bytes")
        return parts[0] if len(fields) == 1 else parts

    def windows(self) -> None:
        window = self.settings.window
        if not window.size or HOUR_MS % window.size:
            self.problems.append(f"window.size: {window.size} ms does not divide one hour")
        elif window.start is not None and window.start % window.size:
            self.problems.append(f"window.start: not a border of windows of {window.size} ms")
        if window.start is not None and window.start < 0:
            self.problems.append("window.start: before 1970")

    def event(self) -> None:
        event = self.settings.event
        latest = MAX_TIME_MS if event.latest is None else event.latest
        self.attempt("event", lambda: _event_format(self.settings, latest))
        if self.settings.input.path != STDIN and (self.folder / self.settings.input.path) == (
            self.folder / self.settings.output.path
        ):
            self.problems.append("output.path: the same file as input.path")


def _explain(problem: dict[str, Any]) -> str:
    """One line for one finding of the validator: setting, what is wrong, and what was probably meant."""
    where = [part for part in problem["loc"] if not (isinstance(part, str) and ("[" in part or part in _UNION_ARMS))]
    name = ".".join(str(part) for part in where)
    if problem["type"] == "extra_forbidden":
        known = _fields_at(where[:-1])
        close = difflib.get_close_matches(str(where[-1]), known, 1)
        return f"{name}: unknown setting" + (
            f'; did you mean "{close[0]}"?' if close else f"; known are {', '.join(known)}"
        )
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {message[0].lower()}{message[1:]}"


_UNION_ARMS = {"str", "int", "strict-str", "strict-int"}


def _fields_at(where: list[Any]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in where:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return list(model.model_fields)
