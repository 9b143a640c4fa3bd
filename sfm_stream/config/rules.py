"""Rules across settings: every one of them runs, and what they find is raised together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sfm_stream.config.credentials import password
from sfm_stream.config.tables import KeyEntry, Settings
from sfm_stream.errors import ConfigError, SfmStreamError
from sfm_stream.events.event_schema import MAX_TIME_MS, EventSchema
from sfm_stream.pipeline.rollup.calendar import Calendar, calendar
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.epsilon import flip_threshold_of, parse_epsilon
from sfm_stream.privacy.key_rules import DeclaredKeys, KeyRule, PresenceIsPublic, SelectedKeys
from sfm_stream.privacy.selection import parse_delta, selection_table
from sfm_stream.readable import duration, instant
from sfm_stream.sketch.hashing import XXH64, ItemHash, keyed_blake2b
from sfm_stream.sketch.shape import SketchShape
from sfm_stream.types import KeyValue
from sfm_stream.units import HOUR_MS, INT64_MAX, INT64_MIN
from sfm_stream.wire.keys import encode_key

_T = TypeVar("_T")
STDIN = "-"


class Checked(NamedTuple):
    """What follows from settings that fit together."""

    shape: SketchShape
    item_hash: ItemHash
    keys: KeyRule
    flip_threshold: int
    calendar: Calendar
    budget: Budget
    security: Mapping[str, Any]
    """Keyword arguments for the client of a cluster, secrets among them."""


def event_schema(settings: Settings, latest_ms: int) -> EventSchema:
    """What extraction needs. latest_ms: upper end of the plausible band."""
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


class Check:
    """Call checked() once."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.problems: list[str] = []
        self.size_ms = 0 if HOUR_MS % (settings.window.size or HOUR_MS + 1) else settings.window.size
        """Of a window; 0 where it is wrong, which is said once and not by every rule that needs it."""

    def checked(self) -> Checked:
        """Raises ConfigError with every problem found."""
        settings = self.settings
        shape = self.attempt("sketch", lambda: SketchShape(settings.sketch.buckets, settings.sketch.levels))
        threshold = self.attempt("privacy", lambda: flip_threshold_of(settings.privacy.epsilon))
        item_hash = self.attempt("sketch.hash_key_file", self.item_hash)
        keys = self.attempt("privacy", self.key_rule)
        self.windows()
        self.order()
        self.event()
        self.ends()
        security = self.attempt("kafka", self.security)
        zone = self.attempt("", lambda: calendar(settings.rollup.zone, self.size_ms or 1, settings.event.earliest))
        if self.problems or shape is None or threshold is None or item_hash is None or keys is None or zone is None:
            raise ConfigError(*self.problems)
        selected = keys if isinstance(keys, SelectedKeys) else None
        budget = Budget(
            settings.privacy.epsilon,
            selected.epsilon if selected else Decimal(0),
            selected.delta if selected else Decimal(0),
            zone.longest_day_ms // settings.window.size,
        )
        require_within(budget, settings.privacy.max_epsilon_per_item_day)
        return Checked(shape, item_hash, keys, threshold, zone, budget, security or {})

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
        privacy, size = self.settings.privacy, self.size_ms
        effective: dict[KeyValue, int] = {} if self.settings.event.key else {(): 0}
        listed = [(0, privacy.declared)] + [(entry.since, entry.keys) for entry in privacy.declared_from]
        for since, entries in listed:
            if size and since % size:
                self.problems.append(
                    f"privacy.declared_from.since: {instant(since)} is not a border of windows of {duration(size)}"
                )
            for entry in entries:
                key = self.key_value(entry)
                if key in effective and key != ():
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
        if any(isinstance(part, int) and not INT64_MIN <= part <= INT64_MAX for part in parts):
            raise ConfigError("privacy.declared: an integer key outside int64")
        if len(encode_key(parts)) > self.settings.event.max_key_bytes:
            self.problems.append("privacy.declared: a key longer than event.max_key_bytes")
        return parts[0] if len(fields) == 1 else parts

    def windows(self) -> None:
        window = self.settings.window
        if not self.size_ms:
            self.problems.append(f"window.size: {duration(window.size)} does not divide one hour")
        elif window.start is not None and window.start % self.size_ms:
            self.problems.append(f"window.start: not a border of windows of {duration(window.size)}")
        if window.start is not None and window.start < 0:
            self.problems.append("window.start: before 1970")

    def order(self) -> None:
        """Whether the input is read in order of time or counted whole, and the settings that belong to that."""
        source, window = self.settings.input, self.settings.window
        if source is not None and source.order == "any" and not source.complete:
            self.problems.append(
                'input.order: "any" needs input.complete = true, as only an input that ends can be counted whole; set '
                'that, or order = "time"'
            )
        if source is not None and source.complete and source.order != "time":
            if window.end is not None and window.size and window.end % window.size:
                self.problems.append(f"window.end: not a border of windows of {duration(window.size)}")
            if window.end is not None and window.end <= (window.start or 0):
                self.problems.append("window.end: not after window.start")
            return
        if window.grace is None:
            self.problems.append(
                "window.grace: needed, as windows close in order of time: how far out of order a record may arrive"
            )
        if window.end is not None:
            self.problems.append(
                'window.end: only for an input that is counted whole (input.complete = true, input.order = "any"); '
                "elsewhere windows close in order of time, and an epoch ends where the next one begins"
            )

    def event(self) -> None:
        event = self.settings.event
        latest = MAX_TIME_MS if event.latest is None else event.latest
        self.attempt("event", lambda: event_schema(self.settings, latest))
        if event.time is None and self.settings.kafka is None:
            self.problems.append("event.time: needed, as lines of a file have no time stamp of their own")

    def ends(self) -> None:
        """Where events come from and where releases go: files, or a cluster."""
        settings = self.settings
        source, output, kafka = settings.input, settings.output, settings.kafka
        if kafka is not None and (source or output):
            self.problems.append("kafka: stands in place of [input] and [output]; leave those out")
        elif kafka is None and (source is None or output is None):
            self.problems.append("input, output: both are needed, or [kafka] in their place")
        elif source and output and source.path != STDIN and (self.folder / source.path) == (self.folder / output.path):
            self.problems.append("output.path: the same file as input.path")
        if kafka is not None:
            names = ("outbox", "ledger", "sketches", "rollups", "dead-letters")
            for taken in (f"{settings.pipeline.id}.{name}" for name in names):
                if kafka.topic == taken:
                    self.problems.append("kafka.topic: a topic that the pipeline itself writes")
                elif kafka.topic.replace(".", "_") == taken.replace(".", "_"):
                    self.problems.append(
                        f"kafka.topic: beside {kafka.topic} there can be no {taken}, which the pipeline writes: Kafka "
                        "takes '.' and '_' for the same there. Choose another pipeline.id"
                    )
            if settings.pipeline.epoch > 1 and settings.window.start is None:
                self.problems.append("window.start: needed for an epoch after the first")

    def security(self) -> Mapping[str, Any]:
        kafka = self.settings.kafka
        if kafka is None:
            return {}
        found: dict[str, Any] = {"security_protocol": _PROTOCOLS[kafka.security]}
        if not kafka.security.startswith("sasl") and (kafka.sasl_mechanism or kafka.username):
            raise ConfigError(
                'kafka.sasl_mechanism, kafka.username: only for security = "sasl_plaintext" or "sasl_tls"'
            )
        if kafka.security.startswith("sasl"):
            secret = password(self.folder, kafka.password_file, kafka.password_env)
            if kafka.sasl_mechanism is None or kafka.username is None or secret is None:
                raise ConfigError(
                    "kafka.sasl_mechanism, kafka.username, and kafka.password_file or kafka.password_env: needed "
                    f'for security = "{kafka.security}"'
                )
            found |= {
                "sasl_mechanism": kafka.sasl_mechanism,
                "sasl_plain_username": kafka.username,
                "sasl_plain_password": secret,
            }
        files = {
            "ssl_cafile": kafka.ca_file,
            "ssl_certfile": kafka.certificate_file,
            "ssl_keyfile": kafka.key_file,
        }
        if not kafka.security.endswith("tls"):
            if any(files.values()):
                raise ConfigError('kafka.ca_file and others: only for security = "tls" or "sasl_tls"')
            return found
        for name, file in files.items():
            if file is not None:
                if not (self.folder / file).is_file():
                    raise ConfigError(f"kafka.{_SETTING[name]}: {self.folder / file} is not a file")
                found[name] = str(self.folder / file)
        return found | {"ssl_check_hostname": kafka.check_hostname}


_PROTOCOLS = {"plaintext": "PLAINTEXT", "tls": "SSL", "sasl_plaintext": "SASL_PLAINTEXT", "sasl_tls": "SASL_SSL"}
_SETTING = {"ssl_cafile": "ca_file", "ssl_certfile": "certificate_file", "ssl_keyfile": "key_file"}
