"""The ingest worker: record batches in, committed releases out. It owns what is secret and nothing else.

One worker drives one transport. For each assigned partition it holds an extractor and a counter; a lost partition
takes both with it, and the next owner replays from the committed offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.extract import PythonExtractor
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.placement import Placement
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.dead_letters import LETTERS_A_TRANSACTION, letters
from sfm_stream.pipeline.counting.limits import CountingLimits
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.position import decode_state, drawn_through_ms, first_state, require_continuation
from sfm_stream.pipeline.counting.whole import counter_of
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.readable import duration, instant
from sfm_stream.transport.contract import Transport
from sfm_stream.transport.files.marks import Marked
from sfm_stream.types import (
    NO_TIME,
    Assigned,
    EventColumns,
    InputEnd,
    PartitionState,
    Reason,
    Record,
    RecordBatch,
    Revoked,
    Step,
)
from sfm_stream.units import FOREVER_MS
from sfm_stream.workers.ingest_report import IngestReport
from sfm_stream.workers.perform import drain, perform


@dataclass(slots=True)
class _Partition:
    """One assigned partition; the counter exists once the first window border is known."""

    number: int
    latest_ms: int
    keys: KeyTable
    extractor: PythonExtractor
    end_ms: int
    placement: Placement | None
    clock_ms: int = NO_TIME
    counter: WindowCounter | None = None
    before: CountingLimits | None = None
    """Of records that come before the first window border is known."""
    letters: list[Record] = field(default_factory=list)
    known: bool = True
    """The input is the one that the state is of. Until that is seen nothing is released or committed."""


class IngestWorker:
    """Counts an input until it ends. source: what the input is; a state of another one is refused.

    first_latest_ms: upper end of plausible event times where none is stored yet; None where a partition without any
    committed state must not begin. epoch_end: of a partition that was just assigned, the last border of this epoch.
    placement: of a partition, what tells records that belong elsewhere. dead_letters: point to dropped records. marks:
    of an input of one partition that may be another one under the same name.
    """

    def __init__(
        self,
        config: Config,
        transport: Transport,
        source: str,
        first_latest_ms: int | None,
        epoch_end: Callable[[int], int],
        coins: Coins = SYSTEM_COINS,
        placement: Callable[[int], Placement] | None = None,
        dead_letters: bool = False,
        marks: Marked | None = None,
    ) -> None:
        self._config, self._transport, self._coins = config, transport, coins
        self._source, self._first_latest_ms, self._epoch_end = source, first_latest_ms, epoch_end
        self._placement, self._dead_letters, self._marks = placement, dead_letters, marks
        self._partitions: dict[int, _Partition] = {}
        self._ended: set[int] = set()
        self.report = IngestReport()

    @property
    def ended(self) -> bool:
        """Every assigned partition has reached the end of its input, and all that was due is committed."""
        behind = any(p.counter is not None and p.counter.behind for p in self._partitions.values())
        return bool(self._partitions) and self._ended >= set(self._partitions) and not behind

    @property
    def counters(self) -> dict[int, tuple[int, WindowCounter]]:
        """Assigned partition to (largest arrival time read, its counter), where counting has begun."""
        return {p.number: (p.clock_ms, p.counter) for p in self._partitions.values() if p.counter is not None}

    def tick(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """One turn: poll, count, commit what is due. Between two commits it looks whether to stop."""
        batches: dict[int, list[RecordBatch]] = {}
        ends: list[InputEnd] = []
        for event in self._transport.poll():
            if isinstance(event, Assigned):
                self._assign(event)
            elif isinstance(event, Revoked):
                self._partitions.pop(event.partition, None)
            elif isinstance(event, InputEnd):
                ends.append(event)
            else:
                batches.setdefault(event.partition, []).append(event)
        for number, found in batches.items():
            self._count(self._partitions[number], found)
        for end in ends:
            self._end(self._partitions[end.partition], end)
        for partition in self._partitions.values():
            if partition.counter is not None and partition.known:
                self.report.releases += drain(self._transport, partition.counter, stopping, releases_only=True)
                self._send_letters(partition, partition.counter)

    def checkpoint(self) -> None:
        """Commit how far replay may begin, where it moved. Nothing partial is ever published."""
        for partition in self._partitions.values():
            counter = partition.counter
            if counter is not None and partition.known and (step := counter.checkpoint()) is not None:
                perform(self._transport, counter, step)
        self._account()

    def _assign(self, event: Assigned) -> None:
        config = self._config
        state = decode_state(event.committed) if event.committed else None
        placement = self._placement(event.partition) if self._placement else None
        keys = _table(config, placement)
        latest = state.latest_ms if state else self._first_latest_ms
        if latest is None:
            raise StateError(
                f"partition {event.partition}: epoch {config.pipeline.epoch} of pipeline "
                f"{config.pipeline.id} has no position. If it never ran, start one worker with --first-start"
            )
        extractor = PythonExtractor(config.event_schema(latest), config.shape, config.item_hash, keys=keys)
        end_ms = self._epoch_end(event.partition)
        partition = _Partition(event.partition, latest, keys, extractor, end_ms, placement)
        self._partitions[event.partition] = partition
        start = config.window.start
        if state is not None:
            self._require_same_order(state)
            plan = self._plan(partition, state.start_ms if start is None else start)
            require_continuation(state, plan, self._source, event.partition)
            # The state may have been made under another name of the same input.
            state = replace(state, source=self._source)
            partition.counter = counter_of(plan, event.partition, state, keys, self._coins)
            self.report.finished = config.whole and state.offset > 0
            partition.clock_ms = state.clock_ms
            if self._marks is not None:
                self._marks.expect(state.mark)
                partition.known = self._marks.mark() is not None
            self._transport.seek(event.partition, state.offset)
        elif start is not None or config.whole:
            self._begin(partition, start, 0)

    def _require_same_order(self, state: PartitionState) -> None:
        """Say what to do where an epoch was begun in order of time, before that had to be asked for."""
        config, partitions = self._config, self._transport.partitions
        if config.whole and state.fingerprint == config.in_order_of_time().fingerprint(partitions):
            raise StateError(
                f"pipeline {config.pipeline.id}, epoch {config.pipeline.epoch}: it was begun in "
                'order of time, and an input that is complete is now counted whole: set input.order = "time", and '
                "window.grace as it was, to go on with this epoch"
            )

    def _begin(self, partition: _Partition, start_ms: int | None, offset: int) -> None:
        """First start of this epoch: its first window border is fixed now, and kept with every commit."""
        plan = self._plan(partition, start_ms)
        state = first_state(plan, self._source, partition.latest_ms, offset)
        partition.counter = counter_of(plan, partition.number, state, partition.keys, self._coins)

    def _plan(self, partition: _Partition, start_ms: int | None) -> CountingPlan:
        """What this partition counts and publishes: of a declared list the keys that it owns."""
        plan = self._config.plan(self._transport.partitions, start_ms, partition.end_ms)
        if not isinstance(plan.keys, DeclaredKeys):
            return plan
        return replace(plan, keys=DeclaredKeys({key: plan.keys.effective[key] for key in partition.keys}))

    def _count(self, partition: _Partition, batches: Sequence[RecordBatch]) -> None:
        self._ended.discard(partition.number)
        columns = partition.extractor.columns(batches)
        if partition.placement is not None:
            columns = partition.placement.judged(columns, partition.keys)
        self.report.read += len(columns.offsets)
        partition.clock_ms = max(partition.clock_ms, int(columns.arrival_ms.max(initial=NO_TIME)))
        if partition.counter is None and not self._found_start(partition, columns):
            self._wait(partition, columns)
            return
        counter = partition.counter
        assert counter is not None
        dropped = counter.add(columns)
        self._take_mark(partition, counter)
        self.report.dropped.update(dropped.counts)
        self.report.released += dropped.released
        self.report.counted += len(columns.offsets) - len(dropped.offsets) - dropped.released
        if self._dead_letters:
            partition.letters += letters(self._config.kafka.topic, dropped, now_ms())

    def _wait(self, partition: _Partition, columns: EventColumns) -> None:
        """Drop records before any of them has a time: they too may be too many in a row."""
        if partition.before is None:
            partition.before = CountingLimits(self._plan(partition, 0), partition.number)
        partition.before.require_valid(columns)
        self.report.dropped.update(Reason(int(code)) for code in columns.reasons)

    def _take_mark(self, partition: _Partition, counter: WindowCounter) -> None:
        if self._marks is not None:
            mark = self._marks.mark()
            partition.known = mark is not None
            if mark is not None:
                counter.read_to(mark)

    def _send_letters(self, partition: _Partition, counter: WindowCounter) -> None:
        """Publish pointers that wait; those that fail wait on. After a restart replay gives some of them again."""
        while partition.letters:
            some = tuple(partition.letters[:LETTERS_A_TRANSACTION])
            if not self._transport.commit(Step(some, (counter.position(),))):
                return
            del partition.letters[: len(some)]

    def _found_start(self, partition: _Partition, columns: EventColumns) -> bool:
        """Take the first clock of the input, less the grace, as the beginning where none is configured."""
        timed = columns.arrival_ms[columns.arrival_ms != NO_TIME]
        if not len(timed):
            return False
        window = self._config.window
        first = max(0, int(timed[0]) - window.grace_ms)
        self._begin(partition, first - first % window.size, int(columns.offsets[0]) if len(columns.offsets) else 0)
        if partition.before is not None and partition.counter is not None:
            partition.counter.limits.go_on_from(partition.before)
        return True

    def _end(self, partition: _Partition, end: InputEnd) -> None:
        counter = partition.counter
        if counter is not None:
            self._take_mark(partition, counter)
            if end.complete:
                counter.finish()
            if end.next_offset is not None:
                counter.passed(end.next_offset)
            if end.asked_ms != NO_TIME:
                counter.idle(end.asked_ms - self._config.window.clock_margin)
        self._ended.add(partition.number)

    def _account(self) -> None:
        counters = [p.counter for p in self._partitions.values() if p.counter is not None]
        report = self.report
        report.open_windows = sum(counter.open_windows for counter in counters)
        # Nothing is closed before 1970: there the first border is not known yet.
        closed = [counter.state.closed_through_ms for counter in counters if counter.state.closed_through_ms]
        report.closed_through_ms = min(closed, default=None)


def _table(config: Config, placement: Placement | None) -> KeyTable:
    """An empty table, or one of the declared keys that belong to the partition of this placement (None: all do)."""
    if not isinstance(config.keys, DeclaredKeys):
        return KeyTable()
    every = config.keys.effective
    return KeyTable([key for key in every if placement is None or placement.owns(key)], every)


def require_epoch_start(config: Config, others: dict[int, PartitionState]) -> int:
    """Where this epoch must end (FOREVER_MS unless a later one began), after checking where it begins.

    others: state of every other epoch of the pipeline. Raises StateError with the remedy.
    """
    epoch, start = config.pipeline.epoch, config.window.start
    for number, state in sorted(others.items()):
        if number > epoch:
            return state.start_ms
        drawn = drawn_through_ms(state.closed_through_ms, state.window_ms, state.cursor)
        if start is None or start < drawn or start % state.window_ms:
            raise StateError(
                f"epoch {epoch} of pipeline {config.pipeline.id} follows epoch {number}: set window.start to "
                f"a border of its windows ({duration(state.window_ms)}) not before {instant(drawn)}, up to which it "
                "has released"
            )
    return FOREVER_MS
