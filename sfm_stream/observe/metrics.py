"""Every metric, defined once, and the registries that hold them.

PUBLIC: functions of published roll-ups alone. Which series there are depends on published keys and on nothing else.
OPERATOR: exact numbers of one process, outside the guarantee; no label holds a key or an item.
SERVE: how far a server of answers can read what is published, and what it was asked; it tells everybody.

No registry holds anything else: no series of the process, the platform or the garbage collector, and no `_created`
series. `make docs` writes docs/metrics.md and the dashboards of deploy/ from these definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from sfm_stream.errors import UsageError


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric. name: as it is scraped. registry: the one that holds it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    registry: Literal["public", "operator", "serve"]


Measurement: TypeAlias = tuple[Definition, tuple[str, ...], float]
"""A metric, the values of its labels in the order of the definition, and its value."""


def _operator(name: str, kind: Literal["counter", "gauge"], text: str, *labels: str) -> Definition:
    return Definition(f"sfm_{name}", kind, text, labels, "operator")


def _public(name: str, text: str, *labels: str) -> Definition:
    return Definition(f"sfm_{name}", "gauge", text, labels, "public")


READ = _operator("events_read_total", "counter", "Records of the input that were read, replayed ones again.", "topic")
COUNTED = _operator("events_counted_total", "counter", "Of those, records that were counted.", "topic")
DROPPED = _operator(
    "events_dropped_total", "counter", "Of those, records that were not, by reason; late ones too.", "topic", "reason"
)
RELEASES = _operator("releases_total", "counter", "Releases committed by this process.")
OPEN_WINDOWS = _operator("open_windows", "gauge", "Windows that hold something and are not closed.", "partition")
OPEN_KEYS = _operator("open_keys", "gauge", "Keys held in memory; limits.max_open_keys bounds them.", "partition")
RAW_BYTES = _operator("raw_bytes", "gauge", "Bytes of secret sketch state in memory.", "partition")
RAW_RATIO = _operator(
    "raw_bytes_ratio", "gauge", "The same as a part of limits.max_raw_bytes, at which the worker stops.", "partition"
)
CLOCK_DELAY = _operator(
    "clock_delay_seconds",
    "gauge",
    "How far the largest arrival time that was read lies behind the clock on the wall.",
    "partition",
)
CLOSED_THROUGH = _operator(
    "closed_through_timestamp_seconds", "gauge", "End of the last window whose close is committed.", "partition"
)
CLOSE_DUE = _operator(
    "close_expected_seconds",
    "gauge",
    "How old that end is at most while all is well: window, grace, margin.",
    "partition",
)
HELD_SECONDS = _operator(
    "hold_back_seconds", "gauge", "Arrival time between the committed position and what was read last.", "partition"
)
HELD_DUE = _operator(
    "hold_back_expected_seconds",
    "gauge",
    "The most that is while all is well: longest span, grace, margin.",
    "partition",
)
HELD_RECORDS = _operator(
    "hold_back_records", "gauge", "Offsets that a restart would read again.", "worker", "partition"
)
LAG = _operator(
    "position_lag_records", "gauge", "Offsets between what was read last and the end.", "worker", "partition"
)
BATCHES = _operator("batches_read_total", "counter", "Batches that were read.", "worker")
PUBLISHED = _operator("records_published_total", "counter", "Records committed, close markers too.", "worker")
TRANSACTIONS = _operator(
    "transactions_total", "counter", "Transactions by outcome; after one that is unknown it stops.", "worker", "outcome"
)
RESTORED = _operator(
    "positions_restored_total",
    "counter",
    "Positions that the consumer group had lost, and that were taken from the ledger.",
    "worker",
)
ASSIGNED = _operator("assigned_partitions", "gauge", "Partitions of this worker. None is healthy.", "worker")
TURNS = _operator("loop_turns_total", "counter", "Turns of the worker's loop.", "worker")
LAST_TURN = _operator("last_turn_timestamp_seconds", "gauge", "When the last of them ended.", "worker")
KERNEL = _operator("kernel_info", "gauge", "1; its label says what computes: worker.kernel.", "worker", "kernel")
DUPLICATES = _operator("duplicates_total", "counter", "Releases read twice with the same bytes; counted once.")
CONFLICTS = _operator("conflicts_total", "counter", "Second, different payloads of a release: privacy incidents.")
STOPPED = _operator(
    "stopped_exit_code",
    "gauge",
    "Exit code of a worker that a person has to look at; `sfm-stream keep-stopped` serves it in its place.",
    "command",
)

ESTIMATE = _public("estimate", "Distinct items of a key in its last published span that is final.", "key", "grain")
LOW = _public("estimate_low", "Lower end of its interval, 95 % confidence.", "key", "grain")
HIGH = _public("estimate_high", "Upper end of its interval; +Inf where there is no bound.", "key", "grain")
LOWER_BOUND = _public(
    "estimate_is_lower_bound", "1 where windows are missing from it, withheld or not counted; else 0.", "key", "grain"
)
SPAN_END = _public("estimate_end_timestamp_seconds", "End of that span.", "key", "grain")
LEFT_OUT = _public(
    "estimate_keys_left_out", "Published keys of the last spans without series: metrics.max_public_keys.", "grain"
)

SERVED = ("pipeline",)
SERVED_READY = Definition("sfm_served_ready", "gauge", "1 where questions are answered; else 0.", SERVED, "serve")
SERVED_BEHIND = Definition(
    "sfm_served_behind_records", "gauge", "Offsets of its public topics that are not in the copy yet.", SERVED, "serve"
)
SERVED_TROUBLED = Definition(
    "sfm_served_troubled", "gauge", "1 where something keeps it from being read, or the copy back.", SERVED, "serve"
)
SERVED_SECONDS = Definition(
    "sfm_served_request_seconds",
    "histogram",
    "How long requests took until they were answered; its _count counts them.",
    ("route", "status"),
    "serve",
)

DEFINITIONS: tuple[Definition, ...] = (
    *(ESTIMATE, LOW, HIGH, LOWER_BOUND, SPAN_END, LEFT_OUT),
    *(READ, COUNTED, DROPPED, RELEASES, OPEN_WINDOWS, OPEN_KEYS, RAW_BYTES, RAW_RATIO),
    *(CLOCK_DELAY, CLOSED_THROUGH, CLOSE_DUE, HELD_SECONDS, HELD_DUE, HELD_RECORDS, LAG),
    *(BATCHES, PUBLISHED, TRANSACTIONS, RESTORED, ASSIGNED, TURNS, LAST_TURN, KERNEL, DUPLICATES, CONFLICTS, STOPPED),
    *(SERVED_READY, SERVED_BEHIND, SERVED_TROUBLED, SERVED_SECONDS),
)


class OperatorMetrics:
    """Exact numbers of this process.

    A worker replaces all its measurements at once, so that none of a lost partition stays.
    """

    def __init__(self) -> None:
        self.registry = registry_of("operator", self._measurements)
        self._by_worker: dict[str, tuple[Measurement, ...]] = {}

    def replace(self, worker: str, measurements: Sequence[Measurement]) -> None:
        """Show these measurements of the worker in place of its earlier ones. May be called from any thread.

        Raises UsageError for a metric of the public registry, or another number of labels than it has.
        """
        for definition, labels, _ in measurements:
            if definition.registry != "operator" or len(labels) != len(definition.labels):
                raise UsageError(f"metric {definition.name}: not one of the operator's, or with other labels")
        self._by_worker[worker] = tuple(measurements)

    def _measurements(self) -> Iterator[Measurement]:
        for measurements in list(self._by_worker.values()):
            yield from measurements


class _Registered(Collector):
    """Every counter and gauge of one registry, whether or not there is a measurement of it."""

    def __init__(self, registry: str, measurements: Callable[[], Iterable[Measurement]]) -> None:
        self._definitions = [each for each in DEFINITIONS if each.registry == registry and each.kind != "histogram"]
        self._measurements = measurements

    def describe(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        return [_family(definition) for definition in self._definitions]

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        families = {definition: _family(definition) for definition in self._definitions}
        for definition, labels, value in self._measurements():
            families[definition].add_metric(labels, value)
        return families.values()


def _family(metric: Definition) -> CounterMetricFamily | GaugeMetricFamily:
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)


def registry_of(name: str, measurements: Callable[[], Iterable[Measurement]]) -> CollectorRegistry:
    """A registry. measurements: asked at each scrape; none of a histogram, which is registered beside them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Registered(name, measurements))
    return registry
