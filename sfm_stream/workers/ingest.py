"""The ingest worker: reads record batches, commits releases. It holds SECRET state in memory and stores none of it.

One worker drives one transport. A lost partition takes its open windows with it, and the next owner reads again from
the committed offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.placement import Placement
from sfm_stream.pipeline.counting.counter import WindowCounter
from sfm_stream.pipeline.counting.dead_letters import LETTERS_A_TRANSACTION
from sfm_stream.pipeline.counting.position import decode_state
from sfm_stream.privacy.coins import SYSTEM_COINS, Coins
from sfm_stream.transport.contract import Transport
from sfm_stream.transport.files.input_mark import MarkedInput
from sfm_stream.types import Assigned, InputEnd, RecordBatch, Step
from sfm_stream.workers.ingest_partition import IngestPartition, IngestSetup
from sfm_stream.workers.ingest_report import IngestReport
from sfm_stream.workers.partition_worker import PartitionWorker
from sfm_stream.workers.steps import perform_checkpoint, perform_due


class IngestWorker(PartitionWorker[IngestPartition]):
    """Counts an input until it ends. source: the identity of the input; a committed state of another one is refused.

    first_latest_ms: upper end of plausible event times at a first start; None if a partition without a committed state
    must not begin. epoch_end: partition to the last border of this epoch, asked when it is assigned. placement:
    partition to its Placement. dead_letters: whether to publish pointers to dropped records. marks: the marks of the
    input, if it has one partition and may be replaced by another input of the same name.
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
        marks: MarkedInput | None = None,
    ) -> None:
        super().__init__(transport)
        self.report = IngestReport()
        self._config, self._first_latest_ms = config, first_latest_ms
        self._epoch_end, self._placement = epoch_end, placement
        self._setup = IngestSetup(config, source, coins, dead_letters, marks, self.report)

    @property
    def ended(self) -> bool:
        """Every assigned partition has reached the end of its input, and all that was due is committed."""
        partitions = self.partitions.values()
        behind = any(counter.behind for _, counter in self.counters.values())
        return bool(partitions) and all(partition.at_end for partition in partitions) and not behind

    @property
    def counters(self) -> dict[int, tuple[int, WindowCounter]]:
        """Assigned partition to (largest arrival time read, its counter), where counting has begun."""
        return {n: (part.clock_ms, part.counter) for n, part in self.partitions.items() if part.counter is not None}

    def checkpoint(self) -> None:
        """Commit how far a restart may begin to read, where that moved. Nothing is published."""
        for partition in self.partitions.values():
            if (counter := partition.releasing) is not None:
                perform_checkpoint(self._transport, counter)
        self._account()

    def _begin(self, event: Assigned) -> IngestPartition:
        config = self._config
        state = decode_state(event.committed) if event.committed else None
        placement = self._placement(event.partition) if self._placement else None
        latest_ms = state.latest_ms if state else self._first_latest_ms
        if latest_ms is None:
            raise StateError(
                f"partition {event.partition}: epoch {config.pipeline.epoch} of pipeline "
                f"{config.pipeline.id} has no position. If it never ran, start one worker with --first-start"
            )
        end_ms = self._epoch_end(event.partition)
        partition = IngestPartition(
            self._setup, event.partition, placement, latest_ms, end_ms, lambda: self._transport.partitions
        )
        start_ms = config.window.start
        if state is not None:
            partition.restore(state)
            self._transport.seek(event.partition, state.offset)
        elif start_ms is not None or config.whole:
            partition.begin(start_ms, 0)
        return partition

    def _read(self, partition: IngestPartition, batches: Sequence[RecordBatch], stopping: Callable[[], bool]) -> None:
        partition.read(batches)

    def _end(self, partition: IngestPartition, end: InputEnd) -> None:
        partition.end(end)

    def _commit_due(self, stopping: Callable[[], bool]) -> None:
        for partition in self.partitions.values():
            if (counter := partition.releasing) is not None:
                self.report.releases += perform_due(self._transport, counter, stopping, releases_only=True)
                self._send_letters(partition, counter)

    def _send_letters(self, partition: IngestPartition, counter: WindowCounter) -> None:
        """Publish the dead letters that wait; if that fails they go on waiting. A restart publishes some again."""
        while partition.letters:
            some = tuple(partition.letters[:LETTERS_A_TRANSACTION])
            if not self._transport.commit(Step(some, (counter.position(),))):
                return
            del partition.letters[: len(some)]

    def _account(self) -> None:
        """Set those numbers of the report that are not sums."""
        counters = [counter for _, counter in self.counters.values()]
        self.report.open_windows = sum(counter.open_windows for counter in counters)
        # Nothing is closed before 1970: there the first border is not known yet.
        closed = [counter.state.base.closed_through_ms for counter in counters if counter.state.base.closed_through_ms]
        self.report.closed_through_ms = min(closed, default=None)
