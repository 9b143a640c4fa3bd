"""Metrics and health of the workers of this process.

A worker is measured between two of its turns, in its own thread. A scrape shows the last measurements, and waits for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from typing import Protocol

from sfm_stream import kernels
from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import SfmStreamError
from sfm_stream.observe import metrics
from sfm_stream.observe.listener import operator_listener, public_listener
from sfm_stream.observe.metrics import Measurement, OperatorMetrics
from sfm_stream.observe.public_metrics import PublicMetrics
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.types import NO_TIME
from sfm_stream.windows.tumbling import Tumbling
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.observed_transport import ObservedTransport
from sfm_stream.workers.rollup import RollupWorker

_log = getLogger(__name__)
LOOK_S = 1.0
"""How often a worker is measured."""
ASK_S = 5.0
"""How often the cluster is asked for the ends of partitions."""
STALL_S = 300.0
"""How long a worker may take for one turn that waits for no transaction."""


class _Cluster(Protocol):
    """The part of KafkaTransport that is measured."""

    restored: int

    def position(self, partition: int) -> int: ...
    def ends(self) -> dict[int, int]: ...


class Watched(Protocol):
    """The part of a Service that is measured."""

    @property
    def name(self) -> str: ...
    @property
    def worker(self) -> object: ...
    @property
    def transport(self) -> _Cluster: ...
    @property
    def observed(self) -> ObservedTransport: ...
    @property
    def joined(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Ends:
    """The answer of the cluster to one question. ends: partition to its end offset. lags: to its lag in records."""

    asked_ms: int = NO_TIME
    ends: Mapping[int, int] = field(default_factory=dict)
    lags: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Watch:
    """One worker, and when it was and will be looked at by the monotonic clock."""

    service: Watched
    last_turn_s: float
    turns: int = 0
    joined: bool = False
    next_look_s: float = 0.0
    next_ask_s: float = 0.0
    ends: _Ends = _Ends()


class Monitor:
    """Metrics and health of this process.

    topic: the input. stall_s: a worker that ends no turn for so long is not live. public: None where nothing public is
    served.
    """

    def __init__(self, topic: str, stall_s: float, public: PublicMetrics | None = None) -> None:
        self.operator, self.public = OperatorMetrics(), public
        self._topic, self._stall_s = topic, stall_s
        self._watches: dict[str, _Watch] = {}

    def watch(self, services: Iterable[Watched]) -> None:
        """Watch these workers. Before this call the process is starting: live, and not ready."""
        self._watches = {service.name: _Watch(service, monotonic_s()) for service in services}

    def beat(self, name: str) -> None:
        """Note that a worker ended a turn, and measure it where that is due. To be called in its thread."""
        watch, now = self._watches[name], monotonic_s()
        watch.turns += 1
        watch.last_turn_s = now
        watch.joined = watch.service.joined
        if now >= watch.next_look_s:
            if now >= watch.next_ask_s:
                watch.ends = _ask(watch.service, watch.ends)
                watch.next_ask_s = monotonic_s() + ASK_S
            self._measure(watch)
            watch.next_look_s = monotonic_s() + LOOK_S

    def live(self) -> list[str]:
        """A line for each worker that ended no turn for stall_s."""
        now = monotonic_s()
        silent = {name: now - watch.last_turn_s for name, watch in self._watches.items()}
        return [f"{name}: no turn for {silence:.0f} s" for name, silence in silent.items() if silence > self._stall_s]

    def ready(self) -> list[str]:
        """A line for each worker that is not live, or no member of its consumer group. A member needs no partition."""
        if not self._watches:
            return ["starting"]
        out = [f"{name}: not in its consumer group" for name, watch in self._watches.items() if not watch.joined]
        return self.live() + out

    def _measure(self, watch: _Watch) -> None:
        worker = watch.service.worker
        measured = [*_of_worker(watch), *_of_progress(watch)]
        if isinstance(worker, IngestWorker):
            measured += _of_ingest(worker, self._topic)
        elif isinstance(worker, RollupWorker):
            measured.append((metrics.DUPLICATES, (), sum(seen.duplicate for seen in worker.seen)))
            measured.append((metrics.CONFLICTS, (), sum(seen.conflict for seen in worker.seen)))
            if self.public is not None:
                self.public.keep(watch.service.observed.progress)
        self.operator.replace(watch.service.name, measured)


@contextmanager
def monitoring(config: Config, operator: str | None, *, public: bool = False) -> Iterator[Monitor]:
    """A monitor whose listeners are open for this block.

    operator: an address that replaces metrics.operator; None: that setting. public: whether metrics.public applies.
    Raises ConfigError where a listener cannot listen at its address.
    """
    settings, kafka = config.metrics, config.kafka
    address = settings.operator if operator is None else operator
    shown = PublicMetrics(settings.max_public_keys, config.absence) if public and settings.public else None
    # A turn may wait for a transaction, for its outcome and for the ledger, each longer than one transaction may last.
    monitor = Monitor(kafka.topic, STALL_S + 6 * kafka.transaction_timeout / 1000, shown)
    with ExitStack() as open_now:
        if address:
            listener = operator_listener(address, monitor.operator.registry, monitor.live, monitor.ready)
            open_now.callback(listener.close)
            _log.info("metrics and health for the operator", extra={"host": listener.host, "port": listener.port})
        if shown is not None:
            listener = public_listener(settings.public, shown.registry, monitor.live)
            open_now.callback(listener.close)
            _log.info("public estimates", extra={"host": listener.host, "port": listener.port})
        yield monitor


def _ask(service: Watched, before: _Ends) -> _Ends:
    """The ends of the assigned partitions now. Nothing is known of them where the cluster does not answer.

    before: the answer to the last question.
    """
    asked_ms, transport, progress = now_ms(), service.transport, service.observed.progress
    try:
        ends = transport.ends()
        # A control record at the end of a partition has an offset and is in no batch, so that the position stays before
        # it. Where the end is the one of the last question, and was read since, the lag is 0 nevertheless.
        read_to_end = {
            number
            for number in ends.keys() & progress.keys()
            if before.ends.get(number) == ends[number] and progress[number].read_ms >= before.asked_ms
        }
        lags = {
            number: 0 if number in read_to_end else max(0, end - transport.position(number))
            for number, end in ends.items()
        }
    except SfmStreamError:
        return _Ends()
    return _Ends(asked_ms, ends, lags)


def _of_worker(watch: _Watch) -> Iterator[Measurement]:
    name, observed = watch.service.name, watch.service.observed
    yield metrics.TURNS, (name,), watch.turns
    yield metrics.LAST_TURN, (name,), now_ms() / 1000
    yield metrics.KERNEL, (name, kernels.in_use()), 1
    yield metrics.ASSIGNED, (name,), len(observed.progress)
    yield metrics.BATCHES, (name,), observed.batches
    yield metrics.PUBLISHED, (name,), observed.published
    yield metrics.RESTORED, (name,), watch.service.transport.restored
    for outcome, count in observed.outcomes.items():
        yield metrics.TRANSACTIONS, (name, outcome), count


def _of_progress(watch: _Watch) -> Iterator[Measurement]:
    for partition, progress in watch.service.observed.progress.items():
        labels = (watch.service.name, str(partition))
        if progress.position is not None and progress.committed is not None:
            yield metrics.HELD_RECORDS, labels, max(0, progress.position - progress.committed)
        if partition in watch.ends.lags:
            yield metrics.LAG, labels, watch.ends.lags[partition]


def _of_ingest(worker: IngestWorker, topic: str) -> Iterator[Measurement]:
    report = worker.report
    yield metrics.READ, (topic,), report.read
    yield metrics.COUNTED, (topic,), report.counted
    yield metrics.RELEASES, (), report.releases
    for reason, count in sorted(report.dropped.items()):
        if reason:
            yield metrics.DROPPED, (topic, reason.name.lower()), count
    yield from _of_counters(worker.counters)


def _of_counters(counters: Mapping[int, tuple[int, WindowCounter]]) -> Iterator[Measurement]:
    now = now_ms()
    for partition, (clock_ms, counter) in counters.items():
        labels, state, held = (str(partition),), counter.state, counter.raw_bytes
        yield metrics.OPEN_WINDOWS, labels, counter.open_windows
        yield metrics.OPEN_KEYS, labels, len(counter.keys)
        yield metrics.RAW_BYTES, labels, held
        yield metrics.RAW_RATIO, labels, held / counter.plan.limits.max_raw_bytes
        yield metrics.CLOSED_THROUGH, labels, state.base.closed_through_ms / 1000
        yield metrics.CLOSE_DUE, labels, _longest_open_ms(counter.plan.counted[:1]) / 1000
        yield metrics.HELD_DUE, labels, _longest_open_ms(counter.plan.counted) / 1000
        if clock_ms != NO_TIME:
            committed_ms = state.clock_ms if state.clock_ms != NO_TIME else min(state.start_ms, clock_ms)
            yield metrics.CLOCK_DELAY, labels, (now - clock_ms) / 1000
            yield metrics.HELD_SECONDS, labels, max(0, clock_ms - committed_ms) / 1000


def _longest_open_ms(spans: Iterable[tuple[ReleasedSpan, Tumbling]]) -> int:
    """How long a window of these spans is open at most, where nothing delays what closes it."""
    return max(windows.grid.longest_ms + windows.grace_ms + (windows.margin_ms or 0) for _, windows in spans)
