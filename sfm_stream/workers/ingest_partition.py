"""One partition of the input, as the ingest worker counts it.

    stage       what is known                                                what happens
    WAITING     no record had a time yet: there is no first window border    records are dropped
    UNPROVEN    the input may be another one than that of the committed      records are counted, nothing is committed
                state
    COUNTING    the border is known, and the state is of this input          records are counted, steps are committed

TRANSITIONS says which fact leads from which stage to which. A partition whose first window border is known at the
assignment leaves WAITING then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sfm_stream.clock import now_ms
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.key_table import KeyTable
from sfm_stream.events.placement import Placement
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.dead_letters import letters
from sfm_stream.pipeline.counting.limits import CountingLimits
from sfm_stream.pipeline.counting.plan import CountingPlan
from sfm_stream.pipeline.counting.position import first_state, require_continuation
from sfm_stream.pipeline.counting.whole import counter_of
from sfm_stream.privacy.coins import Coins
from sfm_stream.privacy.key_rules import DeclaredKeys
from sfm_stream.transport.files.input_mark import MarkedInput
from sfm_stream.types import NO_TIME, EventColumns, InputEnd, PartitionState, Reason, Record, RecordBatch
from sfm_stream.workers.extractor import extractor_of
from sfm_stream.workers.ingest_report import IngestReport


class Stage(Enum):
    """How far the counting of a partition is; the table is above."""

    WAITING = "waiting"
    UNPROVEN = "unproven"
    COUNTING = "counting"


class Fact(Enum):
    """Something that becomes known about a partition, and may change its stage."""

    FIRST_BORDER = "the first window border is known"
    MARK_COMPARED = "the input begins with the bytes that the committed state is of, or none are expected"
    MARK_EXPECTED = "the bytes that the committed state is of have not been read yet"


TRANSITIONS = {
    (Stage.WAITING, Fact.FIRST_BORDER): Stage.COUNTING,
    (Stage.COUNTING, Fact.MARK_COMPARED): Stage.COUNTING,
    (Stage.COUNTING, Fact.MARK_EXPECTED): Stage.UNPROVEN,
    (Stage.UNPROVEN, Fact.MARK_COMPARED): Stage.COUNTING,
    (Stage.UNPROVEN, Fact.MARK_EXPECTED): Stage.UNPROVEN,
}
"""No other fact can become known in these stages."""


@dataclass(frozen=True, slots=True)
class IngestSetup:
    """What holds for all partitions of one ingest worker.

    source: the identity of the input; a committed state of another one is refused. dead_letters: whether to publish
    pointers to dropped records. marks: as in IngestWorker. report: the counts of this worker, to which all add.
    """

    config: Config
    source: str
    coins: Coins
    dead_letters: bool
    marks: MarkedInput | None
    report: IngestReport


class IngestPartition:
    """Counts one assigned partition.

    number: of the partition. clock_ms: largest arrival time read. at_end: whether everything that can be read now was
    read. letters: dead letters that are not published yet. counter: None in WAITING. placement: tells which records
    belong to other partitions. latest_ms: upper end of plausible event times. end_ms: last border of this epoch.
    partitions: returns the number of partitions of the input.
    """

    def __init__(
        self,
        setup: IngestSetup,
        number: int,
        placement: Placement | None,
        latest_ms: int,
        end_ms: int,
        partitions: Callable[[], int],
    ) -> None:
        self._setup, self._placement, self._latest_ms = setup, placement, latest_ms
        self._end_ms, self._partitions = end_ms, partitions
        config = setup.config
        self._keys = _key_table(config, placement)
        self._extractor = extractor_of(config, self._keys, latest_ms)
        self._limits_before: CountingLimits | None = None
        """The checks on records in WAITING."""
        self._stage = Stage.WAITING
        self.number, self.clock_ms, self.at_end = number, NO_TIME, False
        self.counter: WindowCounter | None = None
        self.letters: list[Record] = []

    @property
    def releasing(self) -> WindowCounter | None:
        """The counter, in COUNTING; else None, as no step may be committed."""
        return self.counter if self._stage is Stage.COUNTING else None

    def begin(self, start_ms: int | None, offset: int) -> None:
        """First start of this epoch. Its first window border is fixed now, and kept with every commit.

        start_ms: that border; None where the whole input has to be read to know it.
        """
        plan = self._plan(start_ms)
        self._count_from(plan, first_state(plan, self._setup.source, self._latest_ms, offset))

    def restore(self, state: PartitionState) -> None:
        """Go on from a committed state. Raises StateError with the remedy where that is not possible."""
        setup, config = self._setup, self._setup.config
        start = config.window.start
        self._require_same_defaults(state)
        plan = self._plan(state.start_ms if start is None else start)
        require_continuation(state, plan, setup.source, self.number)
        # The state may have been made under another name of the same input.
        self._count_from(plan, replace(state, source=setup.source))
        setup.report.finished = config.whole and state.offset > 0
        self.clock_ms = state.clock_ms
        if setup.marks is not None:
            setup.marks.expect(state.mark)
            self._learn(Fact.MARK_EXPECTED if setup.marks.mark() is None else Fact.MARK_COMPARED)

    def read(self, batches: Sequence[RecordBatch]) -> None:
        """Count batches, in order of offset. Raises StateError where a limit of the plan is passed."""
        report = self._setup.report
        self.at_end = False
        columns = self._extractor.columns(batches)
        if self._placement is not None:
            columns = self._placement.judged(columns, self._keys)
        report.read += len(columns.offsets)
        self.clock_ms = max(self.clock_ms, int(columns.arrival_ms.max(initial=NO_TIME)))
        if self.counter is None and (first_ms := _first_arrival_ms(columns)) is not None:
            self._begin_at(first_ms, columns)
        if self.counter is None:
            self._drop(columns)
            return
        dropped = self.counter.add(columns)
        self._compare_mark(self.counter)
        report.dropped.update(dropped.counts)
        report.released += dropped.released
        report.counted += len(columns.offsets) - len(dropped.offsets) - dropped.released
        if self._setup.dead_letters:
            self.letters += letters(self._setup.config.kafka.topic, dropped, now_ms())

    def end(self, end: InputEnd) -> None:
        """Nothing more can be read now: windows that the end closes become due."""
        counter = self.counter
        if counter is not None:
            self._compare_mark(counter)
            if end.complete:
                counter.finish()
            if end.next_offset is not None:
                counter.passed(end.next_offset)
            if end.asked_ms != NO_TIME:
                counter.idle(end.asked_ms - self._setup.config.window.clock_margin)
        self.at_end = True

    def _begin_at(self, first_ms: int, columns: EventColumns) -> None:
        """Begin at the first arrival time of the input, less the grace."""
        window = self._setup.config.window
        earliest_ms = max(0, first_ms - window.grace_ms)
        self.begin(self._setup.config.grid.floor(earliest_ms), int(columns.offsets[0]))
        if self._limits_before is not None and self.counter is not None:
            self.counter.limits.go_on_from(self._limits_before)

    def _drop(self, columns: EventColumns) -> None:
        """Drop records before any of them has a time. They too may be too many in a row."""
        if self._limits_before is None:
            self._limits_before = CountingLimits(self._plan(0), self.number)
        self._limits_before.require_valid(columns)
        self._setup.report.dropped.update(Reason(int(code)) for code in columns.reasons)

    def _count_from(self, plan: CountingPlan, state: PartitionState) -> None:
        self.counter = counter_of(plan, self.number, state, self._keys, self._setup.coins)
        self._learn(Fact.FIRST_BORDER)

    def _compare_mark(self, counter: WindowCounter) -> None:
        """Take the mark of what was read, where the input has shown that it is the expected one."""
        marks = self._setup.marks
        if marks is None:
            return
        mark = marks.mark()
        self._learn(Fact.MARK_EXPECTED if mark is None else Fact.MARK_COMPARED)
        if mark is not None:
            counter.read_to(mark)

    def _learn(self, fact: Fact) -> None:
        self._stage = TRANSITIONS[self._stage, fact]

    def _plan(self, start_ms: int | None) -> CountingPlan:
        """The plan of this partition: of declared keys it has those that the partition owns."""
        plan = self._setup.config.plan(self._partitions(), start_ms, self._end_ms)
        if not isinstance(plan.keys, DeclaredKeys):
            return plan
        return replace(plan, keys=DeclaredKeys({key: plan.keys.effective[key] for key in self._keys}))

    def _require_same_defaults(self, state: PartitionState) -> None:
        """Raise StateError, with the settings to restore, if an earlier version began the epoch with its defaults."""
        config, partitions = self._setup.config, self._partitions()
        if state.fingerprint == config.fingerprint(partitions):
            return
        for earlier, begun, remedy in _earlier_defaults(config):
            if state.fingerprint == earlier.fingerprint(partitions):
                raise StateError(
                    f"pipeline {config.pipeline.id}, epoch {config.pipeline.epoch}: it was begun {begun}: set {remedy} "
                    "to go on with this epoch"
                )


def _earlier_defaults(config: Config) -> Iterator[tuple[Config, str, str]]:
    """(a configuration that earlier versions took this one for, how it counts, the settings that say so)."""
    order = "in order of time, and an input that is complete is now counted whole"
    no_counts = "without noisy counts, which releases now have"
    in_order, without = 'input.order = "time", and window.grace as it was,', "privacy.count_share = 0"
    if config.whole:
        yield config.in_order_of_time(), order, in_order
    if config.settings.privacy.count_share:
        yield config.without_counts(), no_counts, without
    if config.whole and config.settings.privacy.count_share:
        both = config.without_counts().in_order_of_time()
        yield both, f"{order}, and {no_counts}", f"{without}, {in_order}"


def _first_arrival_ms(columns: EventColumns) -> int | None:
    """The first arrival time; None where no record has one."""
    timed = columns.arrival_ms[columns.arrival_ms != NO_TIME]
    return int(timed[0]) if len(timed) else None


def _key_table(config: Config, placement: Placement | None) -> KeyTable:
    """An empty table, or one of the declared keys that belong to the partition of this placement (None: all do)."""
    if not isinstance(config.keys, DeclaredKeys):
        return KeyTable()
    every = config.keys.effective
    return KeyTable([key for key in every if placement is None or placement.owns(key)], every)
