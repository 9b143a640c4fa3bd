"""What a pipeline makes of single records, for `test`: the extraction, placement and windows of its own workers.

Records are read one after the other, as a worker would read them, into stores that are empty before each: where a store
then has a window, the record was counted there. Nothing is drawn, released or kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfm_stream import kernels
from sfm_stream.clock import now_ms
from sfm_stream.config.cases import Cases, record_of
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.partitioner import PARTITIONERS, partition_key
from sfm_stream.events.placement import placement_of
from sfm_stream.pipeline.counting.span_counter import SpanCounter
from sfm_stream.privacy.coins import SYSTEM_COINS
from sfm_stream.transport.files.line_batch import LineBatch
from sfm_stream.types import InputEnd, KeyPart, Reason, RecordBatch
from sfm_stream.units import FOREVER_MS
from sfm_stream.windows.store import WindowStore
from sfm_stream.workers.extractor import extractor_of
from sfm_stream.workers.ingest_partition import IngestPartition, IngestSetup
from sfm_stream.workers.ingest_report import IngestReport


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a record. reason: why it was dropped, or OK.

    starts_ms: span to the start of the window in which it counts. key: under which; empty for one count of everything.
    """

    reason: Reason
    starts_ms: dict[str, int]
    key: tuple[KeyPart, ...] = ()


@dataclass(frozen=True, slots=True)
class _OneRecord:
    """Implements RecordBatch: one record of a topic."""

    partition: int
    first: int
    value: bytes | None
    arrival_ms: int

    @property
    def next_offset(self) -> int:
        return self.first + 1

    @property
    def count(self) -> int:
        return 1

    def offsets(self) -> NDArray[np.int64]:
        return np.array([self.first], np.int64)

    def arrivals(self) -> NDArray[np.int64]:
        return np.array([self.arrival_ms], np.int64)

    def keys(self) -> list[bytes | None]:
        return [None]

    def values(self) -> list[bytes | None]:
        return [self.value]


def fates(config: Config, cases: Cases) -> list[Fate]:
    """The fate of each case. Raises StateError, naming the case, where a worker would stop at it."""
    kernels.choose(config.worker.kernel)
    setup = IngestSetup(config, "cases", SYSTEM_COINS, False, None, IngestReport())
    partitions = _begun(setup, cases)
    noted = []
    for number, (case, batch) in enumerate(zip(cases.cases, _batches(config, cases), strict=True)):
        partition = partitions[batch.partition]
        try:
            noted.append((partition, _read(partition, batch, setup.report)))
        except StateError as error:
            raise StateError(f"cases.{number} ({case.name}): a worker stops here: {error}") from None
    if config.whole:
        partitions[0].end(InputEnd(0, complete=True))
    return [_with_coarser(partition, fate, config.whole) for partition, fate in noted]


def _begun(setup: IngestSetup, cases: Cases) -> Sequence[IngestPartition]:
    """The partitions of the input, as at a first start."""
    config, window = setup.config, setup.config.window
    clock_ms = cases.first_start
    if config.on_cluster:
        latest_ms = config.event.latest or MAX_TIME_MS
        placement = placement_of(config.kafka.partitioner, lambda: cases.partitions)
        begins_ms = window.start
        if begins_ms is None and clock_ms is not None:
            begins_ms = config.grid.end(config.grid.floor(clock_ms))
    else:
        latest_ms = config.event.latest or (now_ms() if clock_ms is None else clock_ms) + window.max_future_skew
        placement, begins_ms = None, window.start
    made = []
    for number in range(cases.partitions):
        owner = placement(number) if placement else None
        made.append(IngestPartition(setup, number, owner, latest_ms, FOREVER_MS, lambda: cases.partitions))
        if begins_ms is not None or config.whole:
            made[-1].begin(begins_ms, 0)
    return made


def _batches(config: Config, cases: Cases) -> Iterator[RecordBatch]:
    """The record of each case as its transport would hand it over."""
    extractor = extractor_of(config, KeyTable())
    offset = arrival_ms = 0
    for case in cases.cases:
        value = record_of(case, config)
        if not config.on_cluster:
            line = (value or b"") + b"\n"
            yield LineBatch(line, offset, offset + len(line))
            offset += len(line)
            continue
        arrival_ms = arrival_ms if case.arrival is None else case.arrival
        partition = case.partition
        if partition is None:
            key = extractor.key_of(value)
            choose = PARTITIONERS[config.kafka.partitioner]
            partition = 0 if key is None else choose(partition_key(key), cases.partitions)
        yield _OneRecord(partition, offset, value, arrival_ms)
        offset += 1


def _read(partition: IngestPartition, batch: RecordBatch, report: IngestReport) -> Fate:
    """The fate of one record, in those windows into which the worker puts it itself."""
    if partition.counter is not None:
        for span in partition.counter.spans:
            span.store = WindowStore(span.store.shape)
    report.dropped.clear()
    partition.read([batch])
    for reason in report.dropped:
        return Fate(reason, {})
    counter = partition.counter
    assert counter is not None
    found = {span.span.name: starts[0] for span in counter.spans if (starts := span.store.starts())}
    window = next(content for span in counter.spans if (content := _content(span)) is not None)
    key = counter.keys[int(window[0])]
    return Fate(Reason.OK, found, key if isinstance(key, tuple) else (key,))


def _content(span: SpanCounter) -> NDArray[np.int32] | None:
    """The ids of the keys in the one open window; None where none is open."""
    starts = span.store.starts()
    window = span.store.get(starts[0]) if starts else None
    return None if window is None else window.key_ids()


def _with_coarser(partition: IngestPartition, fate: Fate, whole: bool) -> Fate:
    """With the windows that absorb the base window in which it counts, and without those that are never released.

    whole: the input is counted whole, so that its end says which windows there are.
    """
    counter = partition.counter
    if counter is None or fate.reason is not Reason.OK:
        return fate
    starts = dict(fate.starts_ms)
    if (base_ms := starts.get(counter.base.span.name)) is not None:
        for span in counter.spans[1:]:
            if (start_ms := span.around(base_ms)) is not None:
                starts[span.span.name] = start_ms
    released = {span.span.name: span.schedule.due_ms if whole else FOREVER_MS for span in counter.spans}
    return Fate(fate.reason, {name: ms for name, ms in starts.items() if ms < released[name]}, fate.key)
