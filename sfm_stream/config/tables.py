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
    """The name of the pipeline, in every record and in the names of its topics."""
    epoch: Annotated[StrictInt, Field(ge=1, lt=1 << 31)] = 1
    """Raised when releases of a new kind begin."""


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
    """The field that is counted by, or a list of fields, or an empty list for one count. Dots lead into objects."""
    item: Annotated[StrictStr, Field(min_length=1)]
    """The field whose distinct values are counted."""
    time: Annotated[StrictStr, Field(min_length=1)] | None = None
    """The path of the time; None: the time stamp that the record has on its topic."""
    time_unit: StrictStr = "ms"
    """How the time is written: "s", "ms", "us", "ns", "iso8601", or a strptime pattern."""
    naive_time: Annotated[StrictStr, Field(min_length=1)] = "refuse"
    """What a time without offset means: "refuse", "utc", or the name of an IANA zone."""
    float_items: StrictBool = False
    """Whether JSON numbers with a fraction are items."""
    earliest: Instant = 631_152_000_000
    """Records of an earlier event time are dropped."""
    latest: Instant | None = None
    """Records of a later event time are dropped. The default is the first start and window.max_future_skew; on a
    cluster there is none."""
    max_key_bytes: Annotated[StrictInt, Field(ge=1, le=65536)] = 1024
    """Records of a longer key are dropped."""
    max_record_bytes: Annotated[StrictInt, Field(ge=64, le=16 << 20)] = 1 << 20
    """Longer records are dropped."""


class WindowTable(SettingsTable):
    size: SpanName
    """The finest span that is released: a length that divides one hour, or "hour", "day", "week", "month"."""
    grace: Duration | None = None
    """How late a record may be. Needed if the input is read in order of time; unused if it is counted whole."""
    start: Instant | None = None
    """The first window border, fixed at the first start."""
    end: Instant | None = None
    """The last window border of an input that is counted whole."""
    max_future_skew: Duration = HOUR_MS
    """How far ahead of the clock at the first start event times may lie; on a cluster, ahead of their own arrival."""
    clock_margin: Duration = 5_000
    """How far the clocks of brokers and workers may differ: windows close this much later where brokers give arrival
    times, and in idle partitions."""

    @property
    def grace_ms(self) -> int:
        """The grace; 0 if it is not set."""
        return self.grace or 0


class SketchTable(SettingsTable):
    buckets: StrictInt = 4096
    """Of a sketch: a power of two. The error of large counts is about c / sqrt(buckets)."""
    levels: StrictInt = 24
    """Of a sketch: about 2^levels times buckets items fill it."""
    hash: Literal["xxh64", "blake2b"] = "xxh64"
    """Of items; "blake2b" has a secret key."""
    hash_key_file: Path | None = None
    """The file with the secret key of "blake2b", 16 to 64 bytes."""


class DeclaredFrom(SettingsTable):
    """Keys that are declared from a later window on."""

    since: Instant
    """The first window border from which they count."""
    keys: list[KeyEntry]
    """The keys; one of several fields is a list."""


class PrivacyTable(SettingsTable):
    epsilon: Number
    """Of one release of the base span, its bits and its count together."""
    count_share: Number = Decimal("0.1")
    """The part of epsilon that pays for a noisy count beside the bits; 0: releases have no count."""
    keys: Literal["declared", "selected", "presence_is_public"]
    """Which keys appear: those of a public list, those that private selection lets appear, or all that had an item."""
    max_epsilon_per_item_day: Number
    """Nothing starts where an item that is always active could lose more in a day, under one key."""
    declared: list[KeyEntry] = []
    """The public list of keys; one of several fields is a list."""
    declared_from: list[DeclaredFrom] = []
    """Keys that are declared later."""
    epsilon_selection: Number | None = None
    """What the selection of a key costs in each window, for "selected"."""
    delta_selection: Number | None = None
    """The delta of a selection, for "selected"."""


class SpanTable(SettingsTable):
    """A coarser span that is released from raw as well; one table [[spans]] for each."""

    size: SpanName
    """A length that divides one hour, or "hour", "day", "week", "month"."""
    epsilon: Number
    """Of one release of this span."""
    count_share: Number | None = None
    """As privacy.count_share, which is the default."""
    buckets: StrictInt | None = None
    """Of its sketches; the default is that of [sketch]."""
    levels: StrictInt | None = None
    """Of its sketches; the default is that of [sketch]."""


class RollupTable(SettingsTable):
    zone: StrictStr = "UTC"
    """The IANA name of the zone whose days, weeks and months they are."""
    deadline: Duration = HOUR_MS
    """An hour or a day that is not final so long after its end is published as it stands."""


class OutputTable(SettingsTable):
    path: Annotated[StrictStr, Field(min_length=1)]
    """The SQLite file; never replace it by an older copy, nor delete it."""


class KafkaTable(SettingsTable):
    """A pipeline on a cluster has this table in place of [input] and [output]."""

    bootstrap: Annotated[list[Annotated[StrictStr, Field(min_length=1)]], Field(min_length=1)]
    """Addresses "host:port" of some brokers."""
    topic: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    """The input topic, whose records are keyed by the counting key."""
    timestamps: Literal["log_append_time", "create_time"]
    """The `message.timestamp.type` of the topic, on which the privacy unit depends."""
    partitioner: Literal["murmur2", "crc32", "murmur2_random"] = "murmur2"
    """How producers choose a partition."""
    accept_any_clock: StrictBool = False
    """Whether to go on if the broker does not bound the time stamps of producers."""
    replication: Annotated[StrictInt, Field(ge=1)] = 3
    """The number of replicas of topics that are created."""
    outbox_retention: Duration = 7 * DAY_MS
    """How long committed releases wait for a publisher at most."""
    downtime: Duration = DAY_MS
    """How long the workers may be stopped: the retention of the input must leave them every record that counts."""
    dead_letters: StrictBool = False
    """Whether to write a pointer to each dropped record into a topic of the operator."""
    release_slot: Duration = 0
    """A window is published so long after its end, grace and clock margin, however early it was closed; 0: at once."""
    session_timeout: Duration = 30_000
    """A worker that is silent this long loses its partitions."""
    transaction_timeout: Duration = 30_000
    """The broker aborts a transaction that is open this long."""
    security: Literal["plaintext", "tls", "sasl_plaintext", "sasl_tls"] = "plaintext"
    """Of the link to the cluster."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    """How the user logs in."""
    username: StrictStr | None = None
    """The user, for security "sasl_plaintext" or "sasl_tls"."""
    password_file: Path | None = None
    """The file that holds the password."""
    password_env: StrictStr | None = None
    """The environment variable that holds the password."""
    ca_file: Path | None = None
    """PEM file of the authorities that are trusted."""
    certificate_file: Path | None = None
    """PEM file of the certificate of this client."""
    key_file: Path | None = None
    """PEM file of its key."""
    check_hostname: StrictBool = True
    """Whether the certificate must name the broker."""


class LimitsTable(SettingsTable):
    max_gap_windows: Annotated[StrictInt, Field(ge=1)] = 10_000
    """Stop where more windows would be closed at once."""
    max_consecutive_invalid: Annotated[StrictInt, Field(ge=1)] = 10_000
    """Stop at so many unusable records in a row."""
    max_open_keys: Annotated[StrictInt, Field(ge=1)] = 5_000_000
    """Stop at so many open keys of one partition."""
    max_raw_bytes: Annotated[StrictInt, Field(ge=1 << 20)] = 4 << 30
    """Stop at so much secret state of one partition."""
    max_transaction_bytes: Annotated[StrictInt, Field(ge=1 << 12)] = 8 << 20
    """Larger closes are committed in several transactions."""


class MetricsTable(SettingsTable):
    """Addresses at which metrics are served; "": not at all."""

    operator: Address = "127.0.0.1:9464"
    """For exact numbers and the health of a worker, which are outside the privacy guarantee."""
    public: Address = ""
    """For published estimates, by the roll-up worker."""
    max_public_keys: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1000
    """Keys with public series, for each of hour and day."""


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
    """Of the lines of the log."""
    level: Literal["info", "warning", "error"] = "info"
    """The least that is logged."""


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
