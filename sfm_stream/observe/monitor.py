"""What the workers of this process do, as metrics and health. Everything is looked at between two turns of a worker,
in its own thread; a scrape reads what was found last and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from logging import getLogger
from typing import Protocol

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import SfmStreamError
from sfm_stream.observe import metrics
from sfm_stream.observe.listener import operator_listener, public_listener
from sfm_stream.observe.metrics import OperatorMetrics, PublicMetrics, Sample
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.types import NO_TIME
from sfm_stream.workers.ingest import IngestWorker
from sfm_stream.workers.observed_transport import ObservedTransport
from sfm_stream.workers.rollup import RollupWorker

_log = getLogger(__name__)
LOOK_S = 1.0
"""How often metrics are made anew."""
ASK_S = 5.0
"""How often the cluster is asked for the ends of partitions."""
STALL_S = 300.0


class _Cluster(Protocol):
    """The part of KafkaTransport that is looked at."""

    restored: int

    def position(self, partition: int) -> int: ...
    def ends(self) -> dict[int, int]: ...


class Watched(Protocol):
    """The part of a Service that is looked at."""

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


@dataclass(slots=True)
class _Watch:
    """One worker and what is known of it."""

    service: Watched
    beaten_s: float
    turns: int = 0
    joined: bool = False
    look_s: float = 0.0
    ask_s: float = 0.0
    asked_ms: int = NO_TIME
    ends: dict[int, int] = field(default_factory=dict)
    lags: dict[int, int] = field(default_factory=dict)


class Monitor:
    """Metrics and health of this process.

    topic: the input. stall_s: after so long without a turn of a worker it is not live any more. public: None where
    nothing public is served.
    """

    def __init__(self, topic: str, stall_s: float, public: PublicMetrics | None = None) -> None:
        self.operator, self.public = OperatorMetrics(), public
        self._topic, self._stall_s = topic, stall_s
        self._watches: dict[str, _Watch] = {}

    def watch(self, services: Iterable[Watched]) -> None:
        """These are the workers. Until then the process starts, which is live and not ready."""
        self._watches = {service.name: _Watch(service, monotonic_s()) for service in services}

    def beat(self, name: str) -> None:
        """A worker ended a turn. To be called in its thread."""
        watch, now = self._watches[name], monotonic_s()
        watch.turns += 1
        watch.beaten_s = now
        watch.joined = watch.service.joined
        if now >= watch.look_s:
            if now >= watch.ask_s:
                _ask(watch)
                watch.ask_s = monotonic_s() + ASK_S
            self._look(watch)
            watch.look_s = monotonic_s() + LOOK_S

    def live(self) -> list[str]:
        """Workers whose loop has not turned for long."""
        now = monotonic_s()
        silent = {name: now - watch.beaten_s for name, watch in self._watches.items()}
        return [f"{name}: no turn for {silence:.0f} s" for name, silence in silent.items() if silence > self._stall_s]

    def ready(self) -> list[str]:
        """Workers that are no members of their consumer group. A member without partitions is ready."""
        if not self._watches:
            return ["starting"]
        out = [f"{name}: not in its consumer group" for name, watch in self._watches.items() if not watch.joined]
        return self.live() + out

    def _look(self, watch: _Watch) -> None:
        worker = watch.service.worker
        samples = [*_worker_samples(watch), *_progress_samples(watch)]
        if isinstance(worker, IngestWorker):
            samples += _ingest_samples(worker, self._topic)
        elif isinstance(worker, RollupWorker):
            samples.append((metrics.DUPLICATES, (), sum(seen.duplicate for seen in worker.seen)))
            samples.append((metrics.CONFLICTS, (), sum(seen.conflict for seen in worker.seen)))
            if self.public is not None:
                self.public.keep(watch.service.observed.progress)
        self.operator.replace(watch.service.name, samples)


@contextmanager
def monitoring(config: Config, operator: str | None, *, public: bool = False) -> Iterator[Monitor]:
    """A monitor whose listeners are open for this block.

    operator: an address in place of metrics.operator. public: metrics.public applies too. Raises ConfigError where an
    address cannot be had.
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


def _ask(watch: _Watch) -> None:
    """How far each partition is behind its end of now. A cluster that does not answer leaves it unknown."""
    asked_ms, transport, progress = now_ms(), watch.service.transport, watch.service.observed.progress
    try:
        ends = transport.ends()
        # Nothing was appended since the last time, and all that was there then has been read, perhaps up to a control
        # record, which no position shows.
        read_ms = {partition: of.read_ms for partition, of in progress.items()}
        done = {p for p, end in ends.items() if watch.ends.get(p) == end and read_ms.get(p, NO_TIME) >= watch.asked_ms}
        watch.lags = {p: 0 if p in done else max(0, end - transport.position(p)) for p, end in ends.items()}
        watch.ends, watch.asked_ms = ends, asked_ms
    except SfmStreamError:
        watch.lags, watch.ends, watch.asked_ms = {}, {}, NO_TIME


def _worker_samples(watch: _Watch) -> Iterator[Sample]:
    name, observed = watch.service.name, watch.service.observed
    yield metrics.TURNS, (name,), watch.turns
    yield metrics.LAST_TURN, (name,), now_ms() / 1000
    yield metrics.ASSIGNED, (name,), len(observed.progress)
    yield metrics.BATCHES, (name,), observed.batches
    yield metrics.PUBLISHED, (name,), observed.published
    yield metrics.RESTORED, (name,), watch.service.transport.restored
    for outcome, count in observed.outcomes.items():
        yield metrics.TRANSACTIONS, (name, outcome), count


def _progress_samples(watch: _Watch) -> Iterator[Sample]:
    for partition, progress in watch.service.observed.progress.items():
        labels = (watch.service.name, str(partition))
        if progress.position is not None and progress.committed is not None:
            yield metrics.HELD_RECORDS, labels, max(0, progress.position - progress.committed)
        if partition in watch.lags:
            yield metrics.LAG, labels, watch.lags[partition]


def _ingest_samples(worker: IngestWorker, topic: str) -> Iterator[Sample]:
    report = worker.report
    yield metrics.READ, (topic,), report.read
    yield metrics.COUNTED, (topic,), report.counted
    yield metrics.RELEASES, (), report.releases
    for reason, count in sorted(report.dropped.items()):
        if reason:
            yield metrics.DROPPED, (topic, reason.name.lower()), count
    yield from _counter_samples(worker.counters)


def _counter_samples(counters: Mapping[int, tuple[int, WindowCounter]]) -> Iterator[Sample]:
    now = now_ms()
    for partition, (clock_ms, counter) in counters.items():
        labels, state, held = (str(partition),), counter.state, counter.store.raw_bytes()
        yield metrics.OPEN_WINDOWS, labels, len(counter.store.starts())
        yield metrics.OPEN_KEYS, labels, len(counter.keys)
        yield metrics.RAW_BYTES, labels, held
        yield metrics.RAW_RATIO, labels, held / counter.plan.limits.max_raw_bytes
        yield metrics.CLOSED_THROUGH, labels, state.closed_through_ms / 1000
        if clock_ms != NO_TIME:
            committed_ms = state.clock_ms if state.clock_ms != NO_TIME else min(state.start_ms, clock_ms)
            yield metrics.CLOCK_DELAY, labels, (now - clock_ms) / 1000
            yield metrics.HELD_SECONDS, labels, max(0, clock_ms - committed_ms) / 1000
