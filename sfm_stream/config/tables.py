"""The configuration file as typed settings: one TOML file, every table and key known, every value checked.

Only shapes and ranges of single settings are checked here; config/config.py checks what they mean together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)
from pydantic.fields import FieldInfo

from sfm_stream.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


def duration_ms(value: Any) -> int:
    """Milliseconds of a duration such as "500ms", "90s", "30m", "2h" or "1d"."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('expected a duration in quotes, such as "30m" (units ms, s, m, h, d)')
    return int(match[1]) * _UNITS_MS[match[2]]


def instant_ms(value: Any) -> int:
    """Milliseconds since 1970 of a TOML date-time with an offset."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("expected a date and time with an offset, without quotes, such as 2026-01-31T00:00:00Z")
    return round(value.timestamp() * 1000)


def paths(value: Any) -> tuple[str, ...]:
    """Field paths from one text or a list of them."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(path, str) and path for path in listed):
        raise ValueError("expected a field name, or a list of field names (an empty list: one count for the stream)")
    return tuple(listed)


def number(value: Any) -> Decimal:
    """An exact decimal from a TOML number; text and booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def address(value: Any) -> str:
    """Where to listen, "host:port" or "[IPv6]:port"; an empty text for nowhere."""
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if value != "" and (match is None or int(match[1]) > 65535):
        raise ValueError('expected an address such as "127.0.0.1:9464", or "" for none')
    return str(value)


Address = Annotated[str, BeforeValidator(address)]
Duration = Annotated[int, BeforeValidator(duration_ms)]
Instant = Annotated[int, BeforeValidator(instant_ms)]
Paths = Annotated[tuple[str, ...], BeforeValidator(paths)]
Number = Annotated[Decimal, BeforeValidator(number)]
KeyEntry = StrictStr | StrictInt | list[StrictStr | StrictInt]


def kind_of(field: FieldInfo) -> object:
    """What reads an integer setting: duration_ms, instant_ms, or None where it is a plain number."""

    def readers(annotation: object) -> Iterator[object]:
        for each in getattr(annotation, "__metadata__", ()):
            yield getattr(each, "func", None)
        for inner in get_args(annotation):
            yield from readers(inner)

    found = [*(getattr(each, "func", None) for each in field.metadata), *readers(field.annotation)]
    return next((reader for reader in found if reader in (duration_ms, instant_ms)), None)


class Table(BaseModel):
    """A TOML table: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PipelineTable(Table):
    id: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    epoch: Annotated[StrictInt, Field(ge=1, lt=1 << 31)] = 1


class InputTable(Table):
    path: Annotated[StrictStr, Field(min_length=1)]
    """A file of JSON lines, plain or gzip, or "-" for standard input."""
    complete: StrictBool = False
    """The end of this input is its end for ever: all windows are closed there."""
    order: Literal["any", "time"] | None = None
    """"any", where it is complete the default: counted whole, released at its end. "time": windows close meanwhile."""


class EventTable(Table):
    key: Paths
    item: Annotated[StrictStr, Field(min_length=1)]
    time: Annotated[StrictStr, Field(min_length=1)] | None = None
    """Left out: the time stamp of the record on its topic."""
    time_unit: StrictStr = "ms"
    naive_time: Annotated[StrictStr, Field(min_length=1)] = "refuse"
    """Of times without offset: "refuse", "utc", or an IANA zone."""
    float_items: StrictBool = False
    earliest: Instant = 631_152_000_000
    latest: Instant | None = None
    max_key_bytes: Annotated[StrictInt, Field(ge=1, le=65536)] = 1024
    max_record_bytes: Annotated[StrictInt, Field(ge=64, le=16 << 20)] = 1 << 20


class WindowTable(Table):
    size: Duration
    grace: Duration | None = None
    """Needed where an input is read in order of time; without a meaning where it is counted whole."""
    start: Instant | None = None
    end: Instant | None = None
    """Where an input is counted whole: the last border."""
    max_future_skew: Duration = HOUR_MS
    clock_margin: Duration = 5_000
    """How far the clocks of brokers and workers may differ: windows close this much later where brokers give arrival
    times, and in idle partitions."""

    @property
    def grace_ms(self) -> int:
        """0 where none is needed."""
        return self.grace or 0


class SketchTable(Table):
    buckets: StrictInt = 4096
    levels: StrictInt = 24
    hash: Literal["xxh64", "blake2b"] = "xxh64"
    hash_key_file: Path | None = None


class DeclaredFrom(Table):
    """Keys that take effect in a later window."""

    since: Instant
    keys: list[KeyEntry]


class PrivacyTable(Table):
    epsilon: Number
    keys: Literal["declared", "selected", "presence_is_public"]
    max_epsilon_per_item_day: Number
    declared: list[KeyEntry] = []
    declared_from: list[DeclaredFrom] = []
    epsilon_selection: Number | None = None
    delta_selection: Number | None = None


class RollupTable(Table):
    zone: StrictStr = "UTC"
    deadline: Duration = HOUR_MS
    """How long after its end an hour or a day that is not final is published as it stands."""


class OutputTable(Table):
    path: Annotated[StrictStr, Field(min_length=1)]


class KafkaTable(Table):
    """In place of [input] and [output]: topics of a cluster."""

    bootstrap: Annotated[list[Annotated[StrictStr, Field(min_length=1)]], Field(min_length=1)]
    topic: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    timestamps: Literal["log_append_time", "create_time"]
    """What `message.timestamp.type` of the topic is; the privacy unit hangs on it."""
    partitioner: Literal["murmur2", "crc32", "murmur2_random"] = "murmur2"
    accept_any_clock: StrictBool = False
    """Go on where the broker does not bound the time stamps of producers."""
    replication: Annotated[StrictInt, Field(ge=1)] = 3
    """Of the topics that are created."""
    outbox_retention: Duration = 7 * DAY_MS
    downtime: Duration = DAY_MS
    """The longest stop after which the input must still hold every record that counts."""
    dead_letters: StrictBool = False
    """Write a pointer to each record that is dropped into a topic of the operator's."""
    release_slot: Duration = 0
    """Publish a window this long after end, grace and clock margin, whenever it was closed."""
    session_timeout: Duration = 30_000
    transaction_timeout: Duration = 30_000
    security: Literal["plaintext", "tls", "sasl_plaintext", "sasl_tls"] = "plaintext"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: StrictStr | None = None
    password_file: Path | None = None
    password_env: StrictStr | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    check_hostname: StrictBool = True


class LimitsTable(Table):
    max_gap_windows: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_consecutive_invalid: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_open_keys: Annotated[StrictInt, Field(ge=1)] = 5_000_000
    max_raw_bytes: Annotated[StrictInt, Field(ge=1 << 20)] = 4 << 30
    max_transaction_bytes: Annotated[StrictInt, Field(ge=1 << 12)] = 8 << 20


class MetricsTable(Table):
    """Addresses to listen at, "" for none."""

    operator: Address = "127.0.0.1:9464"
    """Exact numbers and health of a worker, outside the guarantee."""
    public: Address = ""
    """Published estimates, by the roll-up worker."""
    max_public_keys: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1000


class LogsTable(Table):
    format: Literal["text", "json"] = "text"
    level: Literal["info", "warning", "error"] = "info"


class Settings(Table):
    """The whole file."""

    pipeline: PipelineTable
    input: InputTable | None = None
    event: EventTable
    window: WindowTable
    sketch: SketchTable = SketchTable()
    privacy: PrivacyTable
    rollup: RollupTable = RollupTable()
    output: OutputTable | None = None
    kafka: KafkaTable | None = None
    limits: LimitsTable = LimitsTable()
    metrics: MetricsTable = MetricsTable()
    logs: LogsTable = LogsTable()
