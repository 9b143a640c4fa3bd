"""The first start of an epoch on a cluster: its first window border and positions, fixed once, in one transaction.

It never begins anew: where the ledger knows the epoch it does nothing, and where releases of the epoch exist that the
ledger does not know it refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

from sfm_stream.clock import monotonic_s, now_ms
from sfm_stream.composition.epochs import epoch_end_ms
from sfm_stream.composition.kafka_first_offsets import first_offsets
from sfm_stream.config.config import Config
from sfm_stream.errors import StateError
from sfm_stream.events.event_schema import MAX_TIME_MS
from sfm_stream.pipeline.counting.position import decode_state, encode_state, first_state
from sfm_stream.readable import instant
from sfm_stream.transport.kafka.cluster import Cluster
from sfm_stream.transport.kafka.ledger import Entry, Ledger, entry_key, entry_value
from sfm_stream.transport.kafka.topic_log import TopicLog
from sfm_stream.transport.kafka.transactions import Transactions, UnknownOutcome
from sfm_stream.transport.kafka.transport import FIRST_START
from sfm_stream.types import Commit, PartitionState, Record
from sfm_stream.wire.codec import CloseMarker, decode

_log = logging.getLogger(__name__)
_PATIENCE_S = 60.0
_TRIES, _YIELD_S = 3, 4.0


@dataclass(frozen=True, slots=True)
class Names:
    """Topics and groups of a pipeline; all follow from its id."""

    pipeline: str
    epoch: int
    source: str

    @property
    def outbox(self) -> str:
        return f"{self.pipeline}.outbox"

    @property
    def ledger(self) -> str:
        return f"{self.pipeline}.ledger"

    @property
    def sketches(self) -> str:
        return f"{self.pipeline}.sketches"

    @property
    def rollups(self) -> str:
        return f"{self.pipeline}.rollups"

    @property
    def dead_letters(self) -> str:
        return f"{self.pipeline}.dead-letters"

    @property
    def publish_group(self) -> str:
        return f"{self.pipeline}.publish"

    @property
    def rollup_group(self) -> str:
        return f"{self.pipeline}.rollup"

    def ingest_group(self, epoch: int) -> str:
        return f"{self.pipeline}.ingest.{epoch}"

    def ingest_worker(self, epoch: int) -> str:
        return f"ingest/{epoch}"


def names_of(config: Config) -> Names:
    return Names(config.pipeline.id, config.pipeline.epoch, config.kafka.topic)


def other_epochs(entries: dict[str, Entry], epoch: int) -> dict[int, PartitionState]:
    """The committed states of every other epoch in the entries of one partition."""
    states: dict[int, PartitionState] = {}
    for worker, entry in entries.items():
        role, _, number = worker.partition("/")
        if role == "ingest" and int(number) != epoch:
            states[int(number)] = decode_state(entry.commit)
    return states


def first_start(config: Config, cluster: Cluster, log: TopicLog, source: str) -> bool:
    """Write the first positions of this epoch into the ledger. False: they are there already, nothing was done.

    source: the identity of the input topic. Raises StateError where releases exist that the ledger does not know,
    where the epoch before it still runs or any has released further, or where the log begins too late.
    """
    names = names_of(config)
    for _ in range(_TRIES):
        try:
            return _begin(config, cluster, log, source)
        except UnknownOutcome:
            # Another worker does the same and has fenced this one, which leaves it some time.
            ledger, until_s = Ledger(log, names.ledger), monotonic_s() + _YIELD_S
            while monotonic_s() < until_s:
                if _has_begun(ledger, log, names):
                    _log.info("another worker has begun epoch %d", names.epoch)
                    return False
                Event().wait(_YIELD_S / 20)
    return _begin(config, cluster, log, source)


def _has_begun(ledger: Ledger, log: TopicLog, names: Names) -> bool:
    worker = names.ingest_worker(names.epoch)
    return all(worker in ledger.entries(partition, _PATIENCE_S) for partition in range(log.partitions(names.source)))


def _begin(config: Config, cluster: Cluster, log: TopicLog, source: str) -> bool:
    names = names_of(config)
    transactions = Transactions(cluster, f"{names.pipeline}.first-start")
    try:
        transactions.settle()  # and fence whoever does the same right now
        ledger = Ledger(log, names.ledger)
        partitions = range(log.partitions(names.source))
        worker = names.ingest_worker(names.epoch)
        known = {partition: ledger.entries(partition, _PATIENCE_S) for partition in partitions}
        if all(worker in entries for entries in known.values()):
            _log.info("epoch %d has begun before; --first-start does nothing", names.epoch)
            return False
        start_ms = _start_ms(config)
        try:
            _require_unreleased(log, names, partitions, start_ms)
        except StateError:
            # Another worker may have begun the epoch, and released, since the ledger was read here.
            if _has_begun(ledger, log, names):
                return False
            raise
        others = [other_epochs(entries, names.epoch) for entries in known.values()]
        for states in others:
            epoch_end_ms(config, states)
        offsets = first_offsets(config, log, names.source, partitions, start_ms, follows=any(others))
        plan = config.plan(len(partitions), start_ms)
        records = []
        for partition in partitions:
            state = first_state(plan, source, config.event.latest or MAX_TIME_MS, offsets[partition])
            commit = Commit(partition, state.offset, encode_state(state))
            value = entry_value(commit, transactions.transactional_id + FIRST_START)
            records.append(Record(names.ledger, partition, entry_key(worker, partition), value, now_ms()))
        # Old workers read the ledger after they have joined their group, and wait for what is undecided in it. So
        # either one of them is seen here, or it will see this.
        transactions.commit(records, {}, None, before_commit=lambda: _require_stopped(log, names, known))
        _log.info("epoch %d of pipeline %s begins at %s", names.epoch, names.pipeline, instant(start_ms))
        return True
    finally:
        transactions.close()


def _start_ms(config: Config) -> int:
    """The configured border, else the first one that is still to come: no window is counted in part."""
    window = config.window
    if window.start is not None:
        return window.start
    now = now_ms()
    return now - now % window.size + window.size


def _require_unreleased(log: TopicLog, names: Names, partitions: Sequence[int], start_ms: int) -> None:
    """Nothing of this epoch is there, nor of any other for windows that it would count: the ledger may be a new one.

    What is undecided is waited for: it may be released yet.
    """
    for topic in (names.outbox, names.sketches):
        for partition in partitions:
            stored = log.read(topic, partition, patience_s=_PATIENCE_S)
            for record in map(decode, (each.value for each in stored)):
                end_ms = record.through_ms if isinstance(record, CloseMarker) else record.window.end_ms
                if record.epoch == names.epoch:
                    raise StateError(
                        f"topic {topic}, partition {partition} holds releases of epoch {names.epoch}, which the ledger "
                        f"{names.ledger} does not know: counting anew would release the same data twice. Raise "
                        "pipeline.epoch and set window.start behind the last released window"
                    )
                if record.epoch < names.epoch and end_ms > start_ms:
                    raise StateError(
                        f"topic {topic}, partition {partition}: epoch {record.epoch} has released up to "
                        f"{instant(end_ms)} at "
                        f"least, window.start is {instant(start_ms)}: set it to a border behind the last released "
                        "window"
                    )


def _require_stopped(log: TopicLog, names: Names, known: dict[int, dict[str, Entry]]) -> None:
    """No worker of an earlier epoch may run that does not know yet where its epoch ends."""
    for epoch in sorted({epoch for entries in known.values() for epoch in other_epochs(entries, names.epoch)}):
        if log.group_members(names.ingest_group(epoch)):
            raise StateError(
                f"workers of epoch {epoch} are running: stop them, start epoch {names.epoch} with --first-start, and "
                f"start them again; they then finish the windows before window.start"
            )
