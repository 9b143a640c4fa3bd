"""The settings: every table of the configuration file with the types, ranges and defaults of its settings.

Each setting is checked by itself here; rules.py checks those that depend on each other. docs/configuration.md explains
every setting.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from sfm_stream import kernels
from sfm_stream.config.values import Address, Duration, FieldPaths, Instant, KeyEntry, Number, SpanName
from sfm_stream.units import DAY_MS, HOUR_MS


class SettingsTable(BaseModel):
    """A table of the configuration file. It is frozen, and refuses unknown settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PipelineTable(SettingsTable):
    id: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    epoch: Annotated[StrictInt, Field(ge=1, lt=1 << 31)] = 1


class InputTable(SettingsTable):
    path: Annotated[StrictStr, Field(min_length=1)]
    """A file of JSON lines, plain or gzip, or "-" for standard input."""
    complete: StrictBool = False
    """Whether nothing will ever be added to the input: then all windows are closed at its end."""
    order: Literal["any", "time"] | None = None
    """"any": the input is counted whole and released at its end; the default if it is complete. "time": windows are
    released while it is read."""


class EventTable(SettingsTable):
    key: FieldPaths
    item: Annotated[StrictStr, Field(min_length=1)]
    time: Annotated[StrictStr, Field(min_length=1)] | None = None
    """The path of the time; None: the time stamp that the record has on its topic."""
    time_unit: StrictStr = "ms"
    naive_time: Annotated[StrictStr, Field(min_length=1)] = "refuse"
    """What a time without offset means: "refuse", "utc", or the name of an IANA zone."""
    float_items: StrictBool = False
    earliest: Instant = 631_152_000_000
    latest: Instant | None = None
    max_key_bytes: Annotated[StrictInt, Field(ge=1, le=65536)] = 1024
    max_record_bytes: Annotated[StrictInt, Field(ge=64, le=16 << 20)] = 1 << 20


class WindowTable(SettingsTable):
    size: SpanName
    """The finest span that is released: a length that divides one hour, or "hour", "day", "week", "month"."""
    grace: Duration | None = None
    """How late a record may be. Needed if the input is read in order of time; unused if it is counted whole."""
    start: Instant | None = None
    end: Instant | None = None
    """The last window border of an input that is counted whole."""
    max_future_skew: Duration = HOUR_MS
    clock_margin: Duration = 5_000
    """How far the clocks of brokers and workers may differ: windows close this much later where brokers give arrival
    times, and in idle partitions."""

    @property
    def grace_ms(self) -> int:
        """The grace; 0 if it is not set."""
        return self.grace or 0


class SketchTable(SettingsTable):
    buckets: StrictInt = 4096
    levels: StrictInt = 24
    hash: Literal["xxh64", "blake2b"] = "xxh64"
    hash_key_file: Path | None = None


class DeclaredFrom(SettingsTable):
    """Keys that are declared from a later window on."""

    since: Instant
    keys: list[KeyEntry]


class PrivacyTable(SettingsTable):
    epsilon: Number
    count_share: Number = Decimal("0.1")
    """The part of epsilon that pays for a noisy count beside the bits; 0: releases have no count."""
    keys: Literal["declared", "selected", "presence_is_public"]
    max_epsilon_per_item_day: Number
    declared: list[KeyEntry] = []
    declared_from: list[DeclaredFrom] = []
    epsilon_selection: Number | None = None
    delta_selection: Number | None = None


class SpanTable(SettingsTable):
    """A coarser span that is released from raw as well; one table [[spans]] for each."""

    size: SpanName
    epsilon: Number
    """Of one release of this span."""
    count_share: Number | None = None
    """As privacy.count_share, which is the default."""
    buckets: StrictInt | None = None
    levels: StrictInt | None = None
    """Of its sketches; the defaults are those of [sketch]."""


class RollupTable(SettingsTable):
    zone: StrictStr = "UTC"
    deadline: Duration = HOUR_MS
    """An hour or a day that is not final so long after its end is published as it stands."""


class OutputTable(SettingsTable):
    path: Annotated[StrictStr, Field(min_length=1)]


class KafkaTable(SettingsTable):
    """A pipeline on a cluster has this table in place of [input] and [output]."""

    bootstrap: Annotated[list[Annotated[StrictStr, Field(min_length=1)]], Field(min_length=1)]
    topic: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    timestamps: Literal["log_append_time", "create_time"]
    """The `message.timestamp.type` of the topic, on which the privacy unit depends."""
    partitioner: Literal["murmur2", "crc32", "murmur2_random"] = "murmur2"
    accept_any_clock: StrictBool = False
    """Whether to go on if the broker does not bound the time stamps of producers."""
    replication: Annotated[StrictInt, Field(ge=1)] = 3
    """The number of replicas of topics that are created."""
    outbox_retention: Duration = 7 * DAY_MS
    downtime: Duration = DAY_MS
    """How long the workers may be stopped: the retention of the input must leave them every record that counts."""
    dead_letters: StrictBool = False
    """Whether to write a pointer to each dropped record into a topic of the operator."""
    release_slot: Duration = 0
    """A window is published so long after its end, grace and clock margin, however early it was closed; 0: at once."""
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


class LimitsTable(SettingsTable):
    max_gap_windows: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_consecutive_invalid: Annotated[StrictInt, Field(ge=1)] = 10_000
    max_open_keys: Annotated[StrictInt, Field(ge=1)] = 5_000_000
    max_raw_bytes: Annotated[StrictInt, Field(ge=1 << 20)] = 4 << 30
    max_transaction_bytes: Annotated[StrictInt, Field(ge=1 << 12)] = 8 << 20


class MetricsTable(SettingsTable):
    """Addresses at which metrics are served; "": not at all."""

    operator: Address = "127.0.0.1:9464"
    """For exact numbers and the health of a worker, which are outside the privacy guarantee."""
    public: Address = ""
    """For published estimates, by the roll-up worker."""
    max_public_keys: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1000


class ServeTable(SettingsTable):
    """What `sfm-stream serve` listens to, and what it answers."""

    listen: Address = "127.0.0.1:8464"
    """Where the page and the JSON API are."""
    hosts: tuple[Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9._-]+$")], ...] = ()
    """Names under which it may be asked, beside those of loopback; empty: any where it does not listen on loopback."""
    cache: Annotated[StrictStr, Field(min_length=1)] = "serve-cache"
    """The folder with the copies of public topics. They may be deleted at any time."""
    max_rows: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 20_000
    """Of one answer."""
    max_span: Annotated[Duration, Field(ge=HOUR_MS)] = 800 * DAY_MS
    """Of one question, where it asks for more than one number a key."""
    max_time: Annotated[Duration, Field(ge=100)] = 20_000
    """Of one question."""
    max_questions: Annotated[StrictInt, Field(ge=1, le=64)] = 4
    """That are answered at the same time; others wait."""
    cors_origins: tuple[Annotated[StrictStr, Field(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+$")], ...] = ()
    """Origins whose pages may read the JSON API in a browser."""


class LogsTable(SettingsTable):
    format: Literal["text", "json"] = "text"
    level: Literal["info", "warning", "error"] = "info"


class WorkerTable(SettingsTable):
    kernel: kernels.Setting = "auto"
    """What computes: "python", "native" (of sfm-stream-native), or "auto": the latter where it is installed. Both give
    the same results."""


class Settings(SettingsTable):
    """The whole file."""

    pipeline: PipelineTable
    input: InputTable | None = None
    event: EventTable
    window: WindowTable
    sketch: SketchTable = SketchTable()
    privacy: PrivacyTable
    spans: tuple[SpanTable, ...] = ()
    rollup: RollupTable = RollupTable()
    output: OutputTable | None = None
    kafka: KafkaTable | None = None
    limits: LimitsTable = LimitsTable()
    metrics: MetricsTable = MetricsTable()
    serve: ServeTable = ServeTable()
    logs: LogsTable = LogsTable()
    worker: WorkerTable = WorkerTable()
